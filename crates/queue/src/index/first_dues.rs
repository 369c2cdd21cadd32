//! Since when messages have been due that were delivered and came back: after a failure,
//! a snooze or the end of a lease, a message has a later due time than the one that it was
//! given, and the index of pending messages (`waiting.rs`) knows only the later one.

use std::collections::BTreeMap;

use crate::collections::footprint::allocated;
use crate::Millis;

/// Maximum number of times that are distinguished, so that the memory is bounded.
const MOST: usize = 1024;

/// How many messages have which first due time.
///
/// With more than 1,024 different times they are told apart by less than a millisecond
/// precisely: by a power of two, which is small compared with the span that they cover. It
/// is a millisecond again when no message is left.
#[derive(Debug, Clone, Default)]
pub struct FirstDues {
    /// The number of messages by their time, divided by `2^shift`.
    counts: BTreeMap<Millis, u64>,
    shift: u32,
}

impl FirstDues {
    /// No times.
    pub const fn new() -> FirstDues {
        FirstDues {
            counts: BTreeMap::new(),
            shift: 0,
        }
    }

    /// Enters a message that was first due at `at` (Unix ms). O(1).
    pub fn insert(&mut self, at: Millis) {
        *self.counts.entry(at >> self.shift).or_default() += 1;
        while self.counts.len() > MOST {
            self.coarsen();
        }
    }

    /// Removes a message that was first due at `at`. O(1).
    pub fn remove(&mut self, at: Millis) {
        let at = at >> self.shift;
        let Some(count) = self.counts.get_mut(&at) else {
            debug_assert!(false, "no message was first due at {at}");
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&at);
        }
        if self.counts.is_empty() {
            self.shift = 0;
        }
    }

    /// The earliest first due time. If times are not distinguished to the millisecond, it
    /// is the latest possible time. O(1).
    pub fn earliest(&self) -> Option<Millis> {
        let (first, _) = self.counts.first_key_value()?;
        Some((first << self.shift) | ((1 << self.shift) - 1))
    }

    /// Whether both hold the same times, as far as both distinguish them. O(1).
    pub fn is_same(&self, other: &FirstDues) -> bool {
        let shift = self.shift.max(other.shift);
        let at_shift = |dues: &FirstDues| {
            let mut dues = dues.clone();
            while dues.shift < shift {
                dues.coarsen();
            }
            dues.counts
        };
        at_shift(self) == at_shift(other)
    }

    /// Bytes allocated, roughly. O(1).
    pub fn memory_bytes(&self) -> usize {
        // The nodes of the map are three quarters full.
        allocated(self.counts.len() * size_of::<(Millis, u64)>() * 4 / 3)
    }

    fn coarsen(&mut self) {
        self.shift += 1;
        for (at, count) in std::mem::take(&mut self.counts) {
            *self.counts.entry(at >> 1).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_of_few_times_is_exact(
            steps in prop::collection::vec((0..60u64, any::<bool>()), 0..200),
        ) {
            let (mut dues, mut model) = (FirstDues::default(), Vec::new());
            for (at, inserts) in steps {
                match model.iter().position(|known| *known == at) {
                    Some(known) if !inserts => {
                        model.swap_remove(known);
                        dues.remove(at);
                    }
                    _ => {
                        model.push(at);
                        dues.insert(at);
                    }
                }
                prop_assert_eq!(dues.earliest(), model.iter().copied().min());
                let mut again = FirstDues::default();
                model.iter().for_each(|at| again.insert(*at));
                prop_assert!(dues.is_same(&again));
            }
        }
    }

    #[test]
    fn many_times_take_little_memory_and_stay_close() {
        let mut dues = FirstDues::default();
        const SPAN: Millis = 86_400_000;
        let times = || (0..100_000).map(|n| 1_700_000_000_000 + n * (SPAN / 100_000));
        times().for_each(|at| dues.insert(at));
        assert!(dues.memory_bytes() < 30_000);
        for at in times() {
            let earliest = dues.earliest().unwrap();
            assert!(
                earliest >= at && earliest - at <= SPAN / 500,
                "{earliest} for {at}"
            );
            dues.remove(at);
        }
        assert_eq!(dues.earliest(), None);
        dues.insert(7);
        assert_eq!(dues.earliest(), Some(7), "it is exact again");
    }
}
