//! Named batches: which messages are in them, and which wait for them.
//!
//! `SEND ... BATCH b` puts a message into the batch `b` of its queue, and
//! `SEND ... AFTER b` makes one that is held while any message of `b` has not
//! ended. All that a queue knows of this is here; a queue in which nobody uses it
//! has none of it.
//!
//! - A batch is known by the number of the message that first joined it. This
//!   number is the same on every server, and batches are listed in its order.
//! - [`Members`] says in which batch a message is. It takes a bit for each message
//!   that was sent with others of its batch, and 32 bytes for each page of 128
//!   messages that any of them is in, so a message costs nothing more for being in a
//!   batch.
//! - Each batch counts its messages by state. A count changes wherever a message
//!   changes its state (`queue/batches/members.rs`), so whether the last one has ended is
//!   known in O(1).
//! - The held messages of a batch are kept by their [`OnFail`], in send order. When
//!   they are to be released they are moved as a whole to the list of [`Released`]
//!   ones, in O(1), and leave it one by one.
//!
//! A batch without messages that have not ended, and without held ones, is closed:
//! its counts are zero and nobody sees it. Its name is kept as long as records of its
//! messages are, since they show it.

mod members;

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;

use crate::collections::footprint::{allocated, tree};
use crate::collections::ordered::OrderedSet;
use crate::message::after::{Counts, OnFail};
use crate::message::id::NameHasher;
use crate::{Millis, Seq};
pub use members::Members;

/// The held messages of a batch, by their ONFAIL, each in send order.
pub type Held = [OrderedSet<Seq>; OnFail::ALL.len()];

/// Drops up to `limit` held messages. Returns how many.
fn drain_held(held: &mut Held, limit: usize) -> usize {
    let drain =
        |drained, of_kind: &mut OrderedSet<Seq>| drained + of_kind.drain_some(limit - drained);
    held.iter_mut().fold(0, drain)
}

/// One named batch.
#[derive(Debug, Clone, Default)]
pub struct NamedBatch {
    /// Its name.
    pub name: Box<[u8]>,
    /// Messages and records of it that the queue still has.
    pub members: u64,
    /// Its messages by state.
    pub counts: Counts,
    /// The messages that it holds.
    pub held: Held,
    /// The batches that hold messages of this batch, and the number of those messages for each.
    pub waits_for: BTreeMap<Seq, u64>,
}

impl NamedBatch {
    /// How many messages it holds. O(1).
    pub fn held_count(&self) -> u64 {
        self.held.iter().map(|held| held.len() as u64).sum()
    }

    /// Whether a message of the batch has not ended, or the batch holds a message.
    pub fn is_open(&self) -> bool {
        self.counts.unended() > 0 || self.held_count() > 0
    }

    /// Whether a message with this ONFAIL waits for it.
    pub fn holds(&self, on_fail: OnFail) -> bool {
        match on_fail {
            OnFail::Hold | OnFail::Die => self.counts.unended() > 0,
            OnFail::Go => self.counts.live() > 0,
        }
    }
}

/// Messages that are held no longer because of one event, and are still among the held
/// ones.
#[derive(Debug, Clone)]
pub struct Released {
    /// The number of the batch that held them.
    pub batch: Seq,
    /// The time of the event, in Unix ms.
    pub at: Millis,
    /// Whether the messages die.
    pub dies: bool,
    /// The messages of the batch at that moment.
    pub counts: Counts,
    /// The messages that are held.
    pub held: Held,
}

impl Released {
    /// Removes the first message in send order.
    pub fn pop_first(&mut self) -> Option<Seq> {
        let firsts = self.held.iter_mut();
        let firsts = firsts.filter_map(|held| Some((held.first()?.0, held)));
        let (_, of_first) = firsts.min_by_key(|(seq, _)| *seq)?;
        of_first.pop_first().map(|(seq, ())| seq)
    }

    /// All messages in send order.
    pub fn all(&self) -> Vec<Seq> {
        let held = self.held.iter().flat_map(|held| held.iter());
        let mut all: Vec<Seq> = held.map(|(seq, ())| seq).collect();
        all.sort_unstable();
        all
    }
}

/// The names of two batches of which the first waits for the second.
pub type Edge<'a> = (&'a [u8], &'a [u8]);

