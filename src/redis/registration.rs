//! Registers the commands with the server, from the table that the layers above hand in.

use super::advice::advice;
use super::docs::{describe, key_flags};
use super::faults::entry_unapplied;
use super::guard::{contain, contain_command};
use super::log::c_text;
use super::spec::{Access, CommandSpec, Keys};
use super::{raw, Args};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

type Entry = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    *mut *mut raw::RedisModuleString,
    c_int,
) -> c_int;

/// The table. It is an argument of the load, not a value that is made at first use, so `lazy_static`
/// cannot hold it.
static COMMANDS: OnceLock<&'static [CommandSpec]> = OnceLock::new();

/// Makes one C function for each row of the table, because the server does not pass the name under
/// which a command was registered. There are more functions than commands.
macro_rules! entries {
    ($($row:literal)*) => { [$(entry::<$row>),*] };
}

const ENTRIES: [Entry; 64] = entries![
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
];

/// The number of calls of each command, by its row in the table.
static CALLS: [AtomicU64; ENTRIES.len()] = [const { AtomicU64::new(0) }; ENTRIES.len()];

/// The names of the commands, each with the number of its calls since the module was loaded.
pub fn calls() -> impl Iterator<Item = (&'static str, u64)> {
    let commands = COMMANDS.get().copied().unwrap_or_default();
    let calls = CALLS.iter().map(|calls| calls.load(Ordering::Relaxed));
    commands.iter().map(|command| command.name).zip(calls)
}

unsafe extern "C" fn entry<const ROW: usize>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let Some(spec) = COMMANDS.get().and_then(|commands| commands.get(ROW)) else {
        return raw::REDISMODULE_ERR as c_int;
    };
    // SAFETY: context and arguments are valid for this call.
    unsafe {
        let args = Args::new(argv, argc);
        if !matches!(spec.keys, Keys::First | Keys::None)
            && api!(RedisModule_IsKeysPositionRequest(ctx)) != 0
        {
            contain((), || report_keys(ctx, spec, args));
            return raw::REDISMODULE_OK as c_int;
        }
        contain_command(ctx, |context| {
            if let Some(calls) = CALLS.get(ROW) {
                // Only the main thread counts, so this need not be an atomic addition, which would
                // be as expensive as some allocations.
                calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            if let Err(failure) = (spec.handler)(context, args) {
                if context.is_replay() {
                    let key = args.get(1).unwrap_or_default();
                    entry_unapplied(key, spec.name, failure.0.trim_start_matches("ERR "));
                    // An error would not undo the change of the primary, and can end the server
                    // (propagation-error-behavior).
                    return context.reply().status(c"OK");
                }
                let advice = advice(spec, &failure.0);
                context.reply().error(&(failure.0 + advice.as_str()));
            }
        });
    }
    raw::REDISMODULE_OK as c_int
}

/// Reports the keys of a call to a server that asks for them instead of running the command.
///
/// # Safety
/// `ctx` must be the context of this call, in which the server asks for the keys.
#[cold]
unsafe fn report_keys(ctx: *mut raw::RedisModuleCtx, spec: &CommandSpec, args: Args<'_>) {
    // SAFETY: the caller guarantees it.
    unsafe {
        for (position, access) in keys_of(spec, args) {
            api!(RedisModule_KeyAtPosWithFlags(
                ctx,
                position as c_int,
                key_flags(access) as c_int
            ));
        }
    }
}

