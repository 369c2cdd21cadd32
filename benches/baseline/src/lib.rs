//! The baseline module of the benchmark. Its commands do what every queue in a module has
//! to do, and nothing else: they find the key, keep or give a payload, reply, and write
//! what was done to the log. They write it in the form in which DQ does: nearly always
//! the command is replicated verbatim, but where it names a time there is a log entry of
//! as many bytes as DQ's. There are no ids and no leases. The cost of DQ above that of
//! this module is DQ's own, and the cost of this module is the server's.
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
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};
use std::ptr::null_mut;

use redis_module::raw;

macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        raw::$name.expect("the server has it")($($arg),*)
    };
}

mod call;
mod commands;

use commands::{command, Apply, Done, First, Group, Later, Push, Take, Wake};

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

/// Command of a log entry, with a name as long as that of DQ's.
const OP: &CStr = c"bl.op";

static mut TYPE: *mut raw::RedisModuleType = null_mut();

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
            (OP, Some(command::<Apply>)),
            (c"baseline.push", Some(command::<Push>)),
            (c"baseline.group", Some(command::<Group>)),
            (c"baseline.take", Some(command::<Take>)),
            (c"baseline.done", Some(command::<Done>)),
            (c"baseline.later", Some(command::<Later>)),
            (c"baseline.first", Some(command::<First>)),
            (c"baseline.wake", Some(command::<Wake>)),
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
