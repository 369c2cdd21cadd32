//! The baseline module: its commands do only what every queue in a module must do. They open the
//! key, store or return a payload, reply, and if there is an append-only file, replicate the change
//! in the form that DQ uses: nearly always verbatim, but as a log entry of the same size as DQ's if
//! the command names a time. There are no ids and no leases. The cost of this module is the cost of
//! the server; what DQ costs more is DQ's own.
//!
//! - `FLOOR.PUSH key payload` stores a payload. It replies with 36 bytes, as DQ.SEND does with an
//!   id.
//! - `FLOOR.GROUP key payload GROUP name` also stores the number of the payload in a list of the
//!   group.
//! - `FLOOR.TAKE key [ACK 1 receipt]` removes the oldest payload and ignores the receipt. It
//!   replies with 36 bytes, two numbers and the payload, as DQ.FETCH does.
//! - `FLOOR.DONE key receipt` replies with 1, as DQ.ACK does.
//! - `FLOOR.LATER key due payload [payload ...]` stores payloads by due time, in the ordered map of
//!   the standard library.
//! - `FLOOR.FIRST key count [receipt ...]` removes the first payloads by due time. There is no
//!   clock.
//! - `FLOOR.WAKE count` sets a timer for each of the next `count` milliseconds, as is needed if
//!   messages become due in each of them. The timer does nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null_mut, NonNull};

use redis_module::raw;

/// The id in replies. It is as long as an id that DQ makes.
const ID: &[u8] = b"01234567-89ab-7def-8123-456789abcdef";
/// The receipt in replies. It has as many digits as a receipt of DQ.
const RECEIPT: i64 = 1_700_000_000_000_000;

/// The server's allocator, which DQ uses too.
#[global_allocator]
static ALLOCATOR: redis_module::alloc::RedisAlloc = redis_module::alloc::RedisAlloc;

/// The value of a key.
#[derive(Default)]
struct Payloads {
    /// Payloads without a due time, oldest first.
    fifo: VecDeque<Box<[u8]>>,
    /// Payloads by due time, and then by number.
    by_time: BTreeMap<(u64, u64), Box<[u8]>>,
    /// The last number that a payload was given.
    count: u64,
    /// The numbers of the payloads in `fifo`, by group.
    by_group: ByName<VecDeque<u64>>,
}

/// A map by name, with the hash function that DQ uses.
type ByName<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;

/// The beginning of a log entry. It is as long as a log entry of DQ without a payload.
const HEAD: &[u8] = b"0123456789a";
/// The command that carries log entries. Its name is as long as that of DQ.OP.
const OP: &CStr = c"fl.op";

thread_local! {
    static ENTRY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

static mut TYPE: *mut raw::RedisModuleType = null_mut();

macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        raw::$name.expect("the server has it")($($arg),*)
    };
}

/// The form in which a change is replicated.
#[derive(Clone, Copy)]
enum Form<'a> {
    /// As a log entry that holds the stored payloads.
    Entry(&'a [&'a [u8]]),
    /// As the command, verbatim.
    Verbatim,
}

/// The arguments of a command, and its context.
#[derive(Clone, Copy)]
struct Call {
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
}

impl Call {
    /// An argument of the command.
    ///
    /// # Safety
    /// The command must have more than `index` arguments.
    unsafe fn arg(&self, index: usize) -> *mut raw::RedisModuleString {
        // SAFETY: guaranteed by the caller.
        unsafe { *self.argv.add(index) }
    }

    /// The bytes of an argument, which outlive the call.
    ///
    /// # Safety
    /// As for [`Call::arg`].
    unsafe fn bytes(&self, index: usize) -> &[u8] {
        let mut len = 0;
        // SAFETY: the server returns a pointer to `len` bytes.
        unsafe {
            let at = api!(RedisModule_StringPtrLen(self.arg(index), &mut len));
            std::slice::from_raw_parts(at.cast(), len)
        }
    }

    /// Opens the key, changes its payloads, replicates the change in this form, and closes the key.
    ///
    /// # Safety
    /// The context must be live, and argument 1 must be a key.
    unsafe fn change(&self, form: Form<'_>, change: impl FnOnce(&mut Payloads)) -> c_int {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        // SAFETY: the key is open while its value is used, and nothing else uses the value then.
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
                self.replicate(name, form);
                api!(RedisModule_SignalModifiedKey(self.ctx, name));
            }
            api!(RedisModule_CloseKey(key));
        }
        raw::REDISMODULE_OK as c_int
    }

    /// Replicates a change. Without an append-only file, that is always verbatim.
    ///
    /// # Safety
    /// The context must be live.
    unsafe fn replicate(&self, name: *mut raw::RedisModuleString, form: Form<'_>) {
        // SAFETY: the server copies the log entry.
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
    /// The context must be live.
    unsafe fn reply_messages(&self, count: u32, mut next: impl FnMut() -> Option<Box<[u8]>>) {
        // SAFETY: guaranteed by the caller.
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
    /// The context must be live.
    unsafe fn reply(&self, bytes: &[u8]) {
        // SAFETY: the pointer and the length are those of a slice.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(
                self.ctx,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            ))
        };
    }
}

/// Parses a decimal number. Returns 0 for anything else.
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
    // SAFETY: the server passes a live context and `argc` arguments.
    unsafe {
        if argc != 3 {
            return api!(RedisModule_WrongArity(ctx));
        }
        let payload = call.bytes(2);
        call.change(Form::Verbatim, |payloads| {
            payloads.fifo.push_back(payload.into());
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
        call.change(Form::Verbatim, |payloads| {
            payloads.count += 1;
            let number = payloads.count;
            match payloads.by_group.get_mut(name) {
                Some(list) => list.push_back(number),
                None => {
                    let list = VecDeque::from([number]);
                    payloads.by_group.insert(name.into(), list);
                }
            }
            payloads.fifo.push_back(payload.into());
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
        call.change(Form::Verbatim, |payloads| {
            call.reply_messages(1, || payloads.fifo.pop_front())
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
        call.change(Form::Entry(&kept), |payloads| {
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
        call.change(Form::Entry(&[]), |payloads| {
            call.reply_messages(count, || {
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

/// Sets the timer `left` more times. `left` is not a pointer but a number.
unsafe extern "C" fn wake_again(ctx: *mut raw::RedisModuleCtx, left: *mut c_void) {
    if let Some(left) = (left as usize).checked_sub(1) {
        // SAFETY: the context is live, and the server passes the number back unchanged.
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
        call.change(Form::Verbatim, |_| {
            api!(RedisModule_ReplyWithLongLong(ctx, 1));
        })
    }
}

/// Ignores log entries, because they are never applied.
unsafe extern "C" fn apply(
    _: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: made by `Box::leak` in `Call::change`, freed once.
    drop(unsafe { Box::from_raw(value.cast::<Payloads>()) });
}

/// The server calls this function when it loads the module.
///
/// # Safety
/// Only the server may call it.
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
            c"floor".as_ptr(),
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
            c"dq-floor0".as_ptr(),
            0,
            &mut methods
        ));
        type Command = raw::RedisModuleCmdFunc;
        let commands: [(&CStr, Command); 8] = [
            (OP, Some(apply)),
            (c"floor.push", Some(push)),
            (c"floor.group", Some(group)),
            (c"floor.take", Some(take)),
            (c"floor.done", Some(done)),
            (c"floor.later", Some(later)),
            (c"floor.first", Some(first)),
            (c"floor.wake", Some(wake)),
        ];
        for (name, command) in commands {
            let first_key = c_int::from(name != c"floor.wake");
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
