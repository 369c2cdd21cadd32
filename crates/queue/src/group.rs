//! Groups: messages that are given in their own order, a few at a time.

mod extension;

use std::num::NonZeroU32;

use smallvec::SmallVec;

use super::backlog::{Backlog, Pending};
use super::holds::Holds;
use super::line::{LineKey, Spot};
use super::order_key::OrderKey;
use super::ordered::OrderedSet;
use super::purges::{Known, Lost, Purged, Purges};
use super::rate::RateWindow;
use super::reasons::Reasons;
use super::settings::Rate;
use super::state::Place;
use super::{Millis, Receipt};
pub use extension::{GroupExtension, GroupSettings};

/// Names a group within its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIx(
    /// The number of its slot and one: an optional place in line needs no more
    /// room than a place.
    NonZeroU32,
);

impl GroupIx {
    /// No group.
    pub const NONE: GroupIx = GroupIx(NonZeroU32::MAX);

    /// The group in this slot.
    pub(super) fn in_slot(slot: usize) -> GroupIx {
        let number = u32::try_from(slot)
            .ok()
            .and_then(|slot| slot.checked_add(1));
        number
            .and_then(NonZeroU32::new)
            .map_or(GroupIx::NONE, GroupIx)
    }

    /// Its slot.
    pub(super) fn slot(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Whether it names a group.
    pub fn is_some(self) -> bool {
        self != GroupIx::NONE
    }

    /// The number of its slot: stable as long as the group exists.
    pub fn number(self) -> u64 {
        u64::from(self.0.get()) - 1
    }
}

/// The name of a group: the usual short one needs no allocation of its own.
pub type GroupName = SmallVec<[u8; 16]>;

static NO_EXTENSION: GroupExtension = GroupExtension::new();

/// One group.
///
/// Of a million groups with some messages each only what a plain one needs is
/// allocated: see [`GroupExtension`] for the rest.
#[derive(Debug, Clone)]
pub struct Group {
    /// As SEND named it.
    pub name: GroupName,
    /// Its pending messages, and maybe some that it has lost.
    pub(super) backlog: Backlog,
    /// The purges that it knows of.
    pub(super) known: Known,
    /// Messages leased.
    pub running: u32,
    /// The first receipt of its oldest batch that is leased, 0 where there is
    /// none: it nearly always has one at most.
    batch: Receipt,
    /// Messages and records that name it.
    pub members: u32,
    /// What only some groups have, if it has any of it.
    ext: Option<Box<GroupExtension>>,
    /// Its place in the line, if it can give and has not lost it, or else the first
    /// that time will give it, as far as that is known already.
    spot: Spot,
    /// Whether those of its messages that are due count as ready in the queue.
    pub(super) counted: bool,
    /// Whether it has lost its place in the line to a purge of all groups and
    /// nothing has been done to it since. Then no place is expected of it: one of
    /// its messages that falls due gives it the next.
    pub(super) displaced: bool,
    /// For what the table of groups counts it as listed.
    pub(super) reasons: Reasons,
    /// Whether the table counts it as one that has an extension.
    pub(super) extended: bool,
}

impl Group {
    /// An empty group.
    pub(super) fn new(name: &[u8], known: Known) -> Group {
        Group {
            name: GroupName::from_slice(name),
            backlog: Backlog::default(),
            known,
            running: 0,
            batch: 0,
            members: 0,
            ext: None,
            spot: Spot::Nowhere,
            counted: false,
            displaced: false,
            reasons: Reasons::default(),
            extended: false,
        }
    }

    /// What only some groups have.
    pub fn ext(&self) -> &GroupExtension {
        self.ext.as_deref().unwrap_or(&NO_EXTENSION)
    }

    /// The same, to change where there is any.
    pub fn ext_if_any(&mut self) -> Option<&mut GroupExtension> {
        self.ext.as_deref_mut()
    }

    /// The same, made when first needed.
    pub fn ext_mut(&mut self) -> &mut GroupExtension {
        self.ext.get_or_insert_with(Box::default)
    }

    /// Gives back what it no longer needs; whether it still has something
    /// that only some groups have.
    pub(super) fn tidy(&mut self) -> bool {
        if self.ext.as_ref().is_some_and(|ext| ext.is_empty()) {
            self.ext = None;
        }
        self.ext.is_some()
    }

    /// Sets how many messages it has given in the present turn.
    pub fn set_turn(&mut self, given: u64) {
        if given != self.ext().turn {
            self.ext_mut().turn = given;
        }
    }

    /// The first receipts of its batches that are leased, in order.
    pub fn batches(&self) -> impl Iterator<Item = Receipt> + '_ {
        let others = self.ext().batches.iter().map(|(first, ())| first);
        let oldest = (self.batch != 0).then_some(self.batch);
        oldest.into_iter().chain(others)
    }

    /// How many batches are leased. O(1).
    pub fn batch_count(&self) -> u64 {
        self.ext().batches.len() as u64 + u64::from(self.batch != 0)
    }

    /// A batch is leased from now on; by its first receipt, above those of its
    /// other batches.
    pub fn open_batch(&mut self, first: Receipt) {
        if self.batch == 0 {
            self.batch = first;
        } else {
            self.ext_mut().batches.insert(first, ());
        }
    }

    /// A batch is leased no longer.
    pub fn close_batch(&mut self, first: Receipt) {
        if self.batch == first {
            let next = self.ext_if_any().and_then(|ext| ext.batches.pop_first());
            self.batch = next.map_or(0, |(next, ())| next);
        } else if let Some(ext) = self.ext_if_any() {
            ext.batches.remove(&first);
        }
    }

    /// The dead messages that hold it.
    pub fn holds(&self, purges: &Purges) -> &Holds {
        match self.ext.as_deref() {
            Some(ext) if !purges.took(Purged::Holds, self.known) => &ext.holds,
            _ => Holds::none(),
        }
    }

