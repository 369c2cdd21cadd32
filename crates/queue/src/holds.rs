//! The dead messages that hold a group.

use super::ordered::OrderedSet;
use super::Seq;

/// No messages.
static NONE: Holds = Holds::new();

/// The dead messages that hold a group, in the order of sending.
///
/// All that died may hold it, so that they can be very many; of those that were
/// pruned since, one stands for all, because only what frees all of them frees
/// the group.
#[derive(Debug, Clone, Default)]
pub struct Holds {
    /// Those that are there.
    dead: OrderedSet<Seq>,
    /// The first of those that were pruned, with its id.
    pruned: Option<(Seq, Box<[u8]>)>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder<'a> {
    /// One that is there.
    Dead(Seq),
    /// One that was pruned, and its id.
    Pruned(Seq, &'a [u8]),
}

impl Holder<'_> {
    /// Its number.
    pub fn seq(&self) -> Seq {
        match self {
            Holder::Dead(seq) | Holder::Pruned(seq, _) => *seq,
        }
    }
}

impl Holds {
    /// Nothing holds it.
    pub const fn new() -> Holds {
        Holds {
            dead: OrderedSet::new(),
            pruned: None,
        }
    }

    /// Those of a group that nothing holds.
    pub fn none() -> &'static Holds {
        &NONE
    }

    /// Whether nothing holds the group.
    pub fn is_empty(&self) -> bool {
        self.dead.is_empty() && self.pruned.is_none()
    }

    /// All of them, in the order of sending.
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

    /// The first of them. O(log n).
    pub fn first(&self) -> Option<Holder<'_>> {
        let dead = self.dead.first().map(|(seq, ())| Holder::Dead(seq));
        let pruned = self.pruned.as_ref();
        let pruned = pruned.map(|(seq, id)| Holder::Pruned(*seq, id));
        dead.into_iter().chain(pruned).min_by_key(Holder::seq)
    }

    /// A message that died holds the group. O(log n).
    pub fn add(&mut self, seq: Seq) {
        self.dead.insert(seq, ());
    }

    /// One that is there holds it no longer; whether it did. O(log n).
    pub fn remove(&mut self, seq: Seq) -> bool {
        self.dead.remove(&seq).is_some()
    }

    /// One that was pruned goes on holding it.
    pub fn add_pruned(&mut self, seq: Seq, id: &[u8]) {
        if self.pruned.as_ref().is_none_or(|(first, _)| seq < *first) {
            self.pruned = Some((seq, id.into()));
        }
    }

    /// Takes out those that are there. O(1).
    pub fn take_dead(&mut self) -> OrderedSet<Seq> {
        std::mem::take(&mut self.dead)
    }

    /// Where more than `most` are there, drops about so many; whether they were.
    pub fn drain_many(&mut self, most: usize) -> bool {
        self.dead.drain_many(most)
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        let pruned = self.pruned.as_ref();
        self.dead.memory_bytes() + pruned.map_or(0, |(_, id)| super::footprint::allocated(id.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs(holds: &Holds) -> Vec<Seq> {
        holds.iter().map(|holder| holder.seq()).collect()
    }

    #[test]
    fn the_first_of_those_that_were_pruned_stands_for_all_in_the_order_of_sending() {
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
