//! DQ.CREATE.

use crate::command::error;
use crate::command::execute::{creation, settle};
use crate::ffi::{Args, CommandResult, Context};
use crate::runtime::{moment, wake};
use dq_queue::args::{settings, Words};
use dq_queue::codec::record::Record;
use dq_queue::{Error, Op};

/// Makes a queue.
pub fn create(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let new = settings::create(Words::new(&words))?;
    let mut opened = ctx.open_write(key)?;
    if opened.get().is_some() {
        return Err(error::refusal(&Error::Exists));
    }
    let creation = creation(&new.changes, new.clock);
    let (here, _) = opened.split();
    let moment = moment::now();
    let queue = opened.create(creation.queue());
    queue.made_at(moment);
    queue.noted_term = wake::term();
    let record = Record::of(moment, 0, Some(creation), &Op::Tick);
    let told = settle(here, key, queue, moment, &record);
    here.reply().status(c"OK");
    drop(opened);
    told.tell(ctx, key);
    Ok(())
}
