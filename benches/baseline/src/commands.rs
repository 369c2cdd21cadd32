//! The commands.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::os::raw::{c_int, c_void};

use redis_module::raw;

use crate::call::{Call, Form};

/// A command of the module.
pub trait Command {
    /// How many arguments the command takes, with its name.
    const ARGUMENTS: RangeInclusive<c_int>;

    /// Runs the command and replies.
    ///
    /// # Safety
    /// The context is live, and the number of arguments is one of [`Command::ARGUMENTS`].
    unsafe fn run(call: Call) -> c_int;
}

/// Checks the number of arguments and runs a command.
///
/// # Safety
/// Only for the server.
pub unsafe extern "C" fn command<C: Command>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let call = Call { ctx, argv, argc };
    // SAFETY: the server calls with a live context and this number of arguments.
    unsafe {
        if C::ARGUMENTS.contains(&argc) {
            C::run(call)
        } else {
            call.wrong_arity()
        }
    }
}

/// Parses a decimal number. Anything else gives 0.
fn number(digits: &[u8]) -> u64 {
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    digits.parse().unwrap_or_default()
}

/// `BASELINE.PUSH key payload`
pub struct Push;

impl Command for Push {
    const ARGUMENTS: RangeInclusive<c_int> = 3..=3;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            let payload = call.bytes(2);
            call.with(Form::Verbatim, |payloads| {
                payloads.in_line.push_back(payload.into());
                call.reply_id();
            })
        }
    }
}

/// `BASELINE.GROUP key payload GROUP name`
pub struct Group;

impl Command for Group {
    const ARGUMENTS: RangeInclusive<c_int> = 5..=5;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            if !call.bytes(3).eq_ignore_ascii_case(b"GROUP") {
                return call.wrong_arity();
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
                call.reply_id();
            })
        }
    }
}

/// `BASELINE.TAKE key [ACK 1 receipt]`
pub struct Take;

impl Command for Take {
    const ARGUMENTS: RangeInclusive<c_int> = 2..=c_int::MAX;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            call.with(Form::Verbatim, |payloads| {
                call.give(1, || payloads.in_line.pop_front())
            })
        }
    }
}

/// `BASELINE.LATER key due payload [payload ...]`
pub struct Later;

impl Command for Later {
    const ARGUMENTS: RangeInclusive<c_int> = 4..=c_int::MAX;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            let due = number(call.bytes(2));
            let kept: Vec<&[u8]> = (3..call.argc as usize).map(|at| call.bytes(at)).collect();
            call.with(Form::Entry(&kept), |payloads| {
                if kept.len() > 1 {
                    api!(RedisModule_ReplyWithArray(call.ctx, kept.len() as _));
                }
                for payload in &kept {
                    payloads.count += 1;
                    let key = (due, payloads.count);
                    payloads.by_time.insert(key, (*payload).into());
                    call.reply_id();
                }
            })
        }
    }
}

/// `BASELINE.FIRST key count [receipt ...]`
pub struct First;

impl Command for First {
    const ARGUMENTS: RangeInclusive<c_int> = 3..=c_int::MAX;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            let count = number(call.bytes(2)) as u32;
            call.with(Form::Entry(&[]), |payloads| {
                call.give(count, || {
                    let first = payloads.by_time.pop_first();
                    first.map(|(_, payload)| payload)
                });
            })
        }
    }
}

/// `BASELINE.DONE key receipt`
pub struct Done;

impl Command for Done {
    const ARGUMENTS: RangeInclusive<c_int> = 3..=3;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            call.with(Form::Verbatim, |_| {
                api!(RedisModule_ReplyWithLongLong(call.ctx, 1));
            })
        }
    }
}

/// `BASELINE.WAKE count`
pub struct Wake;

impl Command for Wake {
    const ARGUMENTS: RangeInclusive<c_int> = 2..=2;

    unsafe fn run(call: Call) -> c_int {
        // SAFETY: the caller guarantees it.
        unsafe {
            let count = number(call.bytes(1));
            api!(RedisModule_ReplyWithLongLong(call.ctx, count as i64));
            wake_again(call.ctx, count as *mut c_void);
        }
        raw::REDISMODULE_OK as c_int
    }
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

/// The command of a log entry. It does nothing: the log is never read.
pub struct Apply;

impl Command for Apply {
    const ARGUMENTS: RangeInclusive<c_int> = 0..=c_int::MAX;

    unsafe fn run(_: Call) -> c_int {
        raw::REDISMODULE_OK as c_int
    }
}
