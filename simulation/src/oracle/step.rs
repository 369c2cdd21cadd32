//! One operation with all its results, which the rules check.

use super::before::{Before, BeforeSend};
use dq_queue::op::{Send, Sent};
use dq_queue::{Done, Millis, Op, Queue, Seq};

/// An operation that was done.
pub struct Step<'a> {
    /// The queue after it.
    pub queue: &'a Queue,
    /// The state of the queue before the operation.
    pub before: &'a Before,
    /// The operation.
    pub op: &'a Op<'static>,
    /// The result; `None` if the operation was refused.
    pub done: Option<&'a Done>,
    /// The time at which it was done, in Unix milliseconds.
    pub now: Millis,
    /// Whether all due events have been processed.
    pub caught_up: bool,
}

impl<'a> Step<'a> {
    /// The messages that were to be sent, with the outcome for each of them and the state before
    /// it.
    pub fn sends(&self) -> Vec<(&'a Send<'static>, Sent, &'a BeforeSend)> {
        match (self.op, self.done) {
            (Op::Send(send), Some(Done::Sent(sent))) => {
                let before = self.before.sends.first();
                let sent = sent.iter().map(|sent| (send, *sent));
                let all = sent.filter_map(|(send, sent)| Some((send, sent, before?)));
                all.collect()
            }
            (Op::AckSend(ack_send), Some(Done::AckSent(Some(sent)))) => {
                let sends = ack_send.sends.iter().zip(sent).zip(&self.before.sends);
                sends
                    .map(|((send, sent), before)| (send, *sent, before))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The messages that were added.
    pub fn added(&self) -> impl Iterator<Item = (&'a Send<'static>, Seq, &'a BeforeSend)> {
        let sends = self.sends().into_iter();
        sends.filter_map(|(send, sent, before)| match sent {
            Sent::Added(seq) => Some((send, seq, before)),
            Sent::Waits(_) | Sent::Taken | Sent::Duplicate | Sent::NoGroup | Sent::Signaled(_) => {
                None
            }
        })
    }

    /// Whether the operation removes messages or records that have not ended in another way.
    pub fn is_removal(&self) -> bool {
        matches!(
            self.op,
            Op::Purge { .. } | Op::Remove(_) | Op::FindDo { .. }
        )
    }

    /// Whether the operation makes dead messages pending again.
    pub fn is_redrive(&self) -> bool {
        matches!(self.op, Op::Redrive(_) | Op::FindDo { .. })
    }
}
