//! REPLACE RERUN: one more run when the present one has ended.

use super::found::listed;
use super::step::Step;
use dq_queue::message::state::State;
use dq_queue::op::Sent;
use dq_queue::{Op, Queue, Seq};

/// A message that waits for the end of a run.
pub struct Waiting {
    /// The running message.
    pub(super) seq: Seq,
    id: Box<[u8]>,
    payload: Box<[u8]>,
    /// Whether the message that follows the run may be due later, or gone soon.
    may_end: bool,
}

impl Waiting {
    /// All messages of a queue that wait for the end of a run. O(running messages).
    pub fn all(queue: &Queue) -> Vec<Waiting> {
        let now = queue.last_seen();
        let running = listed(queue, State::Running, None, now).into_iter();
        let waiting = running.filter_map(|seq| {
            let view = queue.view(seq, now)?;
            let rerun = view.message.rerun()?;
            let choices = &rerun.choices;
            let ttl = choices.ttl.unwrap_or(queue.settings().ttl);
            Some(Waiting {
                seq,
                id: view.id.as_bytes().into(),
                payload: rerun.payload.clone(),
                may_end: ttl > 0 || choices.rare.is_some(),
            })
        });
        waiting.collect()
    }
}

/// Checks that a message waits for the end of a run if it was asked to, and that it
/// exists once the run has ended.
pub fn check(step: &Step<'_>) -> Result<(), String> {
    let mut named: Vec<&[u8]> = Vec::new();
    for (send, sent, before) in step.sends() {
        named.extend(send.id.as_deref());
        let is_alone = matches!(step.op, Op::Send(_));
        let Some(runs) = before.runs.filter(|_| send.rerun && is_alone) else {
            continue;
        };
        if matches!(sent, Sent::NoGroup | Sent::Duplicate) {
            continue;
        }
        let message = step.queue.message(runs);
        let rerun = message.and_then(|message| message.rerun());
        if rerun.is_none_or(|rerun| Some(&*rerun.payload) != send.payloads.first().copied()) {
            return Err("a message does not wait for the end of a run".into());
        }
    }
    let may_hide = match step.op {
        Op::Update { .. } => true,
        Op::Fetch(fetch) => fetch.no_ack,
        _ => step.is_removal(),
    };
    if may_hide {
        return Ok(());
    }
    let is_cancelled = |id: &[u8]| match step.op {
        Op::Cancel { ids } => ids.iter().any(|named| **named == *id),
        _ => false,
    };
    let waiting = step.before.reruns.iter();
    for waiting in waiting.filter(|waiting| !named.contains(&&*waiting.id)) {
        let of_run = step.queue.message(waiting.seq);
        if of_run.is_some_and(|message| message.rerun().is_some()) {
            continue;
        }
        let found = step.queue.find(&waiting.id);
        let message = found.and_then(|seq| step.queue.message(seq));
        match message {
            Some(message) if *step.queue.content(message).payload.bytes() != *waiting.payload => {
                return Err("what waited for the end of a run did not follow it".into());
            }
            // The message may have been sent in an event before, and was cancelled then.
            None if !waiting.may_end && !is_cancelled(&waiting.id) => {
                return Err("what waited for the end of a run is lost".into());
            }
            _ => {}
        }
    }
    Ok(())
}
