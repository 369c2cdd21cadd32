//! The indexes of held messages: those that wait until they are released.

use crate::collections::ordered::OrderedSet;
use crate::{Millis, Seq, TimeIndex};

/// All held messages, and the ends of limited waits. Messages that are neither parked nor held
/// by children wait for a batch.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// All held messages, by the time since when they have been held.
    pub all: TimeIndex,
    /// Parked messages that wait for a limited time, by its end.
    ends: TimeIndex,
    /// The messages that are to die because a child died, and have not yet.
    pub dying: OrderedSet<Seq>,
    /// How many wait for children.
    pub by_children: u64,
    /// How many are parked.
    pub parked: u64,
}

impl Held {
    /// No messages.
    pub const fn new() -> Held {
        Held {
            all: TimeIndex::new(),
            ends: TimeIndex::new(),
            dying: OrderedSet::new(),
            by_children: 0,
            parked: 0,
        }
    }

    /// Notes the end of the limited wait of a message (Unix ms).
    pub fn ends_at(&mut self, seq: Seq, at: Millis) {
        self.ends.insert((at, seq), ());
    }

    /// Forgets when the wait of a message ends.
    pub fn forget_end(&mut self, seq: Seq, at: Millis) {
        self.ends.remove(&(at, seq));
    }

    /// The message whose wait ends first, and that time (Unix ms). O(log n).
    pub fn first_end(&self) -> Option<(Millis, Seq)> {
        self.ends.first().map(|(key, ())| key)
    }

    /// Both indexes of times, to be freed.
    pub fn into_indexes(self) -> [TimeIndex; 2] {
        [self.all, self.ends]
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.all.memory_bytes() + self.ends.memory_bytes() + self.dying.memory_bytes()
    }
}