/// The state of all named batches of a queue.
#[derive(Debug, Clone, Default)]
pub struct Batches {
    by_name: HashMap<Box<[u8]>, Seq, NameHasher>,
    all: BTreeMap<Seq, NamedBatch>,
    /// The numbers of the open batches.
    pub open: OrderedSet<Seq>,
    /// The batch of each message.
    pub members: Members,
    /// Batches that may hold nobody any longer, and since when (Unix ms).
    pub touched: Vec<(Seq, Millis)>,
    /// Messages that are held no longer, the next ones to leave first.
    pub released: VecDeque<Released>,
}

impl Batches {
    /// The batch with this number.
    pub fn get(&self, batch: Seq) -> Option<&NamedBatch> {
        self.all.get(&batch)
    }

    /// The batch with this number, for a change after which
    /// [`Batches::settle`] is called if it may be open or closed by it.
    pub fn get_mut(&mut self, batch: Seq) -> Option<&mut NamedBatch> {
        self.all.get_mut(&batch)
    }

    /// The number of the batch with this name. O(1).
    pub fn find(&self, name: &[u8]) -> Option<Seq> {
        self.by_name.get(name).copied()
    }

    /// The batch of this name, if there is one.
    pub fn named(&self, name: &[u8]) -> Option<&NamedBatch> {
        self.get(self.find(name)?)
    }

    /// Adds a batch that a message with this number is the first to join.
    pub fn add(&mut self, batch: Seq, name: &[u8]) {
        self.by_name.insert(name.into(), batch);
        let named = NamedBatch {
            name: name.into(),
            ..NamedBatch::default()
        };
        self.all.insert(batch, named);
    }

    /// Updates whether a batch is open. Forgets it if nothing is left of it.
    pub fn settle(&mut self, batch: Seq) {
        let Some(named) = self.all.get_mut(&batch) else {
            return;
        };
        if named.is_open() {
            self.open.insert(batch, ());
            return;
        }
        self.open.remove(&batch);
        named.counts = Counts::default();
        if named.members == 0 {
            let name = std::mem::take(&mut named.name);
            self.by_name.remove(&name);
            self.all.remove(&batch);
        }
    }

    /// Notes that a batch may hold nobody any longer since `at`.
    pub fn touch(&mut self, batch: Seq, at: Millis) {
        match self.touched.last_mut() {
            Some((last, since)) if *last == batch => *since = at.max(*since),
            _ => self.touched.push((batch, at)),
        }
    }

