//! PARK and SIGNAL: a message waits for a signal, or until its time is over.

use std::collections::HashMap;

use super::step::Step;
use dq_queue::message::after::Park;
use dq_queue::message::Message;
use dq_queue::op::NackKind;
use dq_queue::{Millis, Op, Seq, NEVER};

/// Parked messages, and when each is due without a signal.
#[derive(Default)]
pub struct Parks(HashMap<Seq, Millis>);

impl Parks {
    /// Forgets all messages.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Checks that messages are parked if they were sent so, and released by a signal or
    /// when their time is over, and by no other cause.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        check_signal(step)?;
        self.check_parked(step)?;
        if let (
            Op::Nack {
                kind: NackKind::Park(park),
                ..
            },
            Some(_),
        ) = (step.op, step.done)
        {
            for named in &step.before.named {
                self.begin(step, named.seq, *park)?;
            }
        }
        for (send, seq, _) in step.added() {
            let batching = send.choices.batching();
            let is_alone = batching.is_some_and(|batching| batching.after.is_none());
            let is_alone = is_alone && send.choices.children().is_none();
            let expires = send.choices.expire_at().is_some();
            if let Some(park) = send.choices.park().filter(|_| is_alone && !expires) {
                self.begin(step, seq, park)?;
            }
        }
        Ok(())
    }

    /// Checks a message that was to be parked now.
    fn begin(&mut self, step: &Step<'_>, seq: Seq, park: Park) -> Result<(), String> {
        let Some(message) = step.queue.message(seq) else {
            return Ok(());
        };
        if message.stored.is_ended() || message.signal().is_some() {
            return Ok(());
        }
        let until = park.until(step.now);
        let seen = message.is_parked().then_some(message.parked_until());
        match seen.map(|until| until.unwrap_or(NEVER)) {
            Some(seen) if seen == until => {
                self.0.insert(seq, until);
                Ok(())
            }
            seen => Err(format!(
                "{seq} was to be parked until {until}, and waits until {seen:?}"
            )),
        }
    }

    fn check_parked(&mut self, step: &Step<'_>) -> Result<(), String> {
        let mut left = Vec::new();
        for (seq, until) in &self.0 {
            let message = step.queue.message(*seq);
            match message.filter(|message| !message.stored.is_ended()) {
                Some(message) if message.is_parked() => {
                    if *until <= step.now && step.caught_up {
                        return Err(format!("{seq} is parked on after {until}"));
                    }
                    continue;
                }
                Some(message) if *until > step.now && message.signal().is_none() => {
                    return Err(format!("{seq} is not parked any more, without a signal"));
                }
                _ => left.push(*seq),
            }
        }
        for seq in left {
            self.0.remove(&seq);
        }
        Ok(())
    }
}

/// Checks that a message has the signal that was sent to it, and is not parked.
fn check_signal(step: &Step<'_>) -> Result<(), String> {
    let Op::Signal { id, text } = step.op else {
        return Ok(());
    };
    let message = step.queue.find(id).and_then(|seq| step.queue.message(seq));
    let has = |message: &Message| message.signal() == Some(text) && !message.is_parked();
    match message {
        Some(message) if !message.stored.is_ended() && !has(message) => {
            Err("a message does not have its signal".into())
        }
        _ => Ok(()),
    }
}
