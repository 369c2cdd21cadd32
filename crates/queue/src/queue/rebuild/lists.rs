//! Sorted lists of a queue's messages, from which its indexes are built in one
//! pass.

use crate::index::lane::{Lane, Lanes};
use crate::index::records::{Own, OwnRetained, Record};
use crate::message::state::StoredState;
use crate::{Millis, Seq, TimeIndex, NEVER};

/// Pending messages of one lane (one priority).
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    /// Delayed, due and retry messages, in the order of [`StoredState`].
    at: [Vec<(Millis, Seq)>; 3],
}

impl Lists {
    /// Adds a pending message.
    pub fn push(&mut self, stored: StoredState, due: Millis, seq: Seq) {
        // The three pending states have the numbers 0 to 2.
        if let Some(list) = self.at.get_mut(stored as usize) {
            list.push((due, seq));
        }
    }

    fn into_lane(self) -> Lane {
        let [delayed, due, retry] = self.at;
        Lane {
            delayed: index(delayed),
            retry: index(retry),
            due: index(due),
        }
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

/// Builds the indexes of records with a RETAIN of their own. O(n log n).
pub(super) fn own_records(records: Vec<(StoredState, Record)>) -> Option<Box<Own>> {
    let of = |wanted: StoredState| {
        let records = records.iter().filter(|(stored, _)| *stored == wanted);
        let (by_time, by_end) = records
            .map(|(_, r)| ((r.ended_at, r.seq), (r.own_end.unwrap_or(NEVER), r.seq)))
            .unzip();
        OwnRetained {
            by_time: index(by_time),
            by_end: index(by_end),
        }
    };
    let own = Own {
        finished: of(StoredState::Finished),
        cancelled: of(StoredState::Cancelled),
    };
    (!records.is_empty()).then(|| Box::new(own))
}
