//! Repeats changes that were made before or elsewhere: on replicas, from the append-only file, and
//! in slot migration.
//!
//! Most changes come as log entries in DQ.OP, a command that is not for clients. An operation that
//! was replicated verbatim comes as its command: it is applied at the time of the log entry before
//! it.

use std::cell::RefCell;

use crate::redis::{faults, Args, CommandResult, Context, Name, WrongType};
use dq_queue::codec::effect;
use dq_queue::codec::log_entry::{Chunk, LogEntry};
use dq_queue::codec::restore::Restoring;
use dq_queue::codec::verbatim;
use dq_queue::Op;

use super::clock;
use super::commit::{change, Replication, Slot};
use super::{effects, rights};

const NO_QUEUE: &str = "the key has no queue, and the log entry does not create one";
const NO_CHANGE: &str =
    "it changes nothing here, so the queue was not the same as where the log entry was written";
const WRONG_TYPE: &str = "the key holds a value of another type";
/// The server has checked only the keys that the command names.
const LIMITED: &str =
    "NOPERM a log entry may name any key, so this needs the right to write to every key";

thread_local! {
    static RESTORING: RefCell<Restoring> = RefCell::default();
}

/// `DQ.OP key entry [entry ...]`: applies log entries of one queue, in their order.
///
/// Errors: too few arguments, a user who may not write to every key, or an entry that cannot be
/// read, and then nothing was done. Also an entry that cannot be applied; those after it are applied nevertheless, as on every other server
/// that gets this command. On a replica and while loading, an entry that cannot be read or applied
/// is logged instead.
pub fn op(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let (Some(key), true) = (args.name(1), args.len() > 2) else {
        return Err("ERR DQ.OP needs a key and a log entry".into());
    };
    let entries = (2..args.len()).filter_map(|n| Some((key, args.get(n)?)));
    replay_all(ctx, &entries.collect::<Vec<_>>())
}

/// `DQ.OPS key entry [key entry ...]`: applies log entries of several queues, in their order. They
/// are one operation: all of them come, or none.
///
/// Errors: as for [`op`].
pub fn ops(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    if args.len() < 3 || args.len().is_multiple_of(2) {
        return Err("ERR DQ.OPS needs pairs of a key and a log entry".into());
    }
    let pairs = (1..args.len()).step_by(2);
    let entries = pairs.filter_map(|n| Some((args.name(n)?, args.get(n + 1)?)));
    replay_all(ctx, &entries.collect::<Vec<_>>())
}

