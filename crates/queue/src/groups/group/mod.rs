//! One group of a queue: messages that are delivered in an order of their own, one
//! batch at a time or a few.
//!
//! A queue may have a million groups with some messages each. This struct therefore
//! has only what every group needs; the rest is in [`GroupExtension`]. The table of
//! all groups is in `mod.rs`.

mod extension;

use smallvec::SmallVec;

use super::backlog::{Backlog, Pending};
use super::breaker::{Circuit, Lets};
use super::holds::Holds;
use crate::collections::footprint::allocated;
use crate::collections::ordered::OrderedSet;
use crate::collections::rate_window::RateWindow;
use crate::index::order_key::OrderKey;
use crate::index::ready_line::{Position, Spot};
use crate::message::state::StoredState;
use crate::settings::Rate;
use crate::{GroupIx, Millis, Receipt};
pub use extension::{GroupExtension, GroupSettings, Home, LimitedGroup};

/// The name of a group. Names of at most 16 bytes, the usual ones, need no
/// allocation.
pub type GroupName = SmallVec<[u8; 16]>;

static NO_EXTENSION: GroupExtension = GroupExtension::new();

/// One group. 128 bytes with its slot, plus its pending messages.
#[derive(Debug, Clone)]
pub struct Group {
    /// The name given with SEND.
    pub name: GroupName,
    /// Its pending messages, without stale entries.
    pub(crate) backlog: Backlog,
    /// Messages that are leased.
    pub running: u32,
    /// The first receipt of its oldest leased batch, or 0 if none is leased. A
    /// group nearly always has one leased batch at most.
    batch: Receipt,
    /// Messages and records that belong to the group.
    pub members: u32,
    /// State that only some groups have, allocated if the group has any of it.
    ext: Option<Box<GroupExtension>>,
    /// Its position in the ready line, if it can deliver, or else the first expected
    /// position that is already known.
    spot: Spot,
    /// Whether its due messages count as ready in the counts of the queue.
    pub(crate) counted: bool,
    /// Whether the table of groups counts it as listed.
    pub(crate) listed: bool,
    /// Whether the table lists it among the groups that dead messages hold.
    pub(crate) held: bool,
    /// Whether the table counts it as a group with an extension.
    pub(crate) extended: bool,
}

impl Group {
    /// An empty group. `known` are the purges so far, which cannot affect it.
    pub(crate) fn new(name: &[u8]) -> Group {
        Group {
            name: GroupName::from_slice(name),
            backlog: Backlog::default(),
            running: 0,
            batch: 0,
            members: 0,
            ext: None,
            spot: Spot::Nowhere,
            counted: false,
            listed: false,
            held: false,
            extended: false,
        }
    }

    /// Bytes allocated for its name.
    pub(super) fn name_bytes(&self) -> usize {
        match self.name.spilled() {
            true => allocated(self.name.capacity()),
            false => 0,
        }
    }

    /// The extension of the group, which only some groups have. Returns empty defaults
    /// if this group has none.
    pub fn ext(&self) -> &GroupExtension {
        self.ext.as_deref().unwrap_or(&NO_EXTENSION)
    }

    /// The extension, if there is one.
    pub fn ext_if_any(&mut self) -> Option<&mut GroupExtension> {
        self.ext.as_deref_mut()
    }

    /// The extension, allocated if there is none yet.
    pub fn ext_mut(&mut self) -> &mut GroupExtension {
        self.ext.get_or_insert_with(Box::default)
    }

    /// Frees the extension if nothing is left in it. Returns whether the group
    /// still has one.
    pub(crate) fn tidy(&mut self) -> bool {
        if self.ext.as_ref().is_some_and(|ext| ext.is_empty()) {
            self.ext = None;
        }
        self.ext.is_some()
    }

    /// Sets how many messages the group has delivered in its current turn.
    pub fn set_turn(&mut self, given: u64) {
        if given != self.ext().turn {
            self.ext_mut().turn = given;
        }
    }

