//! The parts that were taken from a queue that came from elsewhere: the other keys that it named.

use std::collections::BTreeSet;

use crate::Seq;

/// The ties of a queue to other keys: EVENTS, DEADTO, and the parents of its messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ties {
    /// The stream of EVENTS.
    pub events: bool,
    /// The queue of DEADTO.
    pub dead_to: bool,
    /// The parents of messages.
    pub parents: bool,
}

impl Ties {
    /// Whether there are none.
    pub fn is_nothing(self) -> bool {
        self == Ties::default()
    }

    /// All ties that are in one of the two.
    pub fn and(self, other: Ties) -> Ties {
        Ties {
            events: self.events || other.events,
            dead_to: self.dead_to || other.dead_to,
            parents: self.parents || other.parents,
        }
    }

    /// All ties that are in both.
    pub fn of(self, other: Ties) -> Ties {
        Ties {
            events: self.events && other.events,
            dead_to: self.dead_to && other.dead_to,
            parents: self.parents && other.parents,
        }
    }

    /// The words for them.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let words = [
            (self.events, "EVENTS"),
            (self.dead_to, "DEADTO"),
            (self.parents, "PARENT"),
        ];
        words
            .into_iter()
            .filter_map(|(is, word)| is.then_some(word))
    }
}

/// The ties that a queue has lost when it was restored or copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detached {
    /// EVENTS was turned off, and no ALTER has named it since.
    pub events: bool,
    /// DEADTO was turned off, and no ALTER has named it since.
    pub dead_to: bool,
    /// The messages and records that were cut from their parents.
    pub children: BTreeSet<Seq>,
}

impl Detached {
    /// The lost ties.
    pub fn ties(&self) -> Ties {
        Ties {
            events: self.events,
            dead_to: self.dead_to,
            parents: !self.children.is_empty(),
        }
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        // Estimate: a number, and its share of a node that is two thirds full.
        size_of::<Detached>() + self.children.len() * 12
    }
}