fn replay_all(ctx: &mut Context, entries: &[(Name<'_>, &[u8])]) -> CommandResult {
    let must_obey = ctx.must_obey();
    if !must_obey {
        if !rights::may_apply_entries(ctx) {
            return Err(LIMITED.into());
        }
        check_all(ctx, entries)?;
    }
    let mut is_replicated = false;
    let mut failed = None;
    for (key, bytes) in entries {
        if let Err(why) = replay_bytes(ctx, *key, bytes, &mut is_replicated) {
            // An error reply to the primary would not undo its change. The log must show that
            // this server differs from it.
            if must_obey {
                faults::entry_unapplied(key.bytes(), verb_of(bytes), &why);
            } else {
                failed.get_or_insert(why);
            }
        }
    }
    match failed {
        Some(why) => Err(format!("ERR {why}").into()),
        None => {
            ctx.reply().status(c"OK");
            Ok(())
        }
    }
}

/// Checks log entries of a client before anything is done. The command is replicated as it is, and
/// other servers pass over an entry that they cannot read, so this server may not stop at it.
///
/// Errors: a key of another type, or an entry that cannot be read or names too many due events.
fn check_all(ctx: &mut Context, entries: &[(Name<'_>, &[u8])]) -> CommandResult {
    for (key, bytes) in entries {
        if effect::decode(bytes)
            .map_err(|why| format!("ERR {why}"))?
            .is_some()
        {
            match ctx.holds_queue(*key) {
                true => return Err(WrongType.into()),
                false => continue,
            }
        }
        ctx.open_read(*key)?;
        check_bytes(bytes).map_err(|why| format!("ERR {why}"))?;
    }
    Ok(())
}

fn check_bytes(bytes: &[u8]) -> Result<(), String> {
    match Chunk::of(bytes)? {
        None => LogEntry::decode(bytes)?.check_steps(),
        Some(_) => Ok(()),
    }
}

/// The verb of a log entry. That of an entry that cannot be read is the command that brought it.
fn verb_of(bytes: &[u8]) -> &'static str {
    if let Ok(Some(_)) = effect::decode(bytes) {
        return "APPLY";
    }
    match Chunk::of(bytes) {
        Ok(None) => LogEntry::decode(bytes).map_or("DQ.OP", |entry| entry.op.verb()),
        _ => "DQ.OP",
    }
}

/// Repeats the running command, which was replicated verbatim. It always replies OK. A command
/// that cannot be repeated is counted and logged.
pub fn command(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> CommandResult {
    let entry = match ctx.open_read(key) {
        Ok(opened) => match opened.get() {
            Some(queue) => Ok(verbatim::log_entry(queue, op)),
            None => Err(NO_QUEUE.to_owned()),
        },
        Err(_) => Err(WRONG_TYPE.to_owned()),
    };
    let replayed = entry.and_then(|entry| replay(ctx, key, &entry, &mut false));
    if let Err(why) = replayed {
        faults::entry_unapplied(key.bytes(), op.verb(), &why);
    }
    ctx.reply().status(c"OK");
    Ok(())
}

fn replay_bytes(
    ctx: &mut Context,
    key: Name<'_>,
    bytes: &[u8],
    is_replicated: &mut bool,
) -> Result<(), String> {
    if let Some(effect) = effect::decode(bytes)? {
        if !std::mem::replace(is_replicated, true) {
            ctx.replicate_verbatim();
        }
        return effects::repeat(ctx, key, &effect);
    }
    match Chunk::of(bytes)? {
        None => replay(ctx, key, &LogEntry::decode(bytes)?, is_replicated),
        Some(chunk) => restore(ctx, key, chunk, is_replicated),
    }
}

/// Applies one log entry.
fn replay(
    ctx: &mut Context,
    key: Name<'_>,
    entry: &LogEntry<'_, '_>,
    is_replicated: &mut bool,
) -> Result<(), String> {
    let must_obey = ctx.must_obey();
    change(ctx, key, |slot| {
        let moment = entry.moment();
        let queue = match (slot.split().1.is_some(), &entry.created) {
            (true, _) => slot.split().1,
            (false, Some(creation)) => Some(slot.create(creation.queue())),
            (false, None) => None,
        };
        let queue = queue.ok_or(NO_QUEUE)?;
        let mut done = entry.replay(queue).map(|_| ());
        // Only what changes a queue is logged, and what makes one.
        let is_nothing = entry.created.is_none() && !queue.has_changed();
        if must_obey && is_nothing && done.is_ok() {
            done = Err(NO_CHANGE.to_owned());
        }
        if entry.created.is_some() {
            queue.made_at(moment);
        }
        if entry.before.cut > 0 {
            queue.notes.clock_was_cut(moment.ms());
        }
        // The clock of the queue is that of another server. The effect on this server's clock is
        // decided when it acts on its own.
        queue.forget_lead();
        replicate_once(slot, is_replicated);
        slot.commit(moment, Replication::Replayed);
        done
    })
    .map_err(|_| WRONG_TYPE)?
}

/// Processes one part of a whole queue, as an append-only file without an RDB preamble contains it.
/// The last part puts the queue into its key.
fn restore(
    ctx: &mut Context,
    key: Name<'_>,
    chunk: Chunk<'_>,
    is_replicated: &mut bool,
) -> Result<(), String> {
    let db = ctx.db();
    change(ctx, key, |slot| {
        replicate_once(slot, is_replicated);
        let restored =
            RESTORING.with_borrow_mut(|restoring| restoring.take(db, key.bytes(), chunk))?;
        if let Some(queue) = restored {
            slot.create(queue);
            slot.commit(clock::now(), Replication::Restored);
        }
        Ok(())
    })
    .map_err(|_| WRONG_TYPE)?
}

/// Replicates the running command verbatim to this server's own replicas and append-only file,
/// unless that was already done.
fn replicate_once(slot: &mut Slot<'_>, is_replicated: &mut bool) {
    if !std::mem::replace(is_replicated, true) {
        slot.split().0.replicate_verbatim();
    }
}
