//! Parents and children: the options PARENT and CHILDREN, and the counts of a parent.
//!
//! A parent is a message that is held until a number of others, its children, have ended.
//! The children name it by the key of its queue and its id, so they may be in other queues.

use super::after::OnFail;
use crate::collections::footprint::allocated;

/// The most queues of children whose names a parent remembers.
pub const MOST_QUEUES: usize = 1000;

/// The options PARENT and CHILDREN of a message, at least one of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kin {
    /// The message at which this one counts when it ends. It is set only in an operation:
    /// the queue stores for each of its messages whose child it is (`index/siblings`).
    pub parent: Option<Parent>,
    /// The children that it waits for, or has waited for.
    pub children: Option<Box<Children>>,
}

/// A message at which others count when they end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parent {
    /// The key of its queue; never empty.
    pub key: Box<[u8]>,
    /// Its id.
    pub id: Box<[u8]>,
    /// Whether the death of the child holds it, counts as an end, or makes it die.
    pub on_dead: OnFail,
}

impl Parent {
    /// Whether both are the same message, regardless of ONDEAD.
    pub fn is_same_message(&self, other: &Parent) -> bool {
        self.key == other.key && self.id == other.id
    }

    /// Bytes allocated for its names.
    pub fn heap_bytes(&self) -> usize {
        allocated(self.key.len()) + allocated(self.id.len())
    }
}

/// The state of the wait of a parent for its children. The numbers are part of the
/// snapshot format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// The parent counts its children, but waits for a batch first.
    #[default]
    Later = 0,
    /// The children hold it.
    Now = 1,
    /// The wait is over. No child counts any more.
    Over = 2,
}

/// The children of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Children {
    /// How many children have to end; at least 1.
    pub total: u64,
    /// How many children have ended.
    pub counts: ChildCounts,
    /// The state of the wait for them.
    pub wait: Wait,
    /// Whether the parent is to die because a child did (ONDEAD DIE), and has not yet.
    pub dies: bool,
    /// The keys of the queues that have reported children, in the order of their first reports.
    pub queues: Vec<Box<[u8]>>,
}

impl Children {
    /// The state of a number of children, none of which has ended yet.
    pub fn new(total: u64) -> Children {
        Children {
            total,
            ..Children::default()
        }
    }

    /// Whether the required number of children has ended.
    pub fn have_ended(&self) -> bool {
        self.counts.ended() >= self.total
    }

    /// How many are still to end. Dead children that hold the parent are not among them.
    pub fn pending(&self) -> u64 {
        let ended = self.counts.ended().saturating_add(self.counts.kept);
        self.total.saturating_sub(ended)
    }

    /// Remembers that a queue has children of this message. Returns whether that was new.
    pub fn remember(&mut self, queue: &[u8]) -> bool {
        let is_new =
            self.queues.len() < MOST_QUEUES && !self.queues.iter().any(|known| **known == *queue);
        if is_new {
            self.queues.push(queue.into());
        }
        is_new
    }

    /// Bytes that it has allocated.
    pub fn heap_bytes(&self) -> usize {
        let names = self.queues.iter().map(|name| allocated(name.len()));
        allocated(self.queues.capacity() * size_of::<Box<[u8]>>()) + names.sum::<usize>()
    }
}

/// The counts of the ended children of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChildCounts {
    /// The children that were acked.
    pub finished: u64,
    /// The children that were cancelled.
    pub cancelled: u64,
    /// The children that died.
    pub dead: u64,
    /// The children that were removed before they had ended.
    pub removed: u64,
    /// The dead children that do not count as ended (ONDEAD HOLD). They are among `dead`.
    pub kept: u64,
}

impl ChildCounts {
    /// How many children have ended.
    pub fn ended(&self) -> u64 {
        let all = [self.finished, self.cancelled, self.dead, self.removed];
        let all = all.into_iter().fold(0, u64::saturating_add);
        all.saturating_sub(self.kept)
    }

    /// All counts, for a change of each.
    fn all_mut(&mut self) -> [&mut u64; 5] {
        [
            &mut self.finished,
            &mut self.cancelled,
            &mut self.dead,
            &mut self.removed,
            &mut self.kept,
        ]
    }

