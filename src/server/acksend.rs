//! ACKSEND: the end of a delivery and the messages that follow from it, in several queues at once.
//!
//! First every queue is asked whether its part can be done. Only then is anything changed, and the
//! log entries of all queues are replicated as one command, so that a torn log has all or nothing.

use std::cell::Cell;

use crate::redis::{Context, Failure, Name, Value};
use dq_queue::args::acksend::{AckSendRequest, Next, What};
use dq_queue::message::id::GENERATED_LEN;
use dq_queue::op::{self, AckSend, Sent};
use dq_queue::settings::{Changes, Clock};
use dq_queue::{Done, Error, Moment, Op, Queue};

use super::commit::{
    begin_without_events, change_silently, change_up_to_date, clock_of, creation, renewing,
    settle_begun, Aftermath, Begun, Refused, Slot,
};
use super::{clock, errors, moving_slots, wakeups};

/// The outcome of each message or signal.
pub type Ids = Vec<Made>;

/// The outcome of a message or of a signal.
#[derive(Clone)]
pub enum Made {
    /// The message was sent, and has this id.
    Id(Vec<u8>),
    /// The message was not sent, because its id is taken.
    Nothing,
    /// Whether there was a message for the signal.
    Signaled(bool),
}

/// The parts of the command that concern one queue.
struct Part<'a> {
    key: Name<'a>,
    op: Op<'a>,
    /// The numbers of the messages that it sends among all messages, in order, and behind them
    /// those of its signals.
    numbers: Vec<usize>,
    /// The beginning of the change; `None` before that was done, and for a queue that does not
    /// exist.
    begun: Cell<Option<Begun>>,
}

/// Acks and sends, if all parts can be done. `dest` finds a key by its word. Returns `None` if the
/// receipt is stale, and then nothing was done.
///
/// Errors: a key holds another type, a part would write to a key that is not here, or a queue is
/// full. In that case no part was done.
pub fn run<'a>(
    ctx: &mut Context,
    key: Name<'a>,
    request: AckSendRequest<'a>,
    dest: impl Fn(usize) -> Option<Name<'a>>,
) -> Result<Option<Ids>, Failure> {
    let nothing = |next: &Next<'_>| match next.what {
        What::Send(_) => Made::Nothing,
        What::Signal(_) => Made::Signaled(false),
    };
    let mut ids: Ids = request.next.iter().map(nothing).collect();
    let parts = parts(key, request, dest);
    let moment = clock::now();
    let verdict = match parts.as_slice() {
        // No other queue is involved, so this one is opened once, for the check and the change.
        [part] => change_up_to_date(
            ctx,
            part.key,
            Some(&part.op),
            |_| moment,
            |slot, begun| {
                part.begun.set(begun);
                part.run_alone(slot, moment, &mut ids)
            },
        )?,
        parts => run_together(ctx, parts, moment, &mut ids)?,
    };
    match verdict {
        Ok(done) => Ok(done.then_some(ids)),
        Err(error) => Err(errors::reply_for(&error)),
    }
}

/// Does the parts of several queues, or none of them. Returns whether they were done, or why a queue
/// refuses its part.
///
/// Errors: a key holds another type, or a part would write to a key that is not here.
fn run_together(
    ctx: &mut Context,
    parts: &[Part<'_>],
    moment: Moment,
    ids: &mut Ids,
) -> Result<Result<bool, Error>, Refused> {
    for part in parts {
        moving_slots::check(ctx, part.key, Some(&part.op))?;
    }
    let collects = ctx.begin_to_collect();
    // To open a key also removes one that has expired, so that no other code runs from here on.
    let mut settled = false;
    for part in parts {
        let is_settled = |queue: &Queue| !queue.owes() && !queue.has_work(queue.time(moment));
        if !ctx.open_read(part.key)?.get().is_none_or(is_settled) {
            change_up_to_date(ctx, part.key, Some(&part.op), |_| moment, settle_begun)?;
            settled = true;
        }
    }
    if settled {
        for part in parts {
            ctx.open_read(part.key)?;
        }
    }
    let mut verdict = Ok(true);
    for part in parts {
        let (can, _) = change_silently(ctx, part.key, |slot| part.prepare(slot, moment))?;
        verdict = can;
        if verdict != Ok(true) {
            break;
        }
    }
    let mut published: Vec<Aftermath<'_>> = Vec::with_capacity(parts.len());
    for part in parts {
        let (done, mut aftermath) = change_silently(ctx, part.key, |slot| match verdict {
            Ok(true) => part.commit(slot, moment, ids),
            _ => {
                part.refuse(slot);
                false
            }
        })?;
        // In a burst of lease ends the first part may turn out to be stale only now.
        verdict = verdict.map(|can| can && done);
        aftermath.append(ctx);
        published.push(aftermath);
    }
    published
        .iter_mut()
        .for_each(|aftermath| aftermath.deliver(ctx));
    if collects {
        ctx.replicate_collected();
    }
    for aftermath in published {
        aftermath.publish(ctx);
    }
    Ok(verdict)
}

/// One part for each queue, that of the acked message first.
fn parts<'a>(
    key: Name<'a>,
    request: AckSendRequest<'a>,
    dest: impl Fn(usize) -> Option<Name<'a>>,
) -> Vec<Part<'a>> {
    let mut ops = vec![(
        key,
        AckSend {
            receipt: Some(request.receipt),
            result: request.result,
            sends: Vec::new(),
            signals: Vec::new(),
        },
        Vec::new(),
    )];
    for (number, next) in request.next.into_iter().enumerate() {
        let Some(dest) = dest(next.key) else {
            continue;
        };
        let known = ops.iter().position(|(key, ..)| key.bytes() == dest.bytes());
        let at = known.unwrap_or_else(|| {
            let nothing = AckSend {
                receipt: None,
                result: None,
                sends: Vec::new(),
                signals: Vec::new(),
            };
            ops.push((dest, nothing, Vec::new()));
            ops.len() - 1
        });
        if let Some((_, op, numbers)) = ops.get_mut(at) {
            match next.what {
                What::Send(send) => {
                    numbers.insert(op.sends.len(), number);
                    op.sends.push(send);
                }
                What::Signal(signal) => {
                    numbers.push(number);
                    op.signals.push(signal);
                }
            }
        }
    }
    let part = |(key, op, numbers)| Part {
        key,
        op: Op::AckSend(op),
        numbers,
        begun: Cell::new(None),
    };
    ops.into_iter().map(part).collect()
}

