//! Who fetches.

use hashbrown::HashMap;

use super::id::NameHasher;
use super::{Millis, TimeIndex};

/// A consumer without leases is forgotten this long after it was last seen.
pub const FORGET_AFTER: Millis = 3_600_000;

/// Names a consumer within its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerIx(u32);

impl ConsumerIx {
    /// No consumer: the fetch named none.
    pub const NONE: ConsumerIx = ConsumerIx(u32::MAX);

    /// The number of its slot.
    pub fn number(self) -> u64 {
        u64::from(self.0)
    }
}

/// One consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// As FETCH named it.
    pub name: Box<[u8]>,
    /// When it last fetched.
    pub last_seen: Millis,
    /// Leases it has.
    pub running: u64,
    /// Messages it was given.
    pub delivered: u64,
    /// Messages it acked.
    pub acked: u64,
    /// Messages it nacked.
    pub nacked: u64,
    /// Messages and records that name it.
    mentions: u64,
    /// Whether it still counts as a consumer, or only is named by records.
    known: bool,
}

/// The consumers of a queue.
#[derive(Debug, Clone, Default)]
pub struct Consumers {
    by_name: HashMap<Box<[u8]>, ConsumerIx, NameHasher>,
    slots: Vec<Option<Consumer>>,
    free: Vec<u32>,
    /// Those without leases, by when they were last seen.
    idle: TimeIndex,
}

impl Consumers {
    /// The consumer of this name, made if it is new, seen at `now`.
    pub fn see(&mut self, name: &[u8], now: Millis) -> ConsumerIx {
        let ix = match self.by_name.get(name) {
            Some(ix) => *ix,
            None => self.add(Consumer {
                name: name.into(),
                last_seen: now,
                running: 0,
                delivered: 0,
                acked: 0,
                nacked: 0,
                mentions: 0,
                known: false,
            }),
        };
        self.change(ix, |consumer| {
            if !consumer.known {
                consumer.known = true;
                consumer.delivered = 0;
                consumer.acked = 0;
                consumer.nacked = 0;
            }
            consumer.last_seen = now;
        });
        ix
    }

    /// Whether `see` would change nothing.
    pub fn was_seen(&self, name: &[u8], now: Millis) -> bool {
        self.by_name
            .get(name)
            .and_then(|ix| self.get(*ix))
            .is_some_and(|consumer| consumer.known && consumer.last_seen == now)
    }

    /// The consumer with this number.
    pub fn get(&self, ix: ConsumerIx) -> Option<&Consumer> {
        self.slots.get(ix.0 as usize)?.as_ref()
    }

    /// Its name, if it has one.
    pub fn name(&self, ix: ConsumerIx) -> Option<&[u8]> {
        self.get(ix).map(|consumer| &*consumer.name)
    }

    /// A message names this consumer from now on; whether it is leased to it.
    pub fn deliver(&mut self, ix: ConsumerIx, leased: bool) {
        self.change(ix, |consumer| {
            consumer.delivered += 1;
            consumer.running += u64::from(leased);
            consumer.mentions += 1;
        });
    }

    /// One of its leases has ended.
    pub fn release(&mut self, ix: ConsumerIx) {
        self.change(ix, |consumer| {
            consumer.running = consumer.running.saturating_sub(1);
        });
    }

    /// It acked a message.
    pub fn ack(&mut self, ix: ConsumerIx) {
        self.change(ix, |consumer| consumer.acked += 1);
    }

    /// It nacked a message.
    pub fn nack(&mut self, ix: ConsumerIx) {
        self.change(ix, |consumer| consumer.nacked += 1);
    }

    /// A message that named it is gone, or names another now.
    pub fn unmention(&mut self, ix: ConsumerIx) {
        if ix == ConsumerIx::NONE {
            return;
        }
        self.change(ix, |consumer| {
            consumer.mentions = consumer.mentions.saturating_sub(1);
        });
        self.drop_unused(ix);
    }

    /// All leases have ended.
    pub fn release_all(&mut self) {
        for ix in 0..self.slots.len() as u32 {
            self.change(ConsumerIx(ix), |consumer| consumer.running = 0);
        }
    }

