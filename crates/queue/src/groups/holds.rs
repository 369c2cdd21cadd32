//! The dead messages that hold a group: with ONDEAD BLOCK the group delivers
//! nothing until each of them is dealt with, or the group is resumed.

use crate::collections::ordered::OrderedSet;
use crate::Seq;

/// The dead messages that hold a group, in send order.
///
/// The number of holds may be very large. Messages whose records were pruned since cannot
/// be redriven or removed one by one: their holds end only when all holds of the group
/// end. So the first of them stands for all.
#[derive(Debug, Clone, Default)]
pub struct Holds {
    /// Dead messages whose records are kept.
    dead: OrderedSet<Seq>,
    /// The first message whose record was pruned, with its id.
    pruned: Option<(Seq, Box<[u8]>)>,
}

/// A message that holds a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder<'a> {
    /// A dead message whose record is kept.
    Dead(Seq),
    /// A dead message whose record was pruned, and its id.
    Pruned(Seq, &'a [u8]),
}

impl Holder<'_> {
    /// The message's number.
    pub fn seq(&self) -> Seq {
        match self {
            Holder::Dead(seq) | Holder::Pruned(seq, _) => *seq,
        }
    }
}

impl Holds {
    /// An empty set.
    pub const fn new() -> Holds {
        Holds {
            dead: OrderedSet::new(),
            pruned: None,
        }
    }

    /// Whether nothing holds the group.
    pub fn is_empty(&self) -> bool {
        self.dead.is_empty() && self.pruned.is_none()
    }

    /// All of them in send order.
    pub fn iter(&self) -> impl Iterator<Item = Holder<'_>> {
        let pruned = self.pruned.as_ref();
        let at = pruned.map_or(Seq::MAX, |(seq, _)| *seq);
        let dead = move |is_before: bool| {
            let seqs = self.dead.iter().map(|(seq, ())| seq);
            seqs.filter(move |seq| (*seq < at) == is_before)
                .map(Holder::Dead)
        };
        let pruned = pruned.map(|(seq, id)| Holder::Pruned(*seq, id));
        dead(true).chain(pruned).chain(dead(false))
    }

    /// The first of them in send order. O(log n).
    pub fn first(&self) -> Option<Holder<'_>> {
        let dead = self.dead.first().map(|(seq, ())| Holder::Dead(seq));
        let pruned = self.pruned.as_ref();
        let pruned = pruned.map(|(seq, id)| Holder::Pruned(*seq, id));
        dead.into_iter().chain(pruned).min_by_key(Holder::seq)
    }

    /// Adds a dead message. O(log n).
    pub fn add(&mut self, seq: Seq) {
        self.dead.insert(seq, ());
    }

    /// Removes a dead message whose record is kept. Returns whether it held the
    /// group. O(log n).
    pub fn remove(&mut self, seq: Seq) -> bool {
        self.dead.remove(&seq).is_some()
    }

    /// Records that a message whose record was pruned still holds the group.
    pub fn add_pruned(&mut self, seq: Seq, id: &[u8]) {
        if self.pruned.as_ref().is_none_or(|(first, _)| seq < *first) {
            self.pruned = Some((seq, id.into()));
        }
    }

    /// Removes and returns all messages whose records are kept. O(1).
    pub fn take_dead(&mut self) -> OrderedSet<Seq> {
        std::mem::take(&mut self.dead)
    }

    /// If there are more than `most` messages whose records are kept, drops about
    /// `most` of them. Returns whether it did.
    pub fn drain_many(&mut self, most: usize) -> bool {
        self.dead.drain_many(most)
    }

    /// Bytes allocated, an estimate. O(1).
    pub fn memory_bytes(&self) -> usize {
        let pruned = self.pruned.as_ref();
        self.dead.memory_bytes()
            + pruned.map_or(0, |(_, id)| {
                crate::collections::footprint::allocated(id.len())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs(holds: &Holds) -> Vec<Seq> {
        holds.iter().map(|holder| holder.seq()).collect()
    }

    #[test]
    fn the_first_pruned_message_stands_for_all_pruned_ones_in_send_order() {
        let mut holds = Holds::new();
        assert!(holds.is_empty());
        for seq in [7, 3, 5, 9] {
            holds.add(seq);
        }
        for seq in [5, 7] {
            assert!(holds.remove(seq));
            holds.add_pruned(seq, b"id");
        }
        assert_eq!(seqs(&holds), [3, 5, 9]);
        assert_eq!(holds.first(), Some(Holder::Dead(3)));
        assert!(holds.remove(3));
        assert!(!holds.remove(3));
        assert_eq!(holds.first(), Some(Holder::Pruned(5, b"id")));
        holds.add_pruned(4, b"first");
        assert_eq!(holds.first(), Some(Holder::Pruned(4, b"first")));
        assert_eq!(holds.take_dead().len(), 1);
        assert_eq!(seqs(&holds), [4]);
    }
}
