//! Sorted lists of a queue's messages, from which its indexes are built in one
//! pass.

use crate::index::lane::{Lane, Lanes};
use crate::index::records::{DeadOrder, SendOrder};
use crate::message::state::StoredState;
use crate::{Millis, Seq, TimeIndex};

/// Pending messages of one lane (one priority).
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    /// Delayed, due and retry messages, in the order of [`StoredState`].
    at: [Vec<(Millis, Seq)>; 3],
    bytes: [u64; 3],
}

impl Lists {
    /// Adds a pending message.
    pub fn push(&mut self, stored: StoredState, due: Millis, seq: Seq, size: u64) {
        // The three pending states have the numbers 0 to 2.
        if let Some(list) = self.at.get_mut(stored as usize) {
            list.push((due, seq));
        }
        if let Some(bytes) = self.bytes.get_mut(stored as usize) {
            *bytes = bytes.saturating_add(size);
        }
    }

    fn into_lane(self) -> Lane {
        let [delayed, due, retry] = self.at;
        Lane::from_indexes(index(delayed), index(due), index(retry), self.bytes)
    }
}

/// Builds lanes from these lists, which are sorted by priority from -128 on.
pub(super) fn lanes(lists: Vec<Lists>) -> Lanes {
    let all = lists.into_iter().zip(i8::MIN..=i8::MAX);
    let used = all.filter(|(lists, _)| lists.at.iter().any(|list| !list.is_empty()));
    Lanes::from_sorted(
        used.map(|(lists, priority)| (priority, lists.into_lane()))
            .collect(),
    )
}

/// Builds an index from entries in any order. O(n log n).
pub(super) fn index(mut entries: Vec<(Millis, Seq)>) -> TimeIndex {
    entries.sort_unstable();
    TimeIndex::from_sorted(entries.into_iter().map(|key| (key, ())))
}

/// Builds the redrive order from ungrouped and grouped dead messages, each in any
/// order.
pub(super) fn dead_order(orders: [Vec<(i8, Seq)>; 2]) -> DeadOrder {
    let [plain, grouped] = orders.map(|mut order| {
        order.sort_unstable();
        SendOrder::from_sorted(order.into_iter().map(|key| (key, ())))
    });
    DeadOrder { plain, grouped }
}