    /// The first receipts of its leased batches, in ascending order.
    pub fn batches(&self) -> impl Iterator<Item = Receipt> + '_ {
        let others = self.ext().batches.iter().map(|(first, ())| first);
        let oldest = (self.batch != 0).then_some(self.batch);
        oldest.into_iter().chain(others)
    }

    /// The number of its leased batches. O(1).
    pub fn batch_count(&self) -> u64 {
        self.ext().batches.len() as u64 + u64::from(self.batch != 0)
    }

    /// Records a leased batch by its first receipt, which must be above those of
    /// all its other batches.
    pub fn open_batch(&mut self, first: Receipt) {
        if self.batch == 0 {
            self.batch = first;
        } else {
            self.ext_mut().batches.insert(first, ());
        }
    }

    /// Records that a batch is no longer leased.
    pub fn close_batch(&mut self, first: Receipt) {
        if self.batch == first {
            let next = self.ext_if_any().and_then(|ext| ext.batches.pop_first());
            self.batch = next.map_or(0, |(next, ())| next);
        } else if let Some(ext) = self.ext_if_any() {
            let known = ext.batches.remove(&first);
            debug_assert!(known.is_some(), "a group does not have its batch");
        }
    }

    /// The dead messages that hold the group.
    pub fn holds(&self) -> &Holds {
        &self.ext().holds
    }

    /// Releases the group from all dead messages that hold it, and returns those.
    pub fn take_holds(&mut self) -> Holds {
        let ext = self.ext_if_any();
        ext.map_or_else(Holds::new, |ext| std::mem::take(&mut ext.holds))
    }

    /// If the group has more than `most` messages in one of its orders, drops about
    /// `most` of them. Returns whether it did. Only for freeing in slices: the
    /// group must not be used for anything else afterwards.
    pub(crate) fn drain_many(&mut self, most: usize) -> bool {
        let ext = self.ext.as_deref_mut();
        self.backlog.drain_many(most)
            || ext.is_some_and(|ext| {
                ext.records.drain_many(most)
                    || ext.holds.drain_many(most)
                    || ext.batches.drain_many(most)
            })
    }

    /// Its records in a stored state, which must be one of ended messages.
    pub fn records_at(&self, stored: StoredState) -> Option<&OrderedSet<OrderKey>> {
        self.ext().records.at(stored)
    }

    /// Its pending messages, without stale entries.
    pub fn pending(&self) -> Pending<'_> {
        self.backlog.all()
    }

    /// Whether it is in the ready line.
    #[inline]
    pub fn is_in_line(&self) -> bool {
        matches!(self.spot, Spot::Line { .. })
    }

    /// Its position in the ready line; `ix` is its own number.
    pub fn position(&self, ix: GroupIx) -> Option<Position> {
        self.spot.key(ix).filter(|_| self.is_in_line())
    }

    /// The positions that it will have in the ready line, as far as they are known, in
    /// the order of their times.
    pub fn expected(&self, ix: GroupIx) -> impl DoubleEndedIterator<Item = Position> + '_ {
        let first = self.spot.key(ix).filter(|_| !self.is_in_line());
        first.into_iter().chain(self.ext().further.iter().copied())
    }

    /// Whether it has such an expected position.
    pub fn is_expected(&self) -> bool {
        let has_further = |ext: &GroupExtension| !ext.further.is_empty();
        matches!(self.spot, Spot::Expected { .. }) || self.ext.as_deref().is_some_and(has_further)
    }

    /// Sets its position in the ready line, if it has one, and the positions that
    /// are expected.
    pub(crate) fn set_positions(&mut self, line: Option<Position>, expected: &[Position]) {
        let (spot, further) = match (line, expected) {
            (Some(key), further) => (Spot::in_line(key), further),
            (None, [first, further @ ..]) => (Spot::expected(*first), further),
            (None, []) => (Spot::Nowhere, expected),
        };
        self.spot = spot;
        if further != self.ext().further {
            self.ext_mut().further = further.to_vec();
        }
    }

    /// Sets its position in the ready line, where none is expected.
    pub(crate) fn set_line(&mut self, line: Option<Position>) {
        self.spot = line.map_or(Spot::Nowhere, Spot::in_line);
    }

    /// Takes the group out of the ready line and returns the position that it had.
    /// Expected positions stay.
    pub(crate) fn leave_line(&mut self, ix: GroupIx) -> Option<Position> {
        let before = self.position(ix);
        if before.is_some() {
            self.spot = Spot::Nowhere;
        }
        before
    }

    /// How many messages the group delivers in one turn; at least 1.
    pub fn weight(&self) -> u64 {
        self.ext().settings.as_ref().map_or(1, |s| s.weight.max(1))
    }

    /// Its own limit of deliveries, and the deliveries counted for it, if it has
    /// one.
    pub fn rate(&self) -> Option<(Rate, &RateWindow)> {
        let settings = self.ext().settings.as_ref()?;
        Some((settings.rate?, &settings.window))
    }

    /// How many messages its own limit still allows at `now`; the largest number if
    /// it has no limit.
    pub fn allowance(&self, now: Millis) -> u64 {
        self.rate()
            .map_or(u64::MAX, |(rate, window)| window.free(rate, now))
    }

    /// Whether it is paused at `now`.
    pub fn is_paused(&self, now: Millis) -> bool {
        self.ext().paused_until.is_some_and(|until| until > now)
    }

    /// Its breaker, unless that is closed and remembers no failure.
    pub fn breaker(&self) -> Option<&Circuit> {
        self.ext().breaker.as_deref()
    }

    /// How many messages its breaker lets out at `now`.
    pub fn lets(&self, now: Millis) -> Lets {
        self.breaker()
            .map_or(Lets::Any, |circuit| circuit.lets(now))
    }

    /// The last of its expected positions whose time has come by `now`: it has this
    /// position, though the ready line does not contain it yet.
    pub fn given_position(&self, ix: GroupIx, now: Millis) -> Option<Position> {
        let mut given = self.expected(ix).rev();
        given.find(|key| key.join.time <= now)
    }

    /// When its pause, its breaker and its own limit allow a delivery, as far as that
    /// is known. 0 or a past time if they allow one now, NEVER if the pause has no end.
    pub fn opens_at(&self) -> Millis {
        let limit = self
            .rate()
            .map_or(0, |(rate, window)| window.next_free(rate, 0));
        let breaker = self.breaker().and_then(|circuit| circuit.open_until(0));
        let paused = self.ext().paused_until;
        limit.max(paused.unwrap_or(0)).max(breaker.unwrap_or(0))
    }

    /// Whether it is hidden: it has the messages without a group that name the same limits.
    /// It has no name, no settings and no pause, and leases its messages one by one.
    #[inline]
    pub fn is_hidden(&self) -> bool {
        let limited = self.ext.as_ref().and_then(|ext| ext.limited.as_ref());
        limited.is_some_and(|limited| limited.is_hidden)
    }

    /// The limit for which it waits, if it waits for one.
    pub(crate) fn home(&self) -> Option<Home> {
        self.ext.as_ref()?.limited.as_ref()?.home
    }

    /// Sets the limit for which it waits.
    pub(crate) fn set_home(&mut self, home: Option<Home>) {
        if home == self.home() {
            return;
        }
        let limited = &mut self.ext_mut().limited;
        let mut changed = limited.take().unwrap_or_default();
        changed.home = home;
        if *changed != LimitedGroup::default() {
            *limited = Some(changed);
        }
    }

    /// Whether GROUPS lists it: it has messages pending or running, settings, a pause
    /// or a hold.
    pub fn is_listed(&self) -> bool {
        let ext = self.ext();
        if self.is_hidden() {
            return false;
        }
        !self.pending().is_empty()
            || self.running > 0
            || ext.held > 0
            || ext.settings.is_some()
            || ext.paused_until.is_some()
            || !ext.holds.is_empty()
            || self.breaker().is_some_and(|circuit| !circuit.is_closed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_group_takes_120_bytes() {
        assert_eq!(size_of::<Option<Group>>(), 120);
        let group = Group::new(b"user-1234567890!");
        assert!(!group.name.spilled());
    }
}
