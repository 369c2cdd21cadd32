//! CHILDREN: a message waits until the number of its children in its CHILDREN has ended.

use std::collections::HashMap;

use super::step::Step;
use dq_queue::message::kin::{ChildCounts, Wait};
use dq_queue::message::state::StoredState;
use dq_queue::message::{Choices, Message};
use dq_queue::{Millis, Op, Seq};

/// Messages that wait for their children, and the counts that each must have.
#[derive(Default)]
pub struct Parents(HashMap<Seq, ChildCounts>);

/// Whether a message has expired, though it may not be dead yet.
fn is_over(message: &Message, now: Millis) -> bool {
    let expires = message.choices().and_then(Choices::expire_at);
    message.stored.is_ended() || expires.is_some_and(|at| at <= now)
}

impl Parents {
    /// Forgets all messages.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Checks that messages count the reports about their children, and wait until the counts
    /// suffice.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        if let (Op::Children(counted), Some(_)) = (step.op, step.done) {
            for one in &counted.of {
                let Some(seq) = step.queue.find(&one.id) else {
                    continue;
                };
                let Some(counts) = self.0.get_mut(&seq) else {
                    continue;
                };
                counts.add(&one.delta);
                let children = step.queue.message(seq).and_then(Message::children);
                let is_let_go = children.is_some_and(|children| {
                    children.wait == Wait::Over && counts.ended() >= children.total
                });
                if is_let_go {
                    // Later reports to the parent do not count.
                    self.0.remove(&seq);
                }
            }
        }
        let mut left = Vec::new();
        for (seq, counts) in &self.0 {
            let message = step.queue.message(*seq);
            let Some(message) = message.filter(|message| !is_over(message, step.now)) else {
                left.push(*seq);
                continue;
            };
            let Some(children) = message.children() else {
                return Err(format!("{seq} has lost its children"));
            };
            if children.wait == Wait::Over {
                // The parent may have died by time and have been redriven in one step.
                let may_be_redriven = matches!(step.op, Op::Redrive(_) | Op::FindDo { .. });
                if counts.ended() < children.total && !may_be_redriven {
                    return Err(format!("{seq} was let go before its children had ended"));
                }
                left.push(*seq);
            } else if children.counts != *counts {
                return Err(format!("{seq} has not counted what it was told"));
            } else if children.wait == Wait::Now && !children.dies && children.have_ended() {
                return Err(format!("{seq} waits on, though its children have ended"));
            }
        }
        for seq in left {
            self.0.remove(&seq);
        }
        self.add(step)
    }

    /// Notes the messages that were sent with CHILDREN. One that replaces another goes on
    /// with what that has counted.
    fn add(&mut self, step: &Step<'_>) -> Result<(), String> {
        for (send, seq, _) in step.added() {
            let Some(total) = send.choices.children().map(|children| children.total) else {
                continue;
            };
            let message = step.queue.message(seq);
            let Some(message) = message.filter(|message| !is_over(message, step.now)) else {
                continue;
            };
            let counts = message.children().map(|children| children.counts);
            let counts = counts.unwrap_or_default();
            if message.stored == StoredState::Held {
                self.0.insert(seq, counts);
            } else if counts.ended() < total {
                return Err(format!("{seq} did not wait for its children"));
            }
        }
        Ok(())
    }
}
