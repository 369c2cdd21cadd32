//! The messages of a queue that are children, and their parents.
//!
//! The children that one parent has in this queue are *siblings*. Their parent is stored
//! once for all of them. A set of siblings is known by the number of the message that was
//! its first. [`Members`] says in which set a message is, and takes less than two bytes for
//! one that was sent with others of its set.
//!
//! A record belongs to its set as long as it is kept, so that its parent can list it.

use std::collections::BTreeMap;

use super::batches::Members;
use crate::collections::footprint::tree;
use crate::message::kin::Parent;
use crate::Seq;

/// The children that a parent has in this queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Siblings {
    /// The parent of these children.
    pub parent: Parent,
    /// The number of these children that the queue still has as messages or records.
    pub members: u64,
    /// The number of children that have not ended.
    pub live: u64,
    /// The number of children that are dead.
    pub dead: u64,
}

/// All sets of siblings of a queue.
#[derive(Debug, Clone, Default)]
pub struct AllSiblings {
    by_parent: BTreeMap<Parent, Seq>,
    all: BTreeMap<Seq, Siblings>,
    /// The set of each message.
    pub members: Members,
}

impl AllSiblings {
    /// The set with this number.
    pub fn get(&self, number: Seq) -> Option<&Siblings> {
        self.all.get(&number)
    }

    /// The set with this number.
    pub fn get_mut(&mut self, number: Seq) -> Option<&mut Siblings> {
        self.all.get_mut(&number)
    }

    /// The number of the set that a message is in.
    pub fn number_of(&self, seq: Seq) -> Option<Seq> {
        self.members.batch_of(seq)
    }

    /// The set that a message is in.
    pub fn of(&self, seq: Seq) -> Option<&Siblings> {
        self.get(self.number_of(seq)?)
    }

    /// The number of the set of this parent, if there is one. O(log n).
    pub fn find(&self, parent: &Parent) -> Option<Seq> {
        self.by_parent.get(parent).copied()
    }

    /// The numbers of the sets of the message with this key and id: one for each ONDEAD.
    pub fn of_message<'a>(&'a self, key: &'a [u8], id: &'a [u8]) -> impl Iterator<Item = Seq> + 'a {
        let parents = crate::message::after::OnFail::ALL.map(|on_dead| Parent {
            key: key.into(),
            id: id.into(),
            on_dead,
        });
        parents.into_iter().filter_map(|parent| self.find(&parent))
    }

    /// The parents of all sets.
    pub fn parents(&self) -> impl Iterator<Item = &Parent> + '_ {
        self.by_parent.keys()
    }

    /// Adds a set of which a message with this number is the first.
    pub fn add(&mut self, number: Seq, parent: &Parent) {
        self.by_parent.insert(parent.clone(), number);
        let siblings = Siblings {
            parent: parent.clone(),
            members: 0,
            live: 0,
            dead: 0,
        };
        self.all.insert(number, siblings);
    }

    /// Removes a message from its set, and forgets the set if it was the last. Returns the
    /// number of the set and its parent.
    pub fn leave(&mut self, seq: Seq) -> Option<(Seq, Parent)> {
        let number = self.members.remove(seq)?;
        let siblings = self.all.get_mut(&number)?;
        siblings.members -= 1;
        if siblings.members > 0 {
            return Some((number, siblings.parent.clone()));
        }
        let siblings = self.all.remove(&number)?;
        self.by_parent.remove(&siblings.parent);
        Some((number, siblings.parent))
    }

    /// All sets, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Seq, &Siblings)> + '_ {
        self.all
            .iter()
            .map(|(number, siblings)| (*number, siblings))
    }

    /// The number of sets.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether no set is left, so that the queue need not keep this.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Drops up to `limit` entries. Returns how many, 0 if nothing is left. Only for
    /// freeing everything in slices: it must not be used for anything else afterwards.
    pub fn drain_some(&mut self, limit: usize) -> usize {
        let of_all = (0..limit).map_while(|_| self.all.pop_last()).count();
        let left = limit - of_all;
        let of_parents = (0..left).map_while(|_| self.by_parent.pop_last()).count();
        of_all + of_parents + self.members.drain_some(left - of_parents)
    }

    /// Bytes allocated, roughly. O(sets).
    pub fn memory_bytes(&self) -> usize {
        let sets = self.all.values();
        let sets = sets.map(|siblings| 2 * siblings.parent.heap_bytes());
        size_of::<AllSiblings>()
            + tree(size_of::<(Seq, Siblings)>(), self.all.len())
            + tree(size_of::<(Parent, Seq)>(), self.by_parent.len())
            + sets.sum::<usize>()
            + self.members.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::after::OnFail;

    fn parent(id: u8, on_dead: OnFail) -> Parent {
        Parent {
            key: Box::from(*b"q"),
            id: Box::from([id]),
            on_dead,
        }
    }

    #[test]
    fn a_set_is_forgotten_with_its_last_message() {
        let mut all = AllSiblings::default();
        let parents = [parent(1, OnFail::Hold), parent(1, OnFail::Die)];
        for (number, parent) in (1..).zip(&parents) {
            all.add(number, parent);
            for seq in [number, number + 10] {
                all.members.insert(seq, number);
                all.get_mut(number).unwrap().members += 1;
            }
        }
        assert_eq!(all.of_message(b"q", &[1]).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(all.leave(1), Some((1, parents[0].clone())));
        assert_eq!(all.find(&parents[0]), Some(1));
        assert_eq!(all.leave(11), Some((1, parents[0].clone())));
        assert_eq!((all.find(&parents[0]), all.leave(11)), (None, None));
        assert_eq!((all.len(), all.of(12).map(|of| of.members)), (1, Some(2)));
        let mut drained = 0;
        while let count @ 1.. = all.drain_some(1) {
            drained += count;
        }
        assert_eq!((drained, all.is_empty()), (3, true));
    }

    #[test]
    fn a_million_siblings_take_less_than_eight_bytes_each() {
        let mut all = AllSiblings::default();
        all.add(1, &parent(1, OnFail::Hold));
        for seq in 1..=1_000_000 {
            all.members.insert(seq, 1);
        }
        assert!(all.memory_bytes() < 8_000_000);
    }
}