    /// All dead messages hold it no longer: those that did.
    pub fn take_holds(&mut self) -> Holds {
        let ext = self.ext_if_any();
        ext.map_or_else(Holds::new, |ext| std::mem::take(&mut ext.holds))
    }

    /// Where it has more than `most` messages in any order, drops about so many of
    /// them; whether it had. For freeing it in slices; it is of no other use
    /// afterwards.
    pub(super) fn drain_many(&mut self, most: usize) -> bool {
        let ext = self.ext.as_deref_mut();
        self.backlog.drain_many(most)
            || ext.is_some_and(|ext| {
                ext.records.drain_many(most)
                    || ext.holds.drain_many(most)
                    || ext.batches.drain_many(most)
            })
    }

    /// Its records at a place, which must be one of an ended message.
    pub fn records_at(&self, place: Place) -> Option<&OrderedSet<OrderKey>> {
        self.ext().records.at(place)
    }

    /// What `purges` have taken from it that it does not know of.
    pub fn lost(&self, purges: &Purges) -> Lost {
        purges.lost_since(self.known, self.is_in_line())
    }

    /// Its pending messages.
    pub fn pending(&self, purges: &Purges) -> Pending<'_> {
        self.backlog.left(self.lost(purges))
    }

    /// Whether it stands in the line, unless it has lost its place to a purge that
    /// it does not know of.
    #[inline]
    pub fn is_in_line(&self) -> bool {
        matches!(self.spot, Spot::Line { .. })
    }

    /// Its place in the line, unless it has lost it to a purge that it does not know
    /// of; `ix` is its own number.
    pub fn line(&self, ix: GroupIx) -> Option<LineKey> {
        self.spot.key(ix).filter(|_| self.is_in_line())
    }

    /// The places that time will give it, as far as they are known already.
    pub fn expected(&self, ix: GroupIx) -> impl DoubleEndedIterator<Item = LineKey> + '_ {
        let first = self.spot.key(ix).filter(|_| !self.is_in_line());
        first.into_iter().chain(self.ext().further.iter().copied())
    }

    /// Whether time will give it a place in the line that is known already.
    pub fn is_expected(&self) -> bool {
        let has_further = |ext: &GroupExtension| !ext.further.is_empty();
        matches!(self.spot, Spot::Expected { .. }) || self.ext.as_deref().is_some_and(has_further)
    }

    /// From now on it stands here in the line, or nowhere, and time will give it
    /// these places.
    pub(super) fn stand_at(&mut self, line: Option<LineKey>, expected: &[LineKey]) {
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

    /// It leaves the line: where it stood. What time will give it stays.
    pub(super) fn leave_line(&mut self, ix: GroupIx) -> Option<LineKey> {
        let stood = self.line(ix);
        if stood.is_some() {
            self.spot = Spot::Nowhere;
        }
        stood
    }

    /// Its place in the line.
    pub fn stands(&self, ix: GroupIx, purges: &Purges) -> Option<LineKey> {
        self.line(ix).filter(|_| !self.lost(purges).line)
    }

    /// Whether it has lost its place in the line to a purge, and nothing has been
    /// done to it since.
    pub fn is_displaced(&self, purges: &Purges) -> bool {
        self.displaced || self.lost(purges).line
    }

    /// Messages given in one turn.
    pub fn weight(&self) -> u64 {
        self.ext().settings.as_ref().map_or(1, |s| s.weight.max(1))
    }

    /// Its limit of deliveries, if it has one of its own.
    pub fn rate(&self) -> Option<(Rate, &RateWindow)> {
        let settings = self.ext().settings.as_ref()?;
        Some((settings.rate?, &settings.window))
    }

    /// Messages it may still give at `now` by its own limit.
    pub fn allowance(&self, now: Millis) -> u64 {
        self.rate()
            .map_or(u64::MAX, |(rate, window)| window.free(rate, now))
    }

    /// Whether it is paused at `now`.
    pub fn is_paused(&self, now: Millis) -> bool {
        self.ext().paused_until.is_some_and(|until| until > now)
    }

    /// Where time has let it stand by `now`, if the line does not know it yet.
    pub fn given_place(&self, ix: GroupIx, now: Millis) -> Option<LineKey> {
        let mut given = self.expected(ix).rev();
        given.find(|key| key.join.time <= now)
    }

    /// From when on pause and limit let it give, as far as that is known: 0 or
    /// a time that has passed where they do not hold it, NEVER without end.
    pub fn opens_at(&self) -> Millis {
        let limit = self
            .rate()
            .map_or(0, |(rate, window)| window.next_free(rate, 0));
        self.ext().paused_until.unwrap_or(0).max(limit)
    }

    /// What of it GROUPS shows.
    pub fn reasons(&self, purges: &Purges) -> Reasons {
        let pending = self.pending(purges);
        let ext = self.ext();
        let other = pending.count_at(Place::Retry) > 0
            || self.running > 0
            || ext.settings.is_some()
            || ext.paused_until.is_some();
        let due = pending.count_at(Place::Due) > 0;
        let in_line = self.is_in_line() && !self.lost(purges).line;
        Reasons::default()
            .with(Reasons::DELAYED, pending.count_at(Place::Delayed) > 0)
            .with(Reasons::READY, due && in_line)
            .with(Reasons::BLOCKED, due && !in_line)
            .with(Reasons::HELD, !self.holds(purges).is_empty())
            .with(Reasons::OTHER, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_group_takes_128_bytes() {
        assert_eq!(size_of::<Option<Group>>(), 128);
        let group = Group::new(b"user-1234567890!", Known::default());
        assert!(!group.name.spilled());
    }
}
