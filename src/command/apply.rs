//! Repeats what was done elsewhere, on replicas and from the append-only file.
//!
//! Nearly all of it comes as records, by DQ.OP, which slot migrations send, too;
//! users have no use for it. An operation whose command says all that it does may
//! come as that command: it was done at the time of the record before it.

use std::cell::RefCell;

use crate::command::execute::conclude;
use crate::ffi::{warn, Args, CommandResult, Context, Name};
use crate::runtime::moment;
use dq_queue::codec::command;
use dq_queue::codec::record::{Chunk, Record};
use dq_queue::codec::restore::Restoring;
use dq_queue::op::Effects;
use dq_queue::settings::Clock;
use dq_queue::Op;

thread_local! {
    static RESTORING: RefCell<Restoring> = RefCell::default();
}

/// Applies records of one queue, one after the other.
pub fn apply(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let (Some(key), true) = (args.name(1), args.len() > 2) else {
        return Err("ERR DQ.OP needs a key and a record".into());
    };
    let obey = ctx.must_obey();
    let mut is_passed_on = false;
    for bytes in (2..args.len()).filter_map(|n| args.get(n)) {
        match apply_record(ctx, key, bytes, &mut is_passed_on) {
            Err(why) if obey => {
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

/// Does again what the running command did elsewhere.
pub fn repeat_command(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) -> CommandResult {
    let record = {
        let opened = ctx.open_read(key)?;
        opened.get().map(|queue| command::record(queue, op))
    };
    let repeated = match record {
        Some(record) => repeat(ctx, key, &record, &mut false),
        None => Err(NO_QUEUE.to_owned()),
    };
    if let Err(why) = repeated {
        warn(&format!("a command could not be repeated: {why}"));
    }
    ctx.reply().status(c"OK");
    Ok(())
}

fn apply_record(
    ctx: &mut Context,
    key: Name<'_>,
    bytes: &[u8],
    is_passed_on: &mut bool,
) -> Result<(), String> {
    match Chunk::of(bytes)? {
        None => repeat(ctx, key, &Record::decode(bytes)?, is_passed_on),
        Some(chunk) => take_in(ctx, key, chunk, is_passed_on),
    }
}

/// The command goes on to our own replicas and file as it came, once.
fn pass_on(ctx: &Context, is_passed_on: &mut bool) {
    if !std::mem::replace(is_passed_on, true) {
        ctx.replicate_command();
    }
}

/// Does what a record says was done elsewhere.
fn repeat(
    ctx: &mut Context,
    key: Name<'_>,
    record: &Record<'_, '_>,
    is_passed_on: &mut bool,
) -> Result<(), String> {
    let mut opened = ctx.open_write(key).map_err(|_| WRONG_TYPE)?;
    let (here, queue) = opened.split();
    let queue = match (queue, &record.created) {
        (Some(queue), _) => queue,
        (None, Some(creation)) => opened.create(creation.queue()),
        (None, None) => return Err(NO_QUEUE.to_owned()),
    };
    let moment = record.moment();
    if queue.clock() == Clock::Server {
        moment::saw_time(moment.us);
    }
    let done = record.replay(queue);
    if record.created.is_some() {
        queue.made_at(moment);
    }
    let effects = queue.take_effects();
    // The time of a manual clock says nothing of receipts.
    moment::saw_receipt(queue.last_receipt(), moment.us.max(moment::now().us));
    pass_on(here, is_passed_on);
    let told = conclude(here, key, queue, moment, effects);
    drop(opened);
    told.tell(ctx, key);
    done.map(|_| ())
}

/// Takes in a part of a whole queue, as an append-only file without preamble
/// has it.
fn take_in(
    ctx: &mut Context,
    key: Name<'_>,
    chunk: Chunk<'_>,
    is_passed_on: &mut bool,
) -> Result<(), String> {
    let db = ctx.db();
    let mut opened = ctx.open_write(key).map_err(|_| WRONG_TYPE)?;
    let (here, _) = opened.split();
    pass_on(here, is_passed_on);
    if let Some(queue) =
        RESTORING.with_borrow_mut(|restoring| restoring.take(db, key.bytes(), chunk))?
    {
        let queue = opened.create(queue);
        let moment = moment::now();
        moment::saw_receipt(queue.last_receipt(), moment.us);
        let effects = Effects {
            visible: true,
            ..Effects::default()
        };
        conclude(here, key, queue, moment, effects);
    }
    Ok(())
}

const WRONG_TYPE: &str = "the key holds another type";
const NO_QUEUE: &str = "there is no queue of which the record is";
