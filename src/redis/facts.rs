//! Reads sections of INFO, and settings of the server.

use super::{raw, Context};
use std::ffi::CStr;
use std::os::raw::{c_char, c_int};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Reads a setting or field that is a number.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A section of INFO.
pub(super) struct Section(NonNull<raw::RedisModuleServerInfoData>);

impl Section {
    /// A number, or `None` where the section has no such field.
    pub(super) fn number(&self, field: &CStr) -> Option<u64> {
        let mut error: c_int = 0;
        // SAFETY: the data lives as long as self.
        let value = unsafe {
            api!(RedisModule_ServerInfoGetFieldUnsigned(
                self.0.as_ptr(),
                field.as_ptr(),
                &mut error
            ))
        };
        (error == raw::REDISMODULE_OK as c_int).then_some(value)
    }

    /// Runs `use_it` with a field, if the section has it.
    pub(super) fn text<R>(&self, field: &CStr, use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: the data lives as long as self, and with it the C string.
        unsafe {
            let text = api!(RedisModule_ServerInfoGetFieldC(
                self.0.as_ptr(),
                field.as_ptr()
            ));
            (!text.is_null()).then(|| use_it(CStr::from_ptr(text).to_bytes()))
        }
    }
}

/// Runs `use_it` with a section of INFO, if the server has it.
pub(super) fn with_info<R>(
    ctx: &Context,
    section: &CStr,
    use_it: impl FnOnce(&Section) -> R,
) -> Option<R> {
    // SAFETY: the context is live, and the data is freed once.
    unsafe {
        let data = NonNull::new(api!(RedisModule_GetServerInfo(
            ctx.as_ptr(),
            section.as_ptr()
        )))?;
        let result = use_it(&Section(data));
        api!(RedisModule_FreeServerInfo(ctx.as_ptr(), data.as_ptr()));
        Some(result)
    }
}

/// Runs `use_it` with a setting of the server. `None` where the server does not tell it.
pub(super) fn setting<R>(ctx: &Context, name: &CStr, use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
    // SAFETY: the context is live, the format gives the types of the arguments, the elements of the
    // reply live until it is freed, and it is freed once.
    unsafe {
        let reply = api!(RedisModule_Call(
            ctx.as_ptr(),
            c"CONFIG".as_ptr(),
            c"cc".as_ptr(),
            c"GET".as_ptr(),
            name.as_ptr()
        ));
        if reply.is_null() {
            return None;
        }
        let value = api!(RedisModule_CallReplyArrayElement(reply, 1));
        let mut length = 0;
        let text: *const c_char = match value.is_null() {
            true => std::ptr::null(),
            false => api!(RedisModule_CallReplyStringPtr(value, &mut length)),
        };
        let result =
            (!text.is_null()).then(|| use_it(std::slice::from_raw_parts(text.cast(), length)));
        api!(RedisModule_FreeCallReply(reply));
        result
    }
}

/// The way in which a server keeps its data. Each field is `None` where the server does not tell
/// it.
#[derive(Debug, Default)]
pub struct Keeping {
    /// The `maxmemory-policy`.
    pub policy: Option<String>,
    /// Whether the append-only file is written.
    pub appendonly: Option<bool>,
    /// Whether snapshots are saved without a command (`save`).
    pub saves: Option<bool>,
    /// The number of replicas that a write needs.
    pub replicas_needed: Option<u64>,
    /// The number of replicas that count for that. Only if a write needs some.
    pub good_replicas: Option<u64>,
}

impl Context {
    /// Whether a power failure inside of a block of MULTI and EXEC costs no more than this block:
    /// so since Valkey 9.1. Redis keeps the beginning of the block in the file, and goes on behind
    /// it (docs/engines.md).
    pub fn survives_torn_blocks(&self) -> bool {
        static KNOWN: OnceLock<bool> = OnceLock::new();
        *KNOWN.get_or_init(|| {
            let version = with_info(self, c"server", |info| {
                info.text(c"valkey_version", |text| {
                    let mut parts = text.split(|byte| *byte == b'.').map(number);
                    (parts.next().flatten(), parts.next().flatten())
                })
            });
            version.flatten() >= Some((Some(9), Some(1)))
        })
    }

    /// Returns how this server keeps its data. Costs some 100 microseconds.
    pub fn keeping(&self) -> Keeping {
        let policy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        Keeping {
            policy: setting(self, c"maxmemory-policy", policy),
            appendonly: with_info(self, c"persistence", |info| {
                info.number(c"aof_enabled").map(|enabled| enabled != 0)
            })
            .flatten(),
            saves: setting(self, c"save", |rules| !rules.is_empty()),
            replicas_needed: setting(self, c"min-replicas-to-write", number).flatten(),
            good_replicas: with_info(self, c"replication", |info| {
                info.number(c"min_slaves_good_slaves")
            })
            .flatten(),
        }
    }
}
