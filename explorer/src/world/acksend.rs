//! ACKSEND: the end of a delivery and what follows from it, in several queues at once or not at
//! all.

use super::begin::Begun;
use super::commit::creation;
use super::deliver::Outbox;
use super::{Key, Step, World};
use dq_queue::args::acksend::{AckSendRequest, What};
use dq_queue::op::{self, AckSend};
use dq_queue::settings::{Changes, Clock};
use dq_queue::{Done, Error, Op};

struct Part<'a> {
    key: Key,
    op: AckSend<'a>,
    begun: Option<Begun>,
}

impl World {
    /// Acks and sends, if all parts can be done. `words` are those behind the key.
    ///
    /// Returns whether the receipt was current.
    ///
    /// Error: a queue refuses its part, and no part was done.
    pub(super) fn ack_send(
        &mut self,
        key: &[u8],
        request: AckSendRequest<'_>,
        words: &[&[u8]],
        step: &mut Step,
    ) -> Result<bool, Error> {
        let mut parts = parts(key, request, words);
        let mut verdict = Ok(true);
        for part in &mut parts {
            verdict = self.prepare(part, step);
            if verdict != Ok(true) {
                break;
            }
        }
        let mut outboxes = Vec::new();
        for part in parts {
            let mut outbox = Outbox::default();
            if verdict == Ok(true) {
                let done = self.commit_part(&part, &mut outbox, step);
                verdict = verdict.map(|can| can && done);
            } else if let Some(begun) = part.begun.filter(|begun| !begun.before.is_nothing()) {
                let _ = self.apply(&part.key, begun, &Op::Tick, &mut outbox, step);
            }
            outboxes.push((part.key, outbox));
        }
        for (key, outbox) in outboxes {
            self.deliver(&key, outbox, step);
        }
        step.reply = format!("{verdict:?} {}", step.reply);
        verdict
    }

    fn prepare(&mut self, part: &mut Part<'_>, step: &mut Step) -> Result<bool, Error> {
        let clock = self
            .queue(&part.key)
            .map_or(Clock::Server, |queue| queue.clock());
        op::check_times(clock, &Op::AckSend(part.op.clone()))?;
        if !self.places.contains_key(&part.key) {
            return Ok(part.op.receipt.is_none());
        }
        let begun = self.begin(&part.key, step);
        part.begun = Some(begun);
        let Some(place) = self.places.get_mut(&part.key) else {
            return Ok(false);
        };
        let lets = place.queue.can_ack_send(&part.op, begun.moment);
        let expected = place.model_lets(&part.op, begun.moment);
        if let Some(expected) = expected.filter(|expected| *expected != lets) {
            let text = format!("model: ACKSEND can be done: {lets:?} in place of {expected:?}");
            step.faults.push(text);
        }
        lets
    }

    fn commit_part(&mut self, part: &Part<'_>, outbox: &mut Outbox, step: &mut Step) -> bool {
        let op = Op::AckSend(part.op.clone());
        let done = match part.begun {
            Some(begun) => self.apply(&part.key, begun, &op, outbox, step),
            None if part.op.sends.iter().all(|send| send.if_group) => return true,
            None => {
                let creation = creation(&Changes::default(), Clock::Server);
                self.apply_to_new(&part.key, creation, &op, outbox, step)
            }
        };
        step.reply = format!("{} {done:?}", step.reply);
        matches!(done, Ok(Done::AckSent(Some(_))))
    }
}

fn parts<'a>(key: &[u8], request: AckSendRequest<'a>, words: &[&[u8]]) -> Vec<Part<'a>> {
    let part = |key: &[u8], receipt, result| Part {
        key: key.into(),
        op: AckSend {
            receipt,
            result,
            sends: Vec::new(),
            signals: Vec::new(),
        },
        begun: None,
    };
    let mut parts = vec![part(key, Some(request.receipt), request.result)];
    for next in request.next {
        let Some(dest) = words.get(next.key) else {
            continue;
        };
        let known = parts.iter().position(|part| *part.key == **dest);
        let at = known.unwrap_or_else(|| {
            parts.push(part(dest, None, None));
            parts.len() - 1
        });
        if let Some(part) = parts.get_mut(at) {
            match next.what {
                What::Send(send) => part.op.sends.push(send),
                What::Signal(signal) => part.op.signals.push(signal),
            }
        }
    }
    parts
}