    /// The open batches behind one with this number, by number.
    pub fn open_after(&self, batch: Seq) -> impl Iterator<Item = (Seq, &NamedBatch)> + '_ {
        let numbers = self.open.range_from(std::ops::Bound::Excluded(batch));
        numbers.filter_map(|(number, ())| Some((number, self.get(number)?)))
    }

    /// All batches, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Seq, &NamedBatch)> + '_ {
        self.all.iter().map(|(number, named)| (*number, named))
    }

    /// Whether no batch is left, so that the queue need not keep this.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.released.is_empty()
    }

    /// Whether a batch waits for another one, directly or through others, as far as
    /// `most` steps show. `more` are pairs of batches of which the first will wait for
    /// the second, too; each of `without` is a pair of which one message fewer makes
    /// it wait. Returns the names on the way there, both ends included.
    pub fn way<'a>(
        &'a self,
        from: &'a [u8],
        to: &[u8],
        more: &[Edge<'a>],
        without: &[Edge],
        most: usize,
    ) -> Option<Vec<&'a [u8]>> {
        // Each entry is a batch and the index of the batch that waits for it.
        let mut found: Vec<(&[u8], usize)> = vec![(from, 0)];
        let mut at = 0;
        let mut steps = 0;
        while let Some((name, _)) = found.get(at).copied() {
            let waits_for = self.named(name).map(|named| &named.waits_for);
            let stored = waits_for.into_iter().flatten().filter_map(|(next, count)| {
                let next = &*self.get(*next)?.name;
                let fewer = without.iter().filter(|edge| **edge == (name, next));
                (*count > fewer.count() as u64).then_some(next)
            });
            let more = more.iter().filter(|(waits, _)| *waits == name);
            let more = more.map(|(_, next)| *next);
            for next in stored.chain(more) {
                if steps == most {
                    return None;
                }
                steps += 1;
                if next == to {
                    let mut way = vec![next, name];
                    while at > 0 {
                        at = found.get(at)?.1;
                        way.push(found.get(at)?.0);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !found.iter().any(|(known, _)| *known == next) {
                    found.push((next, at));
                }
            }
            at += 1;
        }
        None
    }

    /// Drops up to `limit` entries of one part of all this. Returns how many, 0 if
    /// nothing is left. Only for freeing everything in slices: it must not be used for
    /// anything else afterwards.
    pub fn drain_some(&mut self, limit: usize) -> usize {
        if let Some(released) = self.released.back_mut() {
            return match drain_held(&mut released.held, limit) {
                0 => self.released.pop_back().map_or(0, |_| 1),
                count => count,
            };
        }
        if let Some(mut last) = self.all.last_entry() {
            let named = last.get_mut();
            let held = drain_held(&mut named.held, limit);
            let waits_for = (held..limit).map_while(|_| named.waits_for.pop_last());
            return match held + waits_for.count() {
                0 => {
                    let named = last.remove();
                    self.by_name.remove(&named.name);
                    1
                }
                count => count,
            };
        }
        let open = self.open.drain_some(limit);
        open + self.members.drain_some(limit - open)
    }

    /// Bytes allocated, roughly. O(batches).
    pub fn memory_bytes(&self) -> usize {
        let sets = |held: &Held| held.iter().map(OrderedSet::memory_bytes).sum::<usize>();
        let batches = self.all.values().map(|named| {
            2 * allocated(named.name.len())
                + sets(&named.held)
                + tree(size_of::<(Seq, u64)>(), named.waits_for.len())
        });
        let released = self.released.iter();
        let released = released.map(|released| size_of::<Released>() + sets(&released.held));
        size_of::<Batches>()
            + tree(size_of::<(Seq, NamedBatch)>(), self.all.len())
            + batches.sum::<usize>()
            + released.sum::<usize>()
            + allocated(self.by_name.allocation_size())
            + self.open.memory_bytes()
            + self.members.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::members::PAGE;
    use super::*;

    #[test]
    fn a_way_is_found_within_its_steps() {
        let mut batches = Batches::default();
        for batch in 1..=5 {
            batches.add(batch, &[batch as u8]);
            let next = batch % 5 + 1;
            batches
                .get_mut(batch)
                .unwrap()
                .waits_for
                .extend([(next, 1), (9, 1)]);
        }
        let names: [&[u8]; 5] = [&[1], &[2], &[3], &[4], &[5]];
        let [one, two, _, four, _] = names;
        let way = |from, to, most| batches.way(from, to, &[], &[], most);
        assert_eq!(way(one, four, 64), Some(names[..4].to_vec()));
        assert_eq!(way(two, two, 64).map(|way| way.len()), Some(6));
        assert_eq!(way(one, four, 2), None);
        let without = [(two, names[2])];
        assert_eq!(batches.way(one, four, &[], &without, 64), None);
        let more = [(one, &b"new"[..]), (&b"new"[..], four)];
        let way = batches.way(one, four, &more, &without, 64);
        assert_eq!(way, Some(vec![one, b"new", four]));
    }

    /// All entries that are freed one by one.
    fn entries(batches: &Batches) -> usize {
        let of_held = |held: &Held| held.iter().map(OrderedSet::len).sum::<usize>();
        let named = batches.all.values();
        let named = named.map(|named| 1 + of_held(&named.held) + named.waits_for.len());
        let released = batches.released.iter();
        let released = released.map(|released| 1 + of_held(&released.held));
        let indexes = batches.open.len();
        named.sum::<usize>() + released.sum::<usize>() + indexes + batches.members.len()
    }

    #[test]
    fn all_is_freed_in_slices_that_are_bounded() {
        const LIMIT: usize = 100;
        let mut batches = Batches::default();
        let set = |from: Seq| (from..from + 1000).map(|seq| (seq, ()));
        for batch in 1..=50 {
            batches.add(batch, &batch.to_le_bytes());
            batches.open.insert(batch, ());
            let named = batches.get_mut(batch).unwrap();
            for kind in &mut named.held {
                *kind = OrderedSet::from_sorted(set(batch));
            }
            named.waits_for = (0..1000).map(|other| (other, 1)).collect();
            batches.released.push_back(Released {
                batch,
                at: 0,
                dies: false,
                counts: Counts::default(),
                held: [(); 3].map(|()| OrderedSet::from_sorted(set(batch))),
            });
        }
        for seq in 0..PAGE * 100 {
            batches.members.insert(seq, 1);
        }
        let mut left = entries(&batches);
        while left > 0 {
            let count = batches.drain_some(LIMIT);
            assert!((1..=LIMIT).contains(&count), "{count}");
            assert_eq!(left - entries(&batches), count);
            left -= count;
        }
        assert_eq!((batches.drain_some(LIMIT), batches.by_name.len()), (0, 0));
    }
}
