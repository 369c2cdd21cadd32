//! Runs the operation of a command on one queue: opens the key, processes due events, applies the
//! operation, replies and replicates.

use crate::redis::{CommandResult, Context, Failure, Name, Reply, Value};
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::codec::verbatim;
use dq_queue::op::{self, DueTime};
use dq_queue::settings::{Changes, Clock};
use dq_queue::{Done, Millis, Moment, Op, Queue};

use super::apply::{renewing, replicated, sent_nothing};
use super::begin::Begun;
use super::{change_up_to_date, creation, settle_begun, Refused, Replication, Slot};
use crate::server::{clock, errors, wakeups};

/// The behaviour of an operation if the key does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Creates a queue with the module's defaults.
    Create,
    /// The operation changes nothing, and replies like an empty queue.
    Nothing,
    /// Replies with an error.
    Refuse,
}

/// The form in which a command may be replicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The operation is replicated as a log entry, with its moment.
    Entry,
    /// Verbatim if the command contains all data that a replica needs (see [`verbatim`]),
    /// otherwise as a log entry.
    Verbatim,
}

/// Runs an operation on the queue of a key, and replicates it as a log entry. `reply` gets the
/// queue after the operation and its outcome, or `None` if there is no queue.
///
/// Errors: the key holds another type, there is no queue and `missing` is [`Missing::Refuse`], or
/// the queue refuses the operation. Then `reply` does not run.
#[inline]
pub fn run(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    missing: Missing,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    run_in_form(ctx, key, op, missing, Form::Entry, reply)
}

