//! Freeing what was purged.
//!
//! It goes in slices, and where time or a command would come across it. That
//! cannot be observed and is therefore no part of what is replicated: each
//! server does it at its own pace.

use super::discard::Discarded;
use super::moves::pending_key;
use super::Queue;
use crate::message::state::StoredState;
use crate::{GroupIx, Millis, Seq};

/// So many groups are told of purges before the next look at what else is to
/// be freed.
const TOLD: usize = 32;

impl Queue {
    /// Frees a message that was purged already.
    pub(super) fn drop_purged(&mut self, seq: Seq) {
        let Some(message) = self.store.get(seq) else {
            return;
        };
        let stored = message.stored;
        let size = message.payload_len();
        if let Some(at) = self.expiry(message).filter(|_| stored.is_pending()) {
            self.expiring.remove(&(at, seq));
        }
        let is_ghost = if stored.is_ended() {
            self.leave_record(seq)
        } else {
            let is_grouped = message.group.is_some() && stored.is_pending();
            is_grouped && self.waiting.remove(stored, pending_key(seq, message))
        };
        if let Some(ghosts) = self.ghosts.get_mut(stored as usize).filter(|_| is_ghost) {
            ghosts.count = ghosts.count.saturating_sub(1);
            ghosts.bytes = ghosts.bytes.saturating_sub(size);
        }
        self.forget(seq);
    }

    /// Frees the purged messages that are due next, so that time does not come
    /// across them.
    pub(super) fn drop_purged_heads(&mut self, now: Millis) {
        if !self.has_purged() {
            return;
        }
        while let Some((due, seq)) = self.waiting.grouped.next_promotion() {
            if due > now || !self.is_purged(seq) {
                break;
            }
            self.drop_purged(seq);
        }
        while let Some(((at, seq), ())) = self.expiring.first() {
            if at > now || !self.is_purged(seq) {
                break;
            }
            if self.counts_purged(seq) {
                self.expiring.pop_first();
                continue;
            }
            self.drop_purged(seq);
        }
        self.drop_purged_records();
        self.heed_heads(now);
    }

    /// Frees the purged records that would be pruned next.
    pub(super) fn drop_purged_records(&mut self) {
        for stored in [
            StoredState::Finished,
            StoredState::Dead,
            StoredState::Cancelled,
        ] {
            while self.ghosts_at(stored) > 0 {
                let oldest = self.records.at(stored).and_then(|index| index.first());
                match oldest {
                    Some(((_, seq), ())) if self.is_purged(seq) => self.drop_purged(seq),
                    _ => break,
                }
            }
        }
    }

    /// Frees the purged records that are still among all records.
    pub(super) fn drop_cut_records(&mut self) {
        for mut records in self.discarded.take_records() {
            while let Some((key, ())) = records.pop_first() {
                self.drop_purged(key.seq());
            }
        }
    }

    /// Frees the memory of up to about `most` purged messages; whether there
    /// is more to free. Nobody can see a difference.
    pub fn sweep(&mut self, most: usize) -> bool {
        let mut left = most;
        while left > 0 {
            match self.discarded.last_mut() {
                None => return false,
                Some(Discarded::All(store, groups, indexes)) => {
                    if store.drop_page() {
                        left = left.saturating_sub(128);
                    } else if groups.drop_some(32) {
                        left = left.saturating_sub(32);
                    } else if let Some(index) = indexes.last_mut() {
                        if index.drain_some(left.min(1024)) == 0 {
                            indexes.pop();
                        }
                        left = left.saturating_sub(64);
                    } else {
                        self.discarded.pop();
                    }
                }
                Some(
                    other @ (Discarded::Index(_)
                    | Discarded::Order(_)
                    | Discarded::GroupOrder(_)
                    | Discarded::Series(_)
                    | Discarded::Receipts(_)
                    | Discarded::Line(_)
                    | Discarded::Lane(_)
                    | Discarded::Numbers(_)
                    | Discarded::Dedup(_)),
                ) => {
                    if other.drain_some(left.min(1024)) == 0 {
                        self.discarded.pop();
                    }
                    left = left.saturating_sub(64);
                }
                Some(Discarded::OfGroups(from)) => {
                    let next = self.groups.starting_at(*from).take(TOLD);
                    let next: Vec<GroupIx> = next.map(|(ix, _)| ix).collect();
                    match next.last() {
                        None => self.discarded.pop(),
                        Some(last) => *from = last.number() + 1,
                    }
                    for ix in &next {
                        self.heed_purges(*ix);
                    }
                    left = left.saturating_sub(next.len());
                }
                Some(cut) => match cut.pop_message() {
                    Some(seq) => {
                        left -= 1;
                        self.drop_purged(seq);
                    }
                    None => {
                        self.discarded.pop();
                    }
                },
            }
        }
        !self.discarded.is_empty()
    }

    /// Whether there is anything to [`Queue::sweep`].
    pub fn has_discarded(&self) -> bool {
        !self.discarded.is_empty()
    }
}