/// The positions of the keys of a call, and its access to each. The server can find the keys
/// itself only where they are a plain range of arguments; Redis 7.0 uses nothing else to route
/// commands in a cluster.
fn keys_of(spec: &CommandSpec, args: Args<'_>) -> Vec<(usize, Access)> {
    let positions = match spec.keys {
        Keys::None => 0..0,
        Keys::First => 1..2,
        Keys::Counted => {
            let count = args
                .get(1)
                .and_then(|count| std::str::from_utf8(count).ok())
                .and_then(|count| count.parse::<usize>().ok())
                .filter(|count| *count <= args.len().saturating_sub(2));
            2..2 + count.unwrap_or(0)
        }
        Keys::Pairs => {
            let positions = (1..args.len()).step_by(2);
            return positions.map(|position| (position, spec.access)).collect();
        }
        Keys::FirstAnd(find) => {
            let others = find(&args.after_name()).into_iter();
            let others = others.map(|(position, access)| (position + 1, access));
            return [(1, spec.access)].into_iter().chain(others).collect();
        }
        Keys::AllOrFirst => {
            let is_clock_move = args.len() == 4
                && args.get(2).is_some_and(|word| {
                    word.eq_ignore_ascii_case(b"ADVANCE") || word.eq_ignore_ascii_case(b"TO")
                });
            1..if is_clock_move { 2 } else { args.len() }
        }
    };
    positions.map(|position| (position, spec.access)).collect()
}

/// Registers every command. The error names the command that the server has refused.
///
/// # Safety
/// `ctx` must be the context of the module's load.
pub(super) unsafe fn register(
    ctx: *mut raw::RedisModuleCtx,
    commands: &'static [CommandSpec],
) -> Result<(), String> {
    if commands.len() > ENTRIES.len() {
        return Err("the module has more commands than entry functions".into());
    }
    COMMANDS.get_or_init(|| commands);
    // SAFETY: the caller guarantees it, here and below.
    let own_category = unsafe {
        raw::RedisModule_AddACLCategory
            .is_some_and(|add| add(ctx, c"dq".as_ptr()) == raw::REDISMODULE_OK as c_int)
    };
    for (spec, entry) in commands.iter().zip(ENTRIES) {
        // In lower case, as the server's own commands are in INFO commandstats and CLIENT LIST.
        let name = c_text(&spec.name.to_ascii_lowercase());
        let flags = c_text(spec.flags);
        let (last, step) = match spec.keys {
            Keys::First | Keys::FirstAnd(_) => (1, 1),
            Keys::None | Keys::Counted => (0, 0),
            Keys::Pairs => (-1, 2),
            Keys::AllOrFirst => (-1, 1),
        };
        let first = c_int::from(last != 0);
        // SAFETY: as above. The server copies the texts.
        unsafe {
            let made = api!(RedisModule_CreateCommand(
                ctx,
                name.as_ptr(),
                Some(entry),
                flags.as_ptr(),
                first,
                last,
                step
            ));
            let command = api!(RedisModule_GetCommand(ctx, name.as_ptr()));
            if made != raw::REDISMODULE_OK as c_int
                || command.is_null()
                || !describe(command, spec)
                || !categorise(command, spec, own_category)
            {
                return Err(format!("the server refuses the command {}", spec.name));
            }
        }
    }
    Ok(())
}

/// Puts a command into its ACL categories, if the server lets modules do so. Before 7.2 the
/// commands of modules belong to no category. Returns false if the server refuses.
///
/// # Safety
/// `command` must be a command of this module.
unsafe fn categorise(
    command: *mut raw::RedisModuleCommand,
    spec: &CommandSpec,
    own_category: bool,
) -> bool {
    // SAFETY: the pointers were set when the API was initialised, and never change.
    let Some(set) = (unsafe { raw::RedisModule_SetCommandACLCategories }) else {
        return true;
    };
    let has = |flag| spec.flags.split(' ').any(|word| word == flag);
    let mut categories = vec![if has("write") { "write" } else { "read" }];
    categories.push(if has("fast") { "fast" } else { "slow" });
    if has("blocking") {
        categories.push("blocking");
    }
    if has("admin") {
        categories.extend(["admin", "dangerous"]);
    }
    if own_category {
        categories.push("dq");
    }
    let categories = c_text(&categories.join(" "));
    // SAFETY: the caller guarantees it. The server only reads the text.
    unsafe { set(command, categories.as_ptr()) == raw::REDISMODULE_OK as c_int }
}
