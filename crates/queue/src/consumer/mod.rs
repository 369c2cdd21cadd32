//! The consumers of a queue: the names under which clients fetch, and the counts of their messages.

mod rare;
mod token_delivery;

use hashbrown::HashMap;

use crate::collections::footprint::{allocated, array};
use crate::message::id::NameHasher;
use crate::sums::Count;
use crate::{ConsumerIx, Millis, TimeIndex};
pub use token_delivery::TokenDelivery;

/// How long after its last fetch a consumer without leases is forgotten, in ms.
pub const FORGET_AFTER: Millis = 3_600_000;

/// The most listed consumers without leases. If there are more, those that have not fetched
/// for longest are forgotten earlier.
const MAX_IDLE: usize = 10_000;
/// The most bytes in the names of listed consumers without leases.
const MAX_IDLE_BYTES: usize = 1 << 20;

/// One consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// The name given with FETCH.
    pub name: Box<[u8]>,
    /// When it last fetched.
    pub last_seen: Millis,
    /// Leases that it holds now.
    pub running: u64,
    /// Messages delivered to it.
    pub delivered: Count,
    /// Messages that it acked.
    pub acked: Count,
    /// Messages that it nacked.
    pub nacked: Count,
    /// Messages and records that name it as their last consumer.
    mentions: u64,
    /// Whether it is listed as a consumer. If false, it was forgotten and only
    /// records or messages still name it.
    known: bool,
}

/// The last deliveries of consumers, by consumer.
type TokenDeliveries = HashMap<ConsumerIx, TokenDelivery, NameHasher>;

/// The consumers of a queue.
#[derive(Debug, Clone, Default)]
pub struct Consumers {
    by_name: HashMap<Box<[u8]>, ConsumerIx, NameHasher>,
    slots: Vec<Option<Consumer>>,
    free: Vec<u32>,
    /// Listed consumers without leases, by the time of their last fetch.
    idle: TimeIndex,
    /// The bytes in the names of the consumers in `idle`.
    idle_bytes: usize,
    /// The last delivery of each listed consumer that asked for it with a token;
    /// `None` if there is no such consumer.
    tokens: Option<Box<TokenDeliveries>>,
}

impl Consumers {
    /// Records that the consumer with this name was seen at `now`, and adds it if
    /// it is new. Counts of a consumer that had been forgotten start again at 0. If there
    /// are too many, those that were idle longest are forgotten: a FETCH is never refused
    /// for its name, so names must not fill the memory.
    pub fn see(&mut self, name: &[u8], now: Millis) -> ConsumerIx {
        let ix = match self.by_name.get(name) {
            Some(ix) if self.get(*ix).is_some_and(|consumer| consumer.known) => *ix,
            _ => {
                self.make_room(name.len());
                self.find_or_add(name, now)
            }
        };
        self.list(ix, now);
        ix
    }

    /// Forgets consumers until another one with a name of this length may be listed.
    fn make_room(&mut self, len: usize) {
        while self.idle.len() >= MAX_IDLE || self.idle_bytes + len > MAX_IDLE_BYTES {
            if self.idle.first().is_none() {
                return;
            }
            self.forget_next();
        }
    }

    /// Lists a consumer as one that was seen at `now`.
    fn list(&mut self, ix: ConsumerIx, now: Millis) {
        self.change(ix, |consumer| {
            if !consumer.known {
                consumer.known = true;
                consumer.delivered = Count::default();
                consumer.acked = Count::default();
                consumer.nacked = Count::default();
            }
            consumer.last_seen = now;
        });
    }

    /// Whether `see` with these arguments would change nothing.
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

    /// The name of a consumer; `None` for [`ConsumerIx::NONE`].
    pub fn name(&self, ix: ConsumerIx) -> Option<&[u8]> {
        self.get(ix).map(|consumer| &*consumer.name)
    }

    /// Whether the last delivery of any consumer was asked for with a token.
    pub fn has_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// The last delivery of a consumer, if it was asked for with a token.
    pub fn token_delivery(&self, ix: ConsumerIx) -> Option<&TokenDelivery> {
        self.tokens.as_ref()?.get(&ix)
    }

    /// The last delivery of the consumer with this name, if it was asked for with a
    /// token.
    pub fn token_delivery_of(&self, name: &[u8]) -> Option<&TokenDelivery> {
        self.token_delivery(*self.by_name.get(name)?)
    }

    /// Records the last delivery of a consumer; `None` if it was asked for without a
    /// token.
    pub fn set_token_delivery(&mut self, ix: ConsumerIx, delivery: Option<TokenDelivery>) {
        match (delivery, &mut self.tokens) {
            (Some(delivery), tokens) => {
                tokens.get_or_insert_default().insert(ix, delivery);
            }
            (None, Some(tokens)) => {
                tokens.remove(&ix);
                if tokens.is_empty() {
                    self.tokens = None;
                }
            }
            (None, None) => {}
        }
    }

    /// Records the last delivery of a listed consumer from a snapshot. Returns
    /// whether there is such a consumer, and no delivery of it was recorded before.
    pub fn restore_token(&mut self, name: &[u8], delivery: TokenDelivery) -> bool {
        let Some(ix) = self.by_name.get(name).copied() else {
            return false;
        };
        let is_known = self.get(ix).is_some_and(|consumer| consumer.known);
        let is_new = self.token_delivery(ix).is_none();
        if is_known {
            self.set_token_delivery(ix, Some(delivery));
        }
        is_known && is_new
    }

