//! Every message that came or went is explained by a counter.

use super::before::is_live;
use super::step::Step;
use dq_queue::op::Sent;
use dq_queue::{Done, Op};

/// Checks the counts of an operation.
pub fn check(step: &Step<'_>) -> Result<(), String> {
    check_ack_send(step)?;
    check_sent(step)?;
    if step.is_removal() || step.before.is_unclear {
        return Ok(());
    }
    let (old, new) = (&step.before.totals, step.queue.totals());
    let mut went = (new.acked - old.acked) + (new.deaths - old.deaths);
    let came = (new.sent - old.sent) + (new.redriven - old.redriven);
    went += step
        .added()
        .filter(|(send, _, before)| send.replace && before.has_id.is_some())
        .count() as u64;
    match step.done {
        Some(Done::States(states)) => {
            let live = states.iter().flatten().filter(|state| is_live(**state));
            went += live.count() as u64;
        }
        Some(Done::Fetched(given)) => {
            went += given.iter().filter(|one| one.receipt == 0).count() as u64;
        }
        _ => {}
    }
    if step.before.live + came != step.queue.live() + went {
        return Err(format!(
            "{} messages, {came} came and {went} went: there are {}; {old:?} became {new:?}",
            step.before.live,
            step.queue.live()
        ));
    }
    Ok(())
}

/// Checks that messages are sent only by the operation, by schedules and at the end of runs, and
/// that each message that is not sent has an id that can be taken.
fn check_sent(step: &Step<'_>) -> Result<(), String> {
    let sent = step.queue.totals().sent - step.before.totals.sent;
    let added = step.added().count() as u64;
    let fired = match (step.op, step.done) {
        (Op::CatchUp { skip: false, .. }, _) => 1,
        (_, Some(Done::Ticked(ticked))) => ticked.fired,
        _ => 0,
    };
    let fired = step.before.fired + fired;
    let reruns = step.before.reruns.len() as u64;
    if sent < added || sent > added + fired + reruns {
        return Err(format!("{sent} messages were sent, and {added} were added"));
    }
    let sends = step.sends();
    let mut taken = sends
        .iter()
        .filter(|(_, sent, _)| matches!(sent, Sent::Taken));
    match taken.any(|(send, ..)| send.id.is_none()) {
        true => Err("a message without an id was not sent for its id".into()),
        false => Ok(()),
    }
}

/// An ACKSEND acks one message and sends all messages whose ids are free, or does nothing.
fn check_ack_send(step: &Step<'_>) -> Result<(), String> {
    let (Op::AckSend(ack_send), Some(Done::AckSent(sent))) = (step.op, step.done) else {
        return Ok(());
    };
    let (old, new) = (&step.before.totals, step.queue.totals());
    let Some(sent) = sent else {
        return match new.acked == old.acked {
            true => Ok(()),
            false => Err("an ACKSEND that did nothing has acked a message".into()),
        };
    };
    if step.before.is_stale {
        return Err("an ACKSEND was done though its receipt is stale".into());
    }
    if sent.len() != ack_send.sends.len() + ack_send.signals.len() {
        return Err(format!(
            "{} outcomes for {} messages",
            sent.len(),
            ack_send.sends.len()
        ));
    }
    let acked = u64::from(ack_send.receipt.is_some());
    match new.acked - old.acked == acked {
        true => Ok(()),
        false => Err(format!(
            "an ACKSEND of {acked} receipts has not acked as many"
        )),
    }
}
