//! Deduplication ids: names that senders gave to their sends, so that the same thing is not sent
//! twice within a time, whatever has become of the first message.

use crate::collections::footprint::allocated;
use crate::collections::name_table::NameTable;
use crate::collections::ordered::{Measure, OrderedSet};
use crate::message::id::{hash_name, NameHasher};
use crate::Millis;

/// The deduplication ids of a queue.
#[derive(Debug, Clone, Default)]
pub struct DedupIds {
    hasher: NameHasher,
    by_name: NameTable<DedupId>,
    /// When they are forgotten (Unix ms), and their numbers.
    by_end: OrderedSet<(Millis, u64), Hash>,
    /// The number of the next one. Those that end at one time are forgotten in this order.
    next: u64,
    /// Bytes allocated for the names and the ids.
    text_bytes: usize,
}

/// The hash of a name, by which a table finds the name again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hash(u64);

impl Measure for Hash {}

/// One deduplication id.
#[derive(Debug, Clone)]
struct DedupId {
    /// The deduplication id, and behind it the id of the first message.
    text: Box<[u8]>,
    /// The length of the deduplication id.
    len: u32,
    until: Millis,
    number: u64,
}

impl DedupId {
    fn parts(&self) -> (&[u8], &[u8]) {
        self.text.split_at(self.len as usize)
    }
}

impl DedupIds {
    /// The id of the message that was first sent with this deduplication id, if that still counts
    /// at `now`. O(1).
    pub fn first(&self, name: &[u8], now: Millis) -> Option<&[u8]> {
        let known = self.find(name)?;
        (known.until > now).then_some(known.parts().1)
    }

    fn find(&self, name: &[u8]) -> Option<&DedupId> {
        let hash = hash_name(&self.hasher, name);
        self.by_name.find(hash, |known| known.parts().0 == name)
    }

    /// Whether this deduplication id is remembered, even if its time is over. O(1).
    pub fn has(&self, name: &[u8]) -> bool {
        self.find(name).is_some()
    }

    /// Remembers that a message with this id was sent with this deduplication id, which counts
    /// until then (Unix ms). O(log n).
    pub fn remember(&mut self, name: &[u8], id: &[u8], until: Millis) {
        let hash = hash_name(&self.hasher, name);
        self.forget(hash, |known| known.parts().0 == name);
        let text: Box<[u8]> = [name, id].concat().into();
        self.text_bytes += allocated(text.len());
        let number = self.next;
        self.next += 1;
        self.by_end.insert((until, number), Hash(hash));
        let known = DedupId {
            text,
            len: name.len() as u32,
            until,
            number,
        };
        self.by_name.insert_unique(hash, known);
    }

    fn forget(&mut self, hash: u64, is: impl Fn(&DedupId) -> bool) {
        if let Some(gone) = self.by_name.remove(hash, is) {
            self.by_end.remove(&(gone.until, gone.number));
            self.text_bytes -= allocated(gone.text.len());
        }
    }

    /// When the next one is forgotten (Unix ms). O(log n).
    pub fn next_end(&self) -> Option<Millis> {
        self.by_end.first().map(|((until, _), _)| until)
    }

    /// Forgets the one that is next. O(log n).
    pub fn forget_next(&mut self) {
        if let Some(((_, number), Hash(hash))) = self.by_end.first() {
            self.forget(hash, |known| known.number == number);
        }
    }

    /// Forgets up to `most`. Returns how many. O(log n) for each.
    pub fn drain_some(&mut self, most: usize) -> usize {
        let most = most.min(self.len());
        for _ in 0..most {
            self.forget_next();
        }
        most
    }

    /// The number of deduplication ids. O(1).
    pub fn len(&self) -> usize {
        self.by_end.len()
    }

    /// Each deduplication id, the id of its first message and when it is forgotten (Unix ms), in
    /// the order in which they are forgotten.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8], Millis)> + '_ {
        self.by_end
            .iter()
            .filter_map(|((until, number), Hash(hash))| {
                let known = self.by_name.find(hash, |known| known.number == number)?;
                let (name, id) = known.parts();
                Some((name, id, until))
            })
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.by_name.allocation_size() + self.by_end.memory_bytes() + self.text_bytes
    }
}