    /// All counts, in the order of [`Delta::counts`].
    pub fn all(&self) -> [u64; 5] {
        let mut counts = *self;
        counts.all_mut().map(|count| *count)
    }

    /// The counts that [`ChildCounts::all`] returns.
    pub fn of(all: [u64; 5]) -> ChildCounts {
        let mut counts = ChildCounts::default();
        for (count, n) in counts.all_mut().into_iter().zip(all) {
            *count = n;
        }
        counts
    }

    /// Adds the changes among children. A count does not go below 0: a child may count at
    /// a parent that has not counted its death.
    pub fn add(&mut self, delta: &Delta) {
        for (count, by) in self.all_mut().into_iter().zip(delta.counts()) {
            *count = count.saturating_add_signed(by).min(crate::MAX_EXACT);
        }
    }
}

/// The changes among children: by how much each count of their parent changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delta {
    /// Changes [`ChildCounts::finished`].
    pub finished: i64,
    /// Changes [`ChildCounts::cancelled`].
    pub cancelled: i64,
    /// Changes [`ChildCounts::dead`].
    pub dead: i64,
    /// Changes [`ChildCounts::removed`].
    pub removed: i64,
    /// Changes [`ChildCounts::kept`].
    pub kept: i64,
    /// Whether the parent dies, too.
    pub dies: bool,
}

impl Delta {
    /// All changes, in the order of [`ChildCounts::all`].
    pub fn counts(&self) -> [i64; 5] {
        [
            self.finished,
            self.cancelled,
            self.dead,
            self.removed,
            self.kept,
        ]
    }

    /// The changes that [`Delta::counts`] returns.
    pub fn of([finished, cancelled, dead, removed, kept]: [i64; 5], dies: bool) -> Delta {
        Delta {
            finished,
            cancelled,
            dead,
            removed,
            kept,
            dies,
        }
    }

    /// Adds the changes among further children.
    pub fn add(&mut self, other: &Delta) {
        let [mut all, more] = [self.counts(), other.counts()];
        for (n, by) in all.iter_mut().zip(more) {
            *n = n.saturating_add(by);
        }
        *self = Delta::of(all, self.dies || other.dies);
    }

    /// Whether no count goes down and no parent dies, so that it makes no difference whether a later
    /// change of this kind is counted with it.
    pub fn only_adds(&self) -> bool {
        !self.dies && self.counts().into_iter().all(|by| by >= 0)
    }

    /// Counts a child that died, or is no longer dead (`by` is -1).
    pub fn die(&mut self, on_dead: OnFail, by: i64) {
        self.dead += by;
        match on_dead {
            OnFail::Hold => self.kept += by,
            OnFail::Go => {}
            OnFail::Die if crate::seeded::seeded(crate::seeded::Bug::DeathTakenBack) => {}
            OnFail::Die => self.dies |= by > 0,
        }
    }
}

/// The change of the counts of a parent, which the queue of its children reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The key of the queue of their parent.
    pub key: Box<[u8]>,
    /// The id of the parent.
    pub id: Box<[u8]>,
    /// The change. It is empty if the first of the children was just sent.
    pub delta: Delta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_child_that_holds_is_neither_pending_nor_ended() {
        let mut children = Children::new(3);
        let mut delta = Delta::default();
        delta.die(OnFail::Hold, 1);
        delta.finished = 1;
        children.counts.add(&delta);
        assert_eq!((children.counts.ended(), children.pending()), (1, 1));
        delta = Delta::default();
        delta.die(OnFail::Hold, -1);
        delta.cancelled = 2;
        children.counts.add(&delta);
        assert!(children.have_ended());
        // A death is taken back that was never counted.
        children.counts.add(&Delta::of([0, 0, -1, 0, -1], false));
        assert_eq!(children.counts.all(), [1, 2, 0, 0, 0]);
        assert_eq!(ChildCounts::of([1, 2, 0, 0, 0]), children.counts);
    }

    #[test]
    fn the_names_of_queues_are_remembered_once_and_are_bounded() {
        let mut children = Children::new(1);
        assert!(children.remember(b"q") && !children.remember(b"q"));
        for number in 0..2000u32 {
            children.remember(&number.to_le_bytes());
        }
        assert_eq!(children.queues.len(), MOST_QUEUES);
    }
}
