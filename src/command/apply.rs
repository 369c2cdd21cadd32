//! DQ.APPLY: repeats what was done elsewhere, from its record. Replicas, the
//! append-only file and slot migrations send it; users have no use for it.

use crate::command::execute::conclude;
use crate::core::op::Effects;
use crate::core::settings::Clock;
use crate::ffi::{warn, Args, CommandResult, Context, Name};
use crate::persist::record::{Chunk, Record};
use crate::persist::restore;
use crate::runtime::moment;

/// Applies one record.
pub fn apply(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let (Some(key), Some(bytes)) = (args.name(1), args.get(2)) else {
        return Err("ERR DQ.APPLY needs a key and a record".into());
    };
    let obey = ctx.must_obey();
    match apply_record(ctx, key, bytes) {
        Err(why) if obey => {
            // An error on a replication link would not undo what the primary
            // has done; the difference must be seen, not hidden.
            warn(&format!("a record could not be applied: {why}"));
        }
        Err(why) => return Err(format!("ERR {why}").into()),
        Ok(()) => {}
    }
    ctx.reply().status(c"OK");
    Ok(())
}

fn apply_record(ctx: &mut Context, key: Name<'_>, bytes: &[u8]) -> Result<(), String> {
    match Chunk::of(bytes)? {
        None => repeat(ctx, key, &Record::decode(bytes)?),
        Some(chunk) => take_in(ctx, key, chunk),
    }
}

/// Does what a record says was done elsewhere.
fn repeat(ctx: &mut Context, key: Name<'_>, record: &Record<'_, '_>) -> Result<(), String> {
    let mut opened = ctx.open_write(key).map_err(|_| WRONG_TYPE)?;
    let (here, queue) = opened.split();
    let queue = match (queue, &record.created) {
        (Some(queue), _) => queue,
        (None, Some(creation)) => opened.create(creation.queue()),
        (None, None) => return Err("there is no queue of which the record is".to_owned()),
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
    moment::saw_receipt(queue.last_receipt(), moment);
    here.replicate_command();
    let told = conclude(here, key, queue, moment, effects);
    drop(opened);
    told.tell(ctx, key);
    done.map(|_| ())
}

/// Takes in a part of a whole queue, as an append-only file without preamble
/// has it.
fn take_in(ctx: &mut Context, key: Name<'_>, chunk: Chunk<'_>) -> Result<(), String> {
    let db = ctx.db();
    let mut opened = ctx.open_write(key).map_err(|_| WRONG_TYPE)?;
    let (here, _) = opened.split();
    here.replicate_command();
    if let Some(queue) = restore::take(db, key.bytes(), chunk)? {
        let queue = opened.create(queue);
        let moment = moment::now();
        moment::saw_receipt(queue.last_receipt(), moment);
        let effects = Effects {
            visible: true,
            ..Effects::default()
        };
        conclude(here, key, queue, moment, effects);
    }
    Ok(())
}

const WRONG_TYPE: &str = "the key holds another type";