/// Like [`run`], but only on a queue for which `may_run` holds, at the queue's time. Other queues
/// are not changed. Returns whether there is a queue.
pub fn run_if(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    may_run: impl FnOnce(&Queue, Millis) -> bool,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> Result<bool, Failure> {
    let moment = moment_of(op);
    let found = change_up_to_date(ctx, key, Some(op), of_slot(moment), |slot, begun| {
        let (Some(begun), (_, Some(queue))) = (begun, slot.split()) else {
            return Ok(false);
        };
        match may_run(queue, queue.now(begun.moment)) {
            true => run_on_queue(slot, op, begun, Form::Entry, reply)?,
            false => settle_begun(slot, Some(begun)),
        }
        Ok(true)
    });
    // A queue that may not be changed now is there.
    found.unwrap_or_else(|refused| Ok(refused == Refused::NotHere))
}

/// Like [`run`], but may replicate the command verbatim (see [`Form`]).
pub fn run_in_form(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
    missing: Missing,
    form: Form,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let moment = moment_of(op);
    change_up_to_date(ctx, key, Some(op), of_slot(moment), |slot, begun| {
        // Replays do not come here, so they can repeat commands that an older version has accepted.
        if let Err(error) = op::check_times(clock_of(slot.split().1), op) {
            settle_begun(slot, begun);
            return Err(errors::reply_for(&error));
        }
        match (begun, slot.split().0) {
            (Some(begun), _) => run_on_queue(slot, op, begun, form, reply),
            (None, ctx) => match missing {
                // A queue that does not exist has no group.
                Missing::Create if !needs_group(op) => run_on_new_queue(slot, op, moment, reply),
                Missing::Refuse => Err(errors::NO_SUCH_QUEUE.into()),
                Missing::Create | Missing::Nothing => {
                    reply(ctx.reply(), None);
                    Ok(())
                }
            },
        }
    })?
}

/// The clock of the queue in a key, or that of the queue which would be created there.
pub fn clock_of(queue: Option<&mut Value>) -> Clock {
    queue.map_or(Clock::Server, |queue| queue.clock())
}

/// Whether an operation does nothing unless a group has messages.
fn needs_group(op: &Op<'_>) -> bool {
    matches!(op, Op::Send(send) if send.if_group)
}

/// The moment of the server for the queue in a key.
fn of_slot(moment: Moment) -> impl Fn(&mut Slot<'_>) -> Moment {
    move |slot| slot.moment(moment)
}

fn run_on_queue(
    slot: &mut Slot<'_>,
    op: &Op<'_>,
    Begun { moment, before }: Begun,
    form: Form,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let (ctx, Some(queue)) = slot.split() else {
        return Ok(());
    };
    let renewing = renewing(queue, op);
    let op = renewing.as_ref().unwrap_or(op);
    let verbatim = match form {
        Form::Verbatim if before.is_nothing() && ctx.may_replicate_verbatim() => {
            verbatim::moment(queue, op, moment, clock::last_receipt())
        }
        _ => None,
    };
    let result = queue.apply(op, verbatim.unwrap_or(moment));
    if let Ok(done) = &result {
        if renewing.is_some() && !sent_nothing(done) && !done.is_duplicate() {
            queue.notes.salt_term = wakeups::term();
        }
        reply(ctx.reply(), Some((queue, done)));
    }
    match (verbatim, &result) {
        (Some(_), Ok(_)) if !queue.tells() => slot.commit(moment, Replication::Verbatim),
        (of_verbatim, done) => {
            // The reports to other keys are replicated together with it, as log entries.
            let moment = of_verbatim.unwrap_or(moment);
            let entry = LogEntry::of(moment, before, None, replicated(op, done.as_ref().ok()));
            slot.commit(moment, Replication::Entry(&entry));
        }
    }
    match (result, slot.split().1) {
        (Err(error), _) => Err(errors::reply_for(&error)),
        (Ok(done), Some(queue)) => {
            queue.take_back(done);
            Ok(())
        }
        (Ok(_), None) => Ok(()),
    }
}

/// Runs an operation that depends on the content of the queue after its due events are processed:
/// `choose` gets the queue and its time, and returns the operation and a value for `reply`. The
/// operation may not be refused, nor send. `reply` gets the outcome and that value, or `None` where
/// there is no queue.
pub fn run_chosen<T>(
    ctx: &mut Context,
    key: Name<'_>,
    choose: impl FnOnce(&Queue, Millis) -> (Op<'static>, T),
    reply: impl FnOnce(Reply<'_>, Option<(&Done, T)>),
) -> CommandResult {
    let moment = clock::now();
    change_up_to_date(
        ctx,
        key,
        None,
        |_| moment,
        |slot, begun| {
            let (Some(begun), (_, Some(queue))) = (begun, slot.split()) else {
                reply(slot.split().0.reply(), None);
                return Ok(());
            };
            let (op, value) = choose(queue, queue.now(begun.moment));
            let applied = slot.apply(begun, &op, |ctx, _, done| {
                reply(ctx.reply(), Some((done, value)));
            });
            applied.map_err(|error| errors::reply_for(&error))?;
            Ok(())
        },
    )?
}

fn run_on_new_queue(
    slot: &mut Slot<'_>,
    op: &Op<'_>,
    moment: Moment,
    reply: impl FnOnce(Reply<'_>, Option<(&Queue, &Done)>),
) -> CommandResult {
    let moment = slot.moment(moment);
    let creation = creation(&Changes::default(), Clock::Server);
    let applied = slot.apply_to_new(creation, op, moment, |ctx, queue, done| {
        reply(ctx.reply(), Some((queue, done)));
    });
    applied.map_err(|error| errors::reply_for(&error))
}

/// The moment of an operation that runs now. It may be some microseconds old for frequent
/// operations without a delay. A delay counts from the exact time, so that nothing is delivered
/// early.
fn moment_of(op: &Op<'_>) -> Moment {
    let may_be_recent = match op {
        Op::Send(send) => send.due == DueTime::Now,
        Op::Fetch(_) | Op::Ack { .. } | Op::AckEach { .. } | Op::AckCost { .. } => true,
        _ => false,
    };
    match may_be_recent {
        true => clock::recent(),
        false => clock::now(),
    }
}
