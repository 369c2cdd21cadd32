//! Closed queues: SENDS OFF.

use super::step::Step;
use dq_queue::op::Sent;
use dq_queue::{Op, Queue};

/// Whether the queue is to be closed, by the commands.
#[derive(Default)]
pub struct Closed(bool);

impl Closed {
    /// Begins anew with a queue that was just made or loaded.
    pub fn begin(&mut self, queue: &Queue) {
        self.0 = queue.settings().closed;
    }

    /// Checks that nothing was added to a closed queue, and that no schedule fired in it.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        if let Op::Alter(changes) = step.op {
            self.0 = changes.closed.unwrap_or(self.0);
            return Ok(());
        }
        if !self.0 {
            return Ok(());
        }
        if step.before.fired > 0 {
            return Err("a schedule fired in a closed queue".into());
        }
        if step.before.is_unclear {
            return Ok(());
        }
        for (send, sent, before) in step.sends() {
            let replaces = send.replace && before.has_id.is_some();
            if matches!(sent, Sent::Added(_)) && !replaces {
                return Err("a message was added to a closed queue".into());
            }
        }
        Ok(())
    }
}
