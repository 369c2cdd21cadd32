//! NACK: the count of failures, the return of the message, and the messages that are not
//! delivered before a certain time.

use std::collections::HashMap;

use super::before::Named;
use super::step::Step;
use dq_queue::message::state::{Reason, State};
use dq_queue::op::{NackKind, Paused};
use dq_queue::{Millis, Op, Seq};

/// Messages that are not delivered before a certain time (Unix ms), because a NACK said so.
#[derive(Default)]
pub struct HandedBack {
    /// Snoozed messages.
    messages: HashMap<Seq, Millis>,
    /// Groups that were paused with a nack.
    groups: HashMap<Vec<u8>, Millis>,
    /// The whole queue.
    queue: Millis,
}

impl HandedBack {
    /// Drops messages that the operation may deliver earlier after all, notes those that
    /// a NACK holds back, and checks the counts of a NACK.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        self.release(step.op);
        let (Op::Nack { kind, pause, .. }, Some(_)) = (step.op, step.done) else {
            return Ok(());
        };
        for named in &step.before.named {
            check_counted(step, named, *kind)?;
            if let NackKind::Snooze(ms) = kind {
                self.messages.insert(named.seq, step.now + ms);
            }
            let Some(pause) = pause else { continue };
            let until = step.now + pause.ms;
            let kept = match (pause.of, &named.group) {
                (Paused::Queue, _) => &mut self.queue,
                (Paused::Group, Some(group)) => self.groups.entry(group.to_vec()).or_default(),
                (Paused::Group, None) => return Err("no group, and yet it was paused".into()),
            };
            *kept = until.max(*kept);
        }
        Ok(())
    }

    /// Drops messages that an operation may deliver earlier after all.
    fn release(&mut self, op: &Op<'_>) {
        match op {
            Op::Reschedule { .. } | Op::Redrive(_) | Op::FindDo { .. } => self.messages.clear(),
            Op::Pause { group: None, .. } | Op::Resume { group: None } => self.queue = 0,
            Op::Pause { group, .. } | Op::Resume { group } => {
                self.groups.remove(group.as_deref().unwrap_or_default());
            }
            Op::Purge { .. } | Op::Remove(_) => *self = HandedBack::default(),
            _ => {}
        }
    }

    /// Checks that a message may be delivered now.
    pub fn check_delivery(
        &self,
        step: &Step<'_>,
        seq: Seq,
        group: Option<&[u8]>,
    ) -> Result<(), String> {
        let of_group = group.and_then(|group| self.groups.get(group));
        let of_message = self.messages.get(&seq);
        let all = of_group.into_iter().chain(of_message);
        let until = all.copied().fold(self.queue, Millis::max);
        match until > step.now {
            true => Err(format!(
                "{seq} was kept back until {until} and delivered at {}",
                step.now
            )),
            false => Ok(()),
        }
    }
}

/// Checks the attempts and the failures of a message that was nacked, and when it is due.
fn check_counted(step: &Step<'_>, named: &Named, kind: NackKind) -> Result<(), String> {
    let Some(view) = step.queue.view(named.seq, step.now) else {
        return Ok(());
    };
    if view.state == State::Dead {
        let is_blamed = !matches!(
            kind,
            NackKind::Silent | NackKind::Snooze(_) | NackKind::Park(_)
        );
        return match is_blamed || view.reason() == Some(Reason::Expired) {
            true => Ok(()),
            false => Err(format!("{} died of a nack that counts nothing", named.seq)),
        };
    }
    let (attempts, failures) = match kind {
        NackKind::Fatal => return Err(format!("{} was rejected and lives", named.seq)),
        NackKind::Silent | NackKind::Snooze(_) | NackKind::Park(_) => {
            (named.attempt - 1, named.failures)
        }
        NackKind::Backoff | NackKind::Delay(_) => (named.attempt, named.failures + 1),
    };
    let seen = (view.attempt(), view.message.failures());
    if seen != (attempts, failures) {
        return Err(format!(
            "a nack of {} counts {seen:?} attempts and failures, not {:?}",
            named.seq,
            (attempts, failures)
        ));
    }
    let delay = match kind {
        NackKind::Snooze(ms) | NackKind::Delay(ms) => ms,
        _ => return Ok(()),
    };
    let due = view.message.due_at();
    match due == step.now + delay {
        true => Ok(()),
        false => Err(format!(
            "{} was nacked for {delay} ms at {} and is due at {due}",
            named.seq, step.now
        )),
    }
}
