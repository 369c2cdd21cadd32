//! The counts of named batches: for DQ.BATCHES, and for the messages in them and after
//! them.

use crate::index::batches::Batches;
use crate::message::after::Counts;
use crate::message::Message;
use crate::queue::Queue;
use crate::Seq;

/// Maximum number of steps in which EXPLAIN searches for batches that wait for each other.
const SEARCHED: usize = 1024;

impl Queue {
    /// The state of all batches, if there are any.
    pub fn batches(&self) -> Option<&Batches> {
        self.state.seldom.batches.as_deref()
    }

    /// The name of the batch that a message is in.
    pub fn batch_of(&self, seq: Seq) -> Option<&[u8]> {
        let batches = self.state.seldom.batches.as_ref()?;
        let named = batches.get(batches.members.batch_of(seq)?)?;
        Some(&named.name)
    }

    /// The name of the batch that a message waits for or has waited for, and how many
    /// messages of it there are; for one that is held no longer, there were.
    pub fn after_of<'a>(&self, message: &'a Message) -> Option<(&'a [u8], Counts)> {
        let after = message.after()?;
        if message.held_after().is_none() {
            return Some((&after.batch, after.counts));
        }
        let batches = self.state.seldom.batches.as_ref();
        let named = batches.and_then(|batches| batches.named(&after.batch));
        let counts = named.map_or(Counts::default(), |named| named.counts);
        Some((&after.batch, counts))
    }

    /// The ring of batches, each of which waits for the next, that the batch of this
    /// name is part of, if it is found in some steps: their names, the first one
    /// again at the end.
    pub(in crate::queue) fn ring_of<'a>(&'a self, name: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let batches = self.state.seldom.batches.as_ref()?;
        batches.way(name, name, &[], &[], SEARCHED)
    }

    /// The numbers of all held messages.
    pub(in crate::queue) fn held(&self) -> impl Iterator<Item = Seq> + '_ {
        self.indexes.held.all.iter().map(|((_, seq), ())| seq)
    }

    /// How many messages are held. O(1).
    pub(in crate::queue) fn held_count(&self) -> usize {
        self.indexes.held.all.len()
    }

    /// Number of open batches. O(1).
    pub fn open_batches(&self) -> usize {
        self.state
            .seldom
            .batches
            .as_ref()
            .map_or(0, |batches| batches.open.len())
    }
}
