//! The baseline module of the benchmark. Its commands do what every queue in a
//! module has to do, and nothing else: they find the key, keep or give a payload,
//! reply, and write what was done to the log. They write it in the form in which DQ
//! does: nearly always the command is replicated verbatim, but where it names a time
//! there is a log entry of as many bytes as DQ's. There are no ids and no leases. What
//! DQ costs more than this module is DQ's own, and what this module costs is the
//! server's.
//!
//! - `BASELINE.PUSH key payload` keeps a payload. It answers 36 bytes, as DQ.SEND
//!   answers an id.
//! - `BASELINE.GROUP key payload GROUP name` does the same, and keeps a list of the
//!   payloads of each name.
//! - `BASELINE.TAKE key [ACK 1 receipt]` ignores the receipt and answers 36 bytes, two
//!   numbers and the oldest payload, as DQ.FETCH does.
//! - `BASELINE.DONE key receipt` answers 1, as DQ.ACK does.
//! - `BASELINE.LATER key due payload [payload ...]` keeps payloads in the order of
//!   their due times, in the standard library's ordered map.
//! - `BASELINE.FIRST key count [receipt ...]` gives the first payloads in that order.
//!   No clock is involved.
//! - `BASELINE.WAKE count` makes the server wake in each of `count` milliseconds, as it
//!   must where a message falls due in each, and does nothing then.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null_mut, NonNull};

use redis_module::raw;

/// An id, as long as one that DQ makes.
const ID: &[u8] = b"01234567-89ab-7def-8123-456789abcdef";
/// A receipt, with as many digits as one of DQ's.
const RECEIPT: i64 = 1_700_000_000_000_000;

/// The allocator that DQ uses, too.
#[global_allocator]
static ALLOCATOR: redis_module::alloc::RedisAlloc = redis_module::alloc::RedisAlloc;

/// The value of a key.
#[derive(Default)]
struct Payloads {
    /// Payloads without a due time, the oldest first.
    in_line: VecDeque<Box<[u8]>>,
    /// Payloads by due time, and then in the order in which they came.
    by_time: BTreeMap<(u64, u64), Box<[u8]>>,
    /// Number of payloads so far that have a due time or a name.
    count: u64,
    /// The numbers of the payloads of each name.
    by_group: ByName<VecDeque<u64>>,
}

/// A map by names, hashed as in DQ.
type ByName<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;

/// Head of a log entry, as long as an entry of DQ without its payload.
const HEAD: &[u8] = b"0123456789a";
/// Command of a log entry, with a name as long as that of DQ's.
const OP: &CStr = c"bl.op";

thread_local! {
    static ENTRY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

static mut TYPE: *mut raw::RedisModuleType = null_mut();

macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        raw::$name.expect("the server has it")($($arg),*)
    };
}

/// The form in which an operation is logged.
#[derive(Clone, Copy)]
enum Form<'a> {
    /// A log entry that holds the payloads that were kept.
    Entry(&'a [&'a [u8]]),
    /// The command, replicated verbatim.
    Verbatim,
}

/// A running command: its context and arguments.
#[derive(Clone, Copy)]
struct Call {
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
}

impl Call {
    /// Returns the argument of this index.
    ///
    /// # Safety
    /// The command has more arguments than `index`.
    unsafe fn arg(&self, index: usize) -> *mut raw::RedisModuleString {
        // SAFETY: vouched for by the caller.
        unsafe { *self.argv.add(index) }
    }

    /// Returns the bytes of the argument of this index.
    ///
    /// # Safety
    /// The command has more arguments than `index`. The bytes belong to the
    /// argument, which outlives the call.
    unsafe fn bytes(&self, index: usize) -> &[u8] {
        let mut len = 0;
        // SAFETY: the server gives a pointer to so many bytes.
        unsafe {
            let at = api!(RedisModule_StringPtrLen(self.arg(index), &mut len));
            std::slice::from_raw_parts(at.cast(), len)
        }
    }