    /// All messages that named consumers are gone.
    pub fn unmention_all(&mut self) {
        for ix in 0..self.slots.len() as u32 {
            self.change(ConsumerIx(ix), |consumer| {
                consumer.running = 0;
                consumer.mentions = 0;
            });
            self.drop_unused(ConsumerIx(ix));
        }
    }

    /// A message of a snapshot names it.
    pub fn mention(&mut self, name: &[u8], leased: bool) -> ConsumerIx {
        let ix = match self.by_name.get(name) {
            Some(ix) => *ix,
            None => self.add(Consumer {
                name: name.into(),
                last_seen: 0,
                running: 0,
                delivered: 0,
                acked: 0,
                nacked: 0,
                mentions: 0,
                known: false,
            }),
        };
        self.change(ix, |consumer| {
            consumer.mentions += 1;
            consumer.running += u64::from(leased);
        });
        ix
    }

    /// Puts a consumer of a snapshot in: one that is known, with its counts.
    pub fn restore(&mut self, name: &[u8], last_seen: Millis, counts: [u64; 3]) {
        let ix = self.see(name, last_seen);
        let [delivered, acked, nacked] = counts;
        self.change(ix, |consumer| {
            consumer.delivered = delivered;
            consumer.acked = acked;
            consumer.nacked = nacked;
        });
    }

    /// When the next one is to be forgotten, if ever.
    pub fn next_forget(&self) -> Option<Millis> {
        let ((seen, _), ()) = self.idle.first()?;
        Some(seen.saturating_add(FORGET_AFTER))
    }

    /// Forgets the one that has been idle longest, and all that were last seen
    /// in the same millisecond: which of them is first depends on where they
    /// are in memory.
    pub fn forget_next(&mut self) {
        let Some(((oldest, _), ())) = self.idle.first() else {
            return;
        };
        while let Some(((seen, ix), ())) = self.idle.first() {
            if seen != oldest {
                return;
            }
            let ix = ConsumerIx(ix as u32);
            self.change(ix, |consumer| consumer.known = false);
            self.drop_unused(ix);
        }
    }

    /// All that count as consumers, by name.
    pub fn known(&self) -> Vec<&Consumer> {
        let mut known: Vec<&Consumer> = self
            .slots
            .iter()
            .flatten()
            .filter(|consumer| consumer.known)
            .collect();
        known.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        known
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Consumer>>()
            + self.by_name.capacity() * 40
            + self.idle.memory_bytes()
    }

    fn add(&mut self, consumer: Consumer) -> ConsumerIx {
        let name = consumer.name.clone();
        let ix = match self.free.pop() {
            Some(ix) => ix,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        if let Some(slot) = self.slots.get_mut(ix as usize) {
            *slot = Some(consumer);
        }
        self.by_name.insert(name, ConsumerIx(ix));
        ConsumerIx(ix)
    }

    /// Changes one and keeps `idle` in step with it.
    fn change(&mut self, ix: ConsumerIx, change: impl FnOnce(&mut Consumer)) {
        let Some(consumer) = self.slots.get_mut(ix.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let before = idle_key(ix, consumer);
        change(consumer);
        let after = idle_key(ix, consumer);
        if before != after {
            if let Some(key) = before {
                self.idle.remove(&key);
            }
            if let Some(key) = after {
                self.idle.insert(key, ());
            }
        }
    }

    fn drop_unused(&mut self, ix: ConsumerIx) {
        let Some(slot) = self.slots.get_mut(ix.0 as usize) else {
            return;
        };
        if slot
            .as_ref()
            .is_some_and(|consumer| !consumer.known && consumer.mentions == 0)
        {
            if let Some(consumer) = slot.take() {
                self.by_name.remove(&consumer.name);
                self.free.push(ix.0);
            }
        }
    }
}

fn idle_key(ix: ConsumerIx, consumer: &Consumer) -> Option<(Millis, u64)> {
    (consumer.known && consumer.running == 0).then_some((consumer.last_seen, u64::from(ix.0)))
}