impl Part<'_> {
    /// Does this part, if the command has only this part. Returns whether it was done.
    fn run_alone(&self, slot: &mut Slot<'_>, moment: Moment, ids: &mut Ids) -> Result<bool, Error> {
        let can = self.prepare(slot, moment);
        match can {
            Ok(true) => Ok(self.commit(slot, moment, ids)),
            _ => {
                self.refuse(slot);
                can
            }
        }
    }

    /// Returns whether the part can be done: false if the receipt is stale. The due events of the
    /// queue have been processed.
    fn prepare(&self, slot: &mut Slot<'_>, moment: Moment) -> Result<bool, Error> {
        let Op::AckSend(op) = &self.op else {
            return Ok(true);
        };
        op::check_times(clock_of(slot.split().1), &self.op)?;
        match slot.split().1 {
            Some(queue) => {
                let begun = self.begun.get();
                let begun = begun.unwrap_or_else(|| begin_without_events(queue, moment));
                self.begun.set(Some(begun));
                queue.can_ack_send(op, begun.moment)
            }
            // A new queue has no limits.
            None => Ok(op.receipt.is_none()),
        }
    }

    /// Does the part. Returns whether it was done.
    fn commit(&self, slot: &mut Slot<'_>, moment: Moment, ids: &mut Ids) -> bool {
        let begun = self.begun.get().unwrap_or(Begun::at(moment));
        let (renewing, is_new) = match slot.split().1 {
            Some(queue) => (renewing(queue, &self.op), false),
            // A queue that does not exist has no group.
            None if self.needs_groups() => return true,
            None => (None, true),
        };
        let op = renewing.as_ref().unwrap_or(&self.op);
        let collect = |_: &Context, queue: &mut Value, done: &Done| {
            let Done::AckSent(Some(sent)) = done else {
                return false;
            };
            self.collect_ids(queue, sent, ids);
            if renewing.is_some() {
                queue.notes.salt_term = wakeups::term();
            }
            true
        };
        let done = match is_new {
            true => {
                let creation = creation(&Changes::default(), Clock::Server);
                slot.apply_to_new(creation, op, begun.moment, collect)
            }
            false => slot
                .apply(begun, op, collect)
                .map(Option::unwrap_or_default),
        };
        done.unwrap_or_default()
    }

    /// Replicates only the beginning of the change.
    fn refuse(&self, slot: &mut Slot<'_>) {
        if let Some(begun) = self.begun.get().filter(|begun| !begun.before.is_nothing()) {
            // A Tick is never refused.
            let _ = slot.apply(begun, &Op::Tick, |_, _, _| ());
        }
    }

    /// Whether the part has no messages, or all of them are sent only if their groups have
    /// messages.
    fn needs_groups(&self) -> bool {
        matches!(&self.op, Op::AckSend(op) if op.sends.iter().all(|send| send.if_group))
    }

    fn collect_ids(&self, queue: &Queue, sent: &[Sent], ids: &mut Ids) {
        let Op::AckSend(op) = &self.op else {
            return;
        };
        let sends = op.sends.iter().map(Some).chain(std::iter::repeat(None));
        for (number, (send, sent)) in self.numbers.iter().zip(sends.zip(sent)) {
            let Some(made) = ids.get_mut(*number) else {
                continue;
            };
            match (send, sent) {
                (Some(send), Sent::Added(seq) | Sent::Waits(seq)) => {
                    let id: [u8; GENERATED_LEN];
                    let name = match &send.id {
                        Some(given) => given.as_ref(),
                        None => {
                            id = queue.new_id(*seq);
                            &id
                        }
                    };
                    *made = Made::Id(name.to_vec());
                }
                (Some(send), Sent::Duplicate) => {
                    if let Some(first) = queue.repeated(send) {
                        *made = Made::Id(first.to_vec());
                    }
                }
                (_, Sent::Signaled(is_there)) => *made = Made::Signaled(*is_there),
                _ => {}
            }
        }
    }
}
