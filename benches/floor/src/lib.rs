//! A module whose commands do what no queue in a module can do without, and
//! nothing else: find the key, keep or give a payload, reply, and where there is a
//! log write what was done in the form in which DQ does: nearly always as the command
//! came, but in a record of as many bytes as DQ's where it names a time. No ids, no
//! leases. What DQ costs beyond it is DQ's own; what it costs is the server's.
//!
//! `FLOOR.LATER key due payload [payload ...]` keeps them in the order of due
//! times too, by the standard library's ordered map, and `FLOOR.FIRST key count
//! [receipt ...]` gives the first by that order. There is no clock behind it; `FLOOR.WAKE
//! count` has the server wake in each of so many milliseconds, as it must where
//! something falls due in each, and does nothing then.
//!
//! `FLOOR.PUSH key payload` answers 36 bytes, as DQ.SEND answers an id.
//! `FLOOR.GROUP key payload GROUP name` does the same and keeps in a list of each name
//! which payloads are its.
//! `FLOOR.TAKE key [ACK 1 receipt]` lets the receipt be and answers 36 bytes, two
//! numbers and the oldest payload, as DQ.FETCH does. `FLOOR.DONE key receipt`
//! answers 1, as DQ.ACK does.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null_mut, NonNull};

use redis_module::raw;

/// As long as an id that DQ makes.
const ID: &[u8] = b"01234567-89ab-7def-8123-456789abcdef";
/// As long as a receipt.
const RECEIPT: i64 = 1_700_000_000_000_000;

/// What allocates for DQ, too.
#[global_allocator]
static ALLOCATOR: redis_module::alloc::RedisAlloc = redis_module::alloc::RedisAlloc;

/// What a key holds.
#[derive(Default)]
struct Payloads {
    in_line: VecDeque<Box<[u8]>>,
    /// By due time, and the number of those before.
    by_time: BTreeMap<(u64, u64), Box<[u8]>>,
    count: u64,
    /// The numbers of the payloads in line that have a name.
    by_group: ByName<VecDeque<u64>>,
}

/// Things by names, hashed as DQ does.
type ByName<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;

/// What a record begins with: as long as one of DQ without a payload.
const HEAD: &[u8] = b"0123456789a";
/// A name as long as that of DQ's.
const OP: &CStr = c"fl.op";

thread_local! {
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

static mut TYPE: *mut raw::RedisModuleType = null_mut();

macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        raw::$name.expect("the server has it")($($arg),*)
    };
}

/// In which form something is logged.
#[derive(Clone, Copy)]
enum Form<'a> {
    /// As a record that holds what was kept.
    Record(&'a [&'a [u8]]),
    /// As the command came.
    Command,
}

/// The arguments of a command, and its context.
#[derive(Clone, Copy)]
struct Call {
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
}

impl Call {
    /// # Safety
    /// The command has more arguments than that.
    unsafe fn arg(&self, index: usize) -> *mut raw::RedisModuleString {
        // SAFETY: vouched for by the caller.
        unsafe { *self.argv.add(index) }
    }

    /// # Safety
    /// As [`Call::arg`]; the bytes are those of an argument, so they outlive
    /// the call.
    unsafe fn bytes(&self, index: usize) -> &[u8] {
        let mut len = 0;
        // SAFETY: the server gives a pointer to so many bytes.
        unsafe {
            let at = api!(RedisModule_StringPtrLen(self.arg(index), &mut len));
            std::slice::from_raw_parts(at.cast(), len)
        }
    }

    /// Opens the key, does something to its payloads, logs it in that form, and
    /// closes the key.
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

    /// Writes what was done where there is a log.
    ///
    /// # Safety
    /// The context is live.
    unsafe fn log(&self, name: *mut raw::RedisModuleString, form: Form<'_>) {
        // SAFETY: the server copies the record.
        unsafe {
            let flags = api!(RedisModule_GetContextFlags(self.ctx));
            let is_logged = flags & raw::REDISMODULE_CTX_FLAGS_AOF as c_int != 0;
            let (Form::Record(kept), true) = (form, is_logged) else {
                api!(RedisModule_ReplicateVerbatim(self.ctx));
                return;
            };
            RECORD.with_borrow_mut(|record| {
                record.clear();
                record.extend_from_slice(HEAD);
                kept.iter()
                    .for_each(|bytes| record.extend_from_slice(bytes));
                api!(RedisModule_Replicate(
                    self.ctx,
                    OP.as_ptr(),
                    c"sb".as_ptr(),
                    name,
                    record.as_ptr(),
                    record.len()
                ));
            });
        }
    }

    /// Replies with so many payloads as with messages.
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

    /// # Safety
    /// The context is live.
    unsafe fn reply(&self, bytes: &[u8]) {
        // SAFETY: so many bytes are there.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(
                self.ctx,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            ))
        };
    }
}

/// Milliseconds in decimal digits; anything else counts as none.
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
        call.with(Form::Command, |payloads| {
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
        call.with(Form::Command, |payloads| {
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
        call.with(Form::Command, |payloads| {
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
        call.with(Form::Record(&kept), |payloads| {
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
        call.with(Form::Record(&[]), |payloads| {
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

/// The timer has fired, or is begun: `left` is no pointer but how often it is to fire.
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
        call.with(Form::Command, |_| {
            api!(RedisModule_ReplyWithLongLong(ctx, 1));
        })
    }
}

/// Nobody reads the log.
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