    /// The last deliveries that were asked for with a token, by the names of their
    /// consumers. O(n log n).
    pub fn token_deliveries(&self) -> Vec<(&[u8], &TokenDelivery)> {
        let all = self.tokens.iter().flat_map(|tokens| tokens.iter());
        let named = all.filter_map(|(ix, delivery)| Some((self.name(*ix)?, delivery)));
        let mut sorted: Vec<_> = named.collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        sorted
    }

    /// Forgets all deliveries that were asked for with a token.
    pub fn forget_tokens(&mut self) {
        self.tokens = None;
    }

    /// Counts a delivery to this consumer, which the message names from now on.
    /// `leased` says whether the delivery takes a lease.
    pub fn deliver(&mut self, ix: ConsumerIx, leased: bool) {
        self.change(ix, |consumer| {
            consumer.delivered += 1;
            consumer.running += u64::from(leased);
            consumer.mentions += 1;
        });
    }

    /// Records that one of its leases has ended.
    pub fn release(&mut self, ix: ConsumerIx) {
        self.change(ix, |consumer| {
            debug_assert!(consumer.running > 0, "a consumer has no lease to end");
            consumer.running = consumer.running.saturating_sub(1);
        });
    }

    /// Counts an ack.
    pub fn ack(&mut self, ix: ConsumerIx) {
        self.change(ix, |consumer| consumer.acked += 1);
    }

    /// Counts a nack.
    pub fn nack(&mut self, ix: ConsumerIx) {
        self.change(ix, |consumer| consumer.nacked += 1);
    }

    /// Records that a message no longer names this consumer, because it was removed
    /// or delivered to another one.
    pub fn unmention(&mut self, ix: ConsumerIx) {
        if ix == ConsumerIx::NONE {
            return;
        }
        self.change(ix, |consumer| {
            debug_assert!(consumer.mentions > 0, "no message names a consumer");
            consumer.mentions = consumer.mentions.saturating_sub(1);
        });
        self.drop_unused(ix);
    }

    /// Records that all messages that named consumers were removed. O(consumers).
    pub fn unmention_all(&mut self) {
        for ix in 0..self.slots.len() as u32 {
            self.change(ConsumerIx(ix), |consumer| {
                consumer.running = 0;
                consumer.mentions = 0;
            });
            self.drop_unused(ConsumerIx(ix));
        }
    }

    /// Records that a message of a snapshot names this consumer, and adds it if it
    /// is new. `leased` says whether that message is leased.
    pub fn mention(&mut self, name: &[u8], leased: bool) -> ConsumerIx {
        let ix = self.find_or_add(name, 0);
        self.change(ix, |consumer| {
            consumer.mentions += 1;
            consumer.running += u64::from(leased);
        });
        ix
    }

    /// Adds a listed consumer from a snapshot. `counts` are messages delivered,
    /// acked and nacked.
    pub fn restore(&mut self, name: &[u8], last_seen: Millis, counts: [Count; 3]) {
        let ix = self.find_or_add(name, last_seen);
        self.list(ix, last_seen);
        let [delivered, acked, nacked] = counts;
        self.change(ix, |consumer| {
            consumer.delivered = delivered;
            consumer.acked = acked;
            consumer.nacked = nacked;
        });
    }

    /// When the next consumer is to be forgotten; `None` if there is none without
    /// leases.
    pub fn next_forget(&self) -> Option<Millis> {
        let ((seen, _), ()) = self.idle.first()?;
        Some(seen.saturating_add(FORGET_AFTER))
    }

    /// Forgets the consumer that has been idle longest, and all others with the
    /// same time of the last fetch. All of them go at once because their order
    /// depends on slot numbers, which may differ between servers.
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
            self.set_token_delivery(ix, None);
            self.drop_unused(ix);
        }
    }

    /// The listed consumers, sorted by name. O(n log n).
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

    /// Bytes allocated, an estimate. O(consumers).
    pub fn memory_bytes(&self) -> usize {
        // A name is here and in the table of names.
        let names = self.slots.iter().flatten();
        let names = names.map(|consumer| 2 * allocated(consumer.name.len()));
        array::<Option<Consumer>>(self.slots.capacity())
            + array::<u32>(self.free.capacity())
            + allocated(self.by_name.allocation_size())
            + names.sum::<usize>()
            + self.idle.memory_bytes()
            + self.tokens.as_ref().map_or(0, |tokens| {
                let each = tokens.values().map(TokenDelivery::heap_bytes);
                allocated(tokens.allocation_size()) + each.sum::<usize>()
            })
    }

    /// The consumer with this name. One that is new is added, last seen then.
    #[inline]
    fn find_or_add(&mut self, name: &[u8], last_seen: Millis) -> ConsumerIx {
        match self.by_name.get(name) {
            Some(ix) => *ix,
            None => self.add(Consumer {
                name: name.into(),
                last_seen,
                running: 0,
                delivered: Count::default(),
                acked: Count::default(),
                nacked: Count::default(),
                mentions: 0,
                known: false,
            }),
        }
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

    /// Changes a consumer and updates `idle`.
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
                self.idle_bytes -= consumer.name.len();
            }
            if let Some(key) = after {
                self.idle.insert(key, ());
                self.idle_bytes += consumer.name.len();
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

#[cfg(test)]
mod tests;
