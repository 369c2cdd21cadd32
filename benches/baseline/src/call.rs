//! A call of a command, and the steps that all commands share.

use std::cell::RefCell;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::NonNull;

use redis_module::raw;

use crate::{Payloads, OP, TYPE};

/// An id, as long as one that DQ makes.
const ID: &[u8] = b"01234567-89ab-7def-8123-456789abcdef";
/// A receipt, with as many digits as one of DQ's.
const RECEIPT: i64 = 1_700_000_000_000_000;
/// Head of a log entry, as long as an entry of DQ without its payload.
const HEAD: &[u8] = b"0123456789a";

thread_local! {
    static ENTRY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The form in which an operation is logged.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// A log entry that holds the payloads that were kept.
    Entry(&'a [&'a [u8]]),
    /// The command, replicated verbatim.
    Verbatim,
}

/// A running command: its context and arguments.
#[derive(Clone, Copy)]
pub struct Call {
    /// The context of the command.
    pub ctx: *mut raw::RedisModuleCtx,
    /// Its arguments, the first of which is its name.
    pub argv: *mut *mut raw::RedisModuleString,
    /// The number of its arguments.
    pub argc: c_int,
}

impl Call {
    /// Returns the argument of this index.
    ///
    /// # Safety
    /// The command has more arguments than `index`.
    unsafe fn arg(&self, index: usize) -> *mut raw::RedisModuleString {
        // SAFETY: the caller guarantees it.
        unsafe { *self.argv.add(index) }
    }

    /// Returns the bytes of the argument of this index.
    ///
    /// # Safety
    /// The command has more arguments than `index`. The bytes belong to the
    /// argument, which outlives the call.
    pub unsafe fn bytes(&self, index: usize) -> &[u8] {
        let mut len = 0;
        // SAFETY: the server gives a pointer to this number of bytes.
        unsafe {
            let at = api!(RedisModule_StringPtrLen(self.arg(index), &mut len));
            std::slice::from_raw_parts(at.cast(), len)
        }
    }

    /// Opens the key, changes its payloads, logs the change in this form, and closes the
    /// key.
    ///
    /// # Safety
    /// The context is live, and argument 1 is a key.
    pub unsafe fn with(&self, form: Form<'_>, change: impl FnOnce(&mut Payloads)) -> c_int {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        // SAFETY: the key is open while its value is used, and nothing else
        // uses it meanwhile.
        unsafe {
            let name = self.arg(1);
            let key = api!(RedisModule_OpenKey(self.ctx, name, mode)).cast::<raw::RedisModuleKey>();
            let found = api!(RedisModule_ModuleTypeGetType(key));
            let value = if !found.is_null() && found == TYPE {
                NonNull::new(api!(RedisModule_ModuleTypeGetValue(key)).cast::<Payloads>())
            } else {
                let made = NonNull::from(Box::leak(Box::<Payloads>::default()));
                api!(RedisModule_ModuleTypeSetValue(
                    key,
                    TYPE,
                    made.as_ptr().cast::<c_void>()
                ));
                Some(made)
            };
            if let Some(mut value) = value {
                change(value.as_mut());
                self.log(name, form);
                api!(RedisModule_SignalModifiedKey(self.ctx, name));
            }
            api!(RedisModule_CloseKey(key));
        }
        raw::REDISMODULE_OK as c_int
    }

    /// Writes the change to the log, if the server has one.
    ///
    /// # Safety
    /// The context is live.
    unsafe fn log(&self, name: *mut raw::RedisModuleString, form: Form<'_>) {
        // SAFETY: the server copies the entry.
        unsafe {
            let flags = api!(RedisModule_GetContextFlags(self.ctx));
            let is_logged = flags & raw::REDISMODULE_CTX_FLAGS_AOF as c_int != 0;
            let (Form::Entry(kept), true) = (form, is_logged) else {
                api!(RedisModule_ReplicateVerbatim(self.ctx));
                return;
            };
            ENTRY.with_borrow_mut(|entry| {
                entry.clear();
                entry.extend_from_slice(HEAD);
                kept.iter().for_each(|bytes| entry.extend_from_slice(bytes));
                api!(RedisModule_Replicate(
                    self.ctx,
                    OP.as_ptr(),
                    c"sb".as_ptr(),
                    name,
                    entry.as_ptr(),
                    entry.len()
                ));
            });
        }
    }

    /// Replies with `count` payloads in the form of messages.
    ///
    /// # Safety
    /// The context is live.
    pub unsafe fn give(&self, count: u32, mut next: impl FnMut() -> Option<Box<[u8]>>) {
        // SAFETY: the caller guarantees it.
        unsafe {
            api!(RedisModule_ReplyWithArray(self.ctx, count.into()));
            for _ in 0..count {
                api!(RedisModule_ReplyWithArray(self.ctx, 4));
                self.reply(ID);
                api!(RedisModule_ReplyWithLongLong(self.ctx, RECEIPT));
                api!(RedisModule_ReplyWithLongLong(self.ctx, 1));
                self.reply(&next().unwrap_or_default());
            }
        }
    }

    /// Replies with an id.
    ///
    /// # Safety
    /// The context is live.
    pub unsafe fn reply_id(&self) {
        // SAFETY: the caller guarantees it.
        unsafe { self.reply(ID) };
    }

    /// Replies that the arguments are not those of the command.
    ///
    /// # Safety
    /// The context is live.
    pub unsafe fn wrong_arity(&self) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe { api!(RedisModule_WrongArity(self.ctx)) }
    }

    /// Replies with a string.
    ///
    /// # Safety
    /// The context is live.
    unsafe fn reply(&self, bytes: &[u8]) {
        // SAFETY: the pointer and the length are those of one slice.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(
                self.ctx,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            ))
        };
    }
}