    /// Opens the key, changes its payloads, logs that in this form, and closes the
    /// key.
    ///
    /// # Safety
    /// The context is live, and argument 1 is a key.
    unsafe fn with(&self, form: Form<'_>, change: impl FnOnce(&mut Payloads)) -> c_int {
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

    /// Writes what was done to the log, if there is one.
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
    unsafe fn give(&self, count: u32, mut next: impl FnMut() -> Option<Box<[u8]>>) {
        // SAFETY: vouched for by the caller.
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

/// Parses a decimal number. Anything else gives 0.
fn number(digits: &[u8]) -> u64 {
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    digits.parse().unwrap_or_default()
}

unsafe extern "C" fn push(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: the server calls with a live context and so many arguments.
    unsafe {
        if argc != 3 {
            return api!(RedisModule_WrongArity(ctx));
        }
        let payload = call.bytes(2);
        call.with(Form::Verbatim, |payloads| {
            payloads.in_line.push_back(payload.into());
            call.reply(ID);
        })
    }
}

unsafe extern "C" fn group(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: as in push.
    unsafe {
        if argc != 5 || !call.bytes(3).eq_ignore_ascii_case(b"GROUP") {
            return api!(RedisModule_WrongArity(ctx));
        }
        let (payload, name) = (call.bytes(2), call.bytes(4));
        call.with(Form::Verbatim, |payloads| {
            payloads.count += 1;
            let number = payloads.count;
            match payloads.by_group.get_mut(name) {
                Some(list) => list.push_back(number),
                None => {
                    let list = VecDeque::from([number]);
                    payloads.by_group.insert(name.into(), list);
                }
            }
            payloads.in_line.push_back(payload.into());
            call.reply(ID);
        })
    }
}

unsafe extern "C" fn take(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: as in push.
    unsafe {
        if argc < 2 {
            return api!(RedisModule_WrongArity(ctx));
        }
        call.with(Form::Verbatim, |payloads| {
            call.give(1, || payloads.in_line.pop_front())
        })
    }
}

unsafe extern "C" fn later(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: as in push.
    unsafe {
        if argc < 4 {
            return api!(RedisModule_WrongArity(ctx));
        }
        let due = number(call.bytes(2));
        let kept: Vec<&[u8]> = (3..argc as usize).map(|at| call.bytes(at)).collect();
        call.with(Form::Entry(&kept), |payloads| {
            if argc > 4 {
                api!(RedisModule_ReplyWithArray(ctx, (argc - 3).into()));
            }
            for payload in &kept {
                payloads.count += 1;
                let key = (due, payloads.count);
                payloads.by_time.insert(key, (*payload).into());
                call.reply(ID);
            }
        })
    }
}

unsafe extern "C" fn first(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: as in push.
    unsafe {
        if argc < 3 {
            return api!(RedisModule_WrongArity(ctx));
        }
        let count = number(call.bytes(2)) as u32;
        call.with(Form::Entry(&[]), |payloads| {
            call.give(count, || {
                let first = payloads.by_time.pop_first();
                first.map(|(_, payload)| payload)
            });
        })
    }
}

unsafe extern "C" fn wake(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: as in push.
    unsafe {
        if argc != 2 {
            return api!(RedisModule_WrongArity(ctx));
        }
        let count = number(call.bytes(1));
        api!(RedisModule_ReplyWithLongLong(ctx, count as i64));
        wake_again(ctx, count as *mut c_void);
    }
    raw::REDISMODULE_OK as c_int
}

/// Starts the timer again, as often as `left` says, which is a number and not a pointer.
unsafe extern "C" fn wake_again(ctx: *mut raw::RedisModuleCtx, left: *mut c_void) {
    if let Some(left) = (left as usize).checked_sub(1) {
        // SAFETY: the context is live, and the server hands the number back as it is.
        unsafe {
            api!(RedisModule_CreateTimer(
                ctx,
                1,
                Some(wake_again),
                left as *mut c_void
            ));
        }
    }
}

unsafe extern "C" fn done(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv };
    // SAFETY: as in push.
    unsafe {
        if argc != 3 {
            return api!(RedisModule_WrongArity(ctx));
        }
        call.with(Form::Verbatim, |_| {
            api!(RedisModule_ReplyWithLongLong(ctx, 1));
        })
    }
}

/// Does nothing: the log is never read.
unsafe extern "C" fn apply(
    _: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: made by Box::leak in Call::with, freed once.
    drop(unsafe { Box::from_raw(value.cast::<Payloads>()) });
}

/// Called by the server when it loads the module.
///
/// # Safety
/// Only for the server.
#[no_mangle]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    // SAFETY: the server calls this once, before anything else.
    unsafe {
        if raw::Export_RedisModule_Init(
            ctx,
            c"baseline".as_ptr(),
            1,
            raw::REDISMODULE_APIVER_1 as c_int,
        ) != raw::REDISMODULE_OK as c_int
        {
            return raw::REDISMODULE_ERR as c_int;
        }
        let mut methods: raw::RedisModuleTypeMethods = std::mem::zeroed();
        methods.version = raw::REDISMODULE_TYPE_METHOD_VERSION as u64;
        methods.free = Some(free);
        TYPE = api!(RedisModule_CreateDataType(
            ctx,
            c"dq-base00".as_ptr(),
            0,
            &mut methods
        ));
        type Command = raw::RedisModuleCmdFunc;
        let commands: [(&CStr, Command); 8] = [
            (OP, Some(apply)),
            (c"baseline.push", Some(push)),
            (c"baseline.group", Some(group)),
            (c"baseline.take", Some(take)),
            (c"baseline.done", Some(done)),
            (c"baseline.later", Some(later)),
            (c"baseline.first", Some(first)),
            (c"baseline.wake", Some(wake)),
        ];
        for (name, command) in commands {
            let first_key = c_int::from(name != c"baseline.wake");
            let made = api!(RedisModule_CreateCommand(
                ctx,
                name.as_ptr(),
                command,
                c"write".as_ptr(),
                first_key,
                first_key,
                first_key
            ));
            if made != raw::REDISMODULE_OK as c_int {
                return made;
            }
        }
    }
    raw::REDISMODULE_OK as c_int
}
