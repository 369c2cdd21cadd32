//! What is gathered of a queue's messages, and the indexes made of it.

use crate::lane::{Lane, Lanes};
use crate::records::{DeadOrder, SendOrder};
use crate::state::Place;
use crate::{Millis, Seq, TimeIndex};

/// Messages that wait, for one lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    /// Delayed, due, retry, in the order of the places.
    at: [Vec<(Millis, Seq)>; 3],
    bytes: [u64; 3],
}

impl Lists {
    /// Adds a message.
    pub fn push(&mut self, place: Place, due: Millis, seq: Seq, size: u64) {
        // The three pending places have the numbers 0 to 2.
        if let Some(list) = self.at.get_mut(place as usize) {
            list.push((due, seq));
        }
        if let Some(bytes) = self.bytes.get_mut(place as usize) {
            *bytes = bytes.saturating_add(size);
        }
    }

    fn into_lane(self) -> Lane {
        let [delayed, due, retry] = self.at;
        Lane::from_indexes(index(delayed), index(due), index(retry), self.bytes)
    }
}

/// The lanes of these, by priority from the lowest number on.
pub(super) fn lanes(lists: Vec<Lists>) -> Lanes {
    let all = lists.into_iter().zip(i8::MIN..=i8::MAX);
    let used = all.filter(|(lists, _)| lists.at.iter().any(|list| !list.is_empty()));
    Lanes::from_sorted(
        used.map(|(lists, priority)| (priority, lists.into_lane()))
            .collect(),
    )
}

/// An index of these, in any order.
pub(super) fn index(mut entries: Vec<(Millis, Seq)>) -> TimeIndex {
    entries.sort_unstable();
    TimeIndex::from_sorted(entries.into_iter().map(|key| (key, ())))
}

/// Ungrouped and grouped dead messages, in any order.
pub(super) fn dead_order(orders: [Vec<(i8, Seq)>; 2]) -> DeadOrder {
    let [plain, grouped] = orders.map(|mut order| {
        order.sort_unstable();
        SendOrder::from_sorted(order.into_iter().map(|key| (key, ())))
    });
    DeadOrder { plain, grouped }
}
