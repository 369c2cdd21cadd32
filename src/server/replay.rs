//! Repeats what was done elsewhere: on replicas, from the append-only file, and in slot migration.
//!
//! Nearly everything comes as log entries, by DQ.OP, which users have no use for. An operation
//! that was replicated verbatim comes as its command: it happens at the time of the entry before
//! it.

use std::cell::RefCell;

use crate::redis::{warn, Args, CommandResult, Context, Name};
use dq_queue::codec::log_entry::{Chunk, LogEntry};
use dq_queue::codec::restore::Restoring;
use dq_queue::codec::verbatim;
use dq_queue::settings::Clock;
use dq_queue::Op;

use super::clock;
use super::commit::{change, Replication, Slot};

const NO_QUEUE: &str = "there is no queue of which the record is";
const WRONG_TYPE: &str = "the key holds another type";

thread_local! {
    static RESTORING: RefCell<Restoring> = RefCell::default();
}

/// `DQ.OP key entry [entry ...]`: applies log entries of one queue in their order.
pub fn op(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let (Some(key), true) = (args.name(1), args.len() > 2) else {
        return Err("ERR DQ.OP needs a key and a record".into());
    };
    let must_obey = ctx.must_obey();
    let mut is_passed_on = false;
    for bytes in (2..args.len()).filter_map(|n| args.get(n)) {
        match replay_bytes(ctx, key, bytes, &mut is_passed_on) {
            Err(why) if must_obey => {
                // An error on a replication link would not undo what the
                // primary has done; the difference must be seen, not hidden.
                warn(&format!("a record could not be applied: {why}"));
            }
            Err(why) => return Err(format!("ERR {why}").into()),
            Ok(()) => {}
        }
    }
    ctx.reply().status(c"OK");
    Ok(())
}

/// Repeats the running command, which was replicated verbatim.
pub fn command(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> CommandResult {
    let entry = {
        let opened = ctx.open_read(key)?;
        opened.get().map(|queue| verbatim::log_entry(queue, op))
    };
    let replayed = match entry {
        Some(entry) => replay(ctx, key, &entry, &mut false),
        None => Err(NO_QUEUE.to_owned()),
    };
    if let Err(why) = replayed {
        warn(&format!("a command could not be repeated: {why}"));
    }
    ctx.reply().status(c"OK");
    Ok(())
}

fn replay_bytes(
    ctx: &mut Context,
    key: Name<'_>,
    bytes: &[u8],
    is_passed_on: &mut bool,
) -> Result<(), String> {
    match Chunk::of(bytes)? {
        None => replay(ctx, key, &LogEntry::decode(bytes)?, is_passed_on),
        Some(chunk) => restore(ctx, key, chunk, is_passed_on),
    }
}

/// Applies a log entry.
fn replay(
    ctx: &mut Context,
    key: Name<'_>,
    entry: &LogEntry<'_, '_>,
    is_passed_on: &mut bool,
) -> Result<(), String> {
    change(ctx, key, |slot| {
        let moment = entry.moment();
        let queue = match (slot.split().1.is_some(), &entry.created) {
            (true, _) => slot.split().1,
            (false, Some(creation)) => Some(slot.create(creation.queue())),
            (false, None) => None,
        };
        let queue = queue.ok_or(NO_QUEUE)?;
        if queue.clock() == Clock::Server {
            clock::saw_time(moment.us);
        }
        let done = entry.replay(queue);
        if entry.created.is_some() {
            queue.made_at(moment);
        }
        pass_on(slot, is_passed_on);
        slot.commit(moment, Replication::Replayed);
        done.map(|_| ())
    })
    .map_err(|_| WRONG_TYPE)?
}

/// Takes in a part of a whole queue, as an append-only file without preamble has it.
fn restore(
    ctx: &mut Context,
    key: Name<'_>,
    chunk: Chunk<'_>,
    is_passed_on: &mut bool,
) -> Result<(), String> {
    let db = ctx.db();
    change(ctx, key, |slot| {
        pass_on(slot, is_passed_on);
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

/// The command goes on to our own replicas and file as it came, once.
fn pass_on(slot: &mut Slot<'_>, is_passed_on: &mut bool) {
    if !std::mem::replace(is_passed_on, true) {
        slot.split().0.replicate_command();
    }
}
