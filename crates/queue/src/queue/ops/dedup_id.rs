//! DEDUPID: a message is not sent again within a time, whatever has become of the first.

use crate::index::dedup_ids::DedupIds;
use crate::op::{Send, Sent};
use crate::queue::Queue;
use crate::{Millis, MAX_EXACT};

impl Queue {
    /// The id of the earlier message for which the deduplication id of this SEND counts. O(1).
    pub(in crate::queue) fn earlier_of(&self, send: &Send, now: Millis) -> Option<&[u8]> {
        self.dedup_ids()?.first(&send.dedup.as_ref()?.name, now)
    }

    /// The id of the message that a SEND repeats, for the reply to that SEND. O(1).
    pub fn repeated(&self, send: &Send) -> Option<&[u8]> {
        self.earlier_of(send, self.state.last)
    }

    /// Remembers the deduplication id of a message that was sent. O(log n).
    #[cold]
    pub(super) fn remember_dedup_id(&mut self, send: &Send, sent: &[Sent], now: Millis) {
        let (Some(dedup), Some(Sent::Added(seq) | Sent::Waits(seq))) = (&send.dedup, sent.first())
        else {
            return;
        };
        let made = self.new_id(*seq);
        let id = send.id.as_deref().unwrap_or(&made);
        let until = now.saturating_add(dedup.ms).min(MAX_EXACT);
        let ids = self.state.seldom.dedup_ids.get_or_insert_default();
        ids.remember(&dedup.name, id, until);
        self.wake_by(until);
    }

    /// Forgets the deduplication id whose time is over. O(log n).
    pub(in crate::queue) fn forget_next_dedup_id(&mut self) {
        if let Some(ids) = self.state.seldom.dedup_ids_mut() {
            ids.forget_next();
        }
        if self.dedup_ids().is_some_and(|ids| ids.len() == 0) {
            self.state.seldom.dedup_ids = None;
        }
    }

    /// The deduplication ids, if there are any.
    pub(in crate::queue) fn dedup_ids(&self) -> Option<&DedupIds> {
        self.state.seldom.dedup_ids.as_deref()
    }
}
