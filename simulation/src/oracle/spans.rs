//! Spans of time and points of time over a step of the clock back: the rest of a span stays the
//! same, and a point does not move.

use std::collections::BTreeMap;

use dq_queue::message::state::StoredState;
use dq_queue::{Millis, Queue, Receipt, Seq, NEVER};

/// The rest of a time, in ms; negative if it has passed.
type Left = i64;

/// How long the delays and leases of the messages of a queue still last.
pub struct Spans {
    /// When pending messages are due: the rest of the span, or the time if it is a point.
    pending: BTreeMap<Seq, Result<Left, Millis>>,
    /// The time that is left of each lease.
    leases: BTreeMap<Seq, Left>,
    last_receipt: Receipt,
}

impl Spans {
    /// The times in a queue whose clock shows `now`.
    pub fn of(queue: &Queue, now: Millis) -> Spans {
        let left = |at: Millis| at as Left - now as Left;
        let (mut pending, mut leases) = (BTreeMap::new(), BTreeMap::new());
        for numbered in queue.parts().messages() {
            let message = numbered.message;
            if let Some(term) = numbered.term {
                leases.insert(numbered.seq, left(term.until));
            }
            if message.stored.is_pending() {
                let is_point = message.is_due_at_point() && message.due == message.ttl_base();
                let due = match is_point {
                    true => Err(message.due),
                    // The message is parked without end.
                    false if message.due == NEVER => Err(NEVER),
                    false => Ok(left(message.due)),
                };
                pending.insert(numbered.seq, due);
            }
        }
        Spans {
            pending,
            leases,
            last_receipt: queue.last_receipt(),
        }
    }

    /// Checks the queue after its clock was set back to `now`.
    ///
    /// # Errors
    /// A sentence that says which time has moved.
    pub fn check(&self, queue: &Queue, now: Millis) -> Result<(), String> {
        let after = Spans::of(queue, now);
        if after.last_receipt < self.last_receipt {
            return Err("a step of the clock has lost the last receipt".into());
        }
        for (seq, left) in &self.leases {
            let kept = after.leases.get(seq);
            if kept != Some(left) {
                return Err(format!(
                    "the lease of {seq} had {left} ms left, has {kept:?}"
                ));
            }
        }
        for (seq, due) in &self.pending {
            let kept = after.pending.get(seq);
            if kept != Some(due) {
                return Err(format!(
                    "{seq} was due in or at {due:?}, is in or at {kept:?}"
                ));
            }
        }
        let early = queue.parts().messages().find(|numbered| {
            numbered.message.stored == StoredState::Due && numbered.message.due > now
        });
        match early {
            Some(early) => Err(format!("{} is ready before its time", early.seq)),
            None => Ok(()),
        }
    }
}
