//! The ready line: the groups that can deliver a message, and their order.
//!
//! The line holds the position of each group that can give. It is updated after
//! every change to a group. Events may be processed late, so a position must not
//! depend on when that happens: each group also knows the positions it will get
//! once certain times have come, and the ungrouped messages take their position
//! from the due time of the first of them.

use crate::groups::backlog::Pending;
use crate::groups::group::Group;
use crate::index::order_key::OrderKey;
use crate::index::ready_line::{Join, Position, Positions};
use crate::message::state::StoredState;
use crate::op::Happened;
use crate::queue::ops::round::MOST_PASSED;
use crate::queue::stuck::Last;
use crate::queue::Queue;
use crate::{GroupIx, Millis, NEVER};

/// If more messages of a group than this have failed, the time at which the group
/// can give again is not computed from them.
const MANY_FAILED: usize = 64;

impl Queue {
    /// Updates the position of a group in the ready line after a change of the messages
    /// that it can deliver. Call it after every change to its messages, holds, limits or
    /// settings.
    pub(in crate::queue) fn refresh(&mut self, ix: GroupIx, now: Millis, join: Join) {
        self.refresh_with(ix, now, join, now);
    }

    /// Updates the position of a group as [`Queue::refresh`] does, after a message has
    /// expired at `at`. Events of the same millisecond are processed later, so a position
    /// that the group has from then on has not come yet.
    pub(in crate::queue) fn refresh_at_expiry(&mut self, ix: GroupIx, at: Millis) {
        self.refresh_with(ix, at, Join::by_time(at), at.saturating_sub(1));
    }

    /// `come` is a time (Unix ms). Expected positions of the group up to this time count
    /// as reached.
    fn refresh_with(&mut self, ix: GroupIx, now: Millis, join: Join, come: Millis) {
        if !ix.is_some() {
            return self.refresh_plain(now, join);
        }
        let Some(group) = self.state.groups.get(ix) else {
            return;
        };
        let line = group.position(ix);
        // An event that is processed late must not undo later changes.
        let joined_at = line.map_or(0, |key| key.join.time);
        let now = now.max(joined_at);
        let head = self.group_head(group, now);
        // A position whose time has passed counts, even if the group has not joined the
        // line yet.
        let given = group.given_position(ix, come.max(joined_at));
        let had = given.or(line);
        let has = head.map(|head| {
            let joined = Position {
                priority: head.priority(),
                join,
                seq: head.seq(),
                group: ix,
            };
            match had {
                Some(key) if key.priority == joined.priority && key.join != join => key,
                _ => joined,
            }
        });
        let wake = self.group_wake(group, now);
        let expected = self.expected_of(ix, group, has);
        self.set_position(ix, has, expected);
        self.count_as_ready(ix, has.is_some());
        if let Some(group) = self.state.groups.get_mut(ix) {
            if given.is_some() || line.map(|key| key.priority) != has.map(|key| key.priority) {
                group.set_turn(0);
            }
        }
        if line != has || self.waits_for_limits(ix, head) {
            self.move_in_line(line, has.zip(head), now);
        }
        self.state.groups.wake_at(ix, wake);
        if let Some(at) = wake {
            self.wake_by(at);
        }
        self.state.groups.settle(ix);
    }

    /// The positions that a group at `has` will get as time passes, as far as they
    /// can be computed.
    pub(in crate::queue) fn expected_of(
        &self,
        ix: GroupIx,
        group: &Group,
        has: Option<Position>,
    ) -> Positions {
        let mut positions = Positions::new();
        let mut current = has;
        while let Some(at) = match current {
            None => self.opening(group),
            Some(key) => self.overtaking(group, key),
        } {
            let Some(head) = self.next_in_group(group, at).filter(|_| at != NEVER) else {
                break;
            };
            let next = Position {
                priority: head.priority(),
                join: Join::by_time(at),
                seq: head.seq(),
                group: ix,
            };
            // Only a message of a more urgent priority overtakes.
            if current.is_some_and(|current: Position| next.priority >= current.priority) {
                break;
            }
            positions.push(next);
            current = Some(next);
        }
        positions
    }

    /// The first time (Unix ms) at which a group in the line will have a message of
    /// a more urgent priority, which moves it to the line of that priority.
    fn overtaking(&self, group: &Group, current: Position) -> Option<Millis> {
        let Pending { fresh, failed } = group.pending();
        let firsts = fresh.first().into_iter().chain(failed.first());
        if firsts.map(OrderKey::priority).min()? >= current.priority {
            return None;
        }
        let bound = OrderKey::start_of(current.priority);
        // A failed message goes first, even before added ones.
        if self.waits_behind_failed(group) && !failed.is_empty() {
            return None;
        }
        let failed = failed.earliest_before(&bound);
        let fresh = fresh.earliest_before(&bound);
        fresh.into_iter().chain(failed).min()
    }

    /// When a group that cannot deliver now will be able to deliver (Unix ms), if only
    /// the passing of time is needed.
    fn opening(&self, group: &Group) -> Option<Millis> {
        let waits_for_probe = group.breaker().is_some_and(|c| c.probe().is_some());
        if waits_for_probe || self.is_held_by_dead(group) || self.is_busy(group) {
            return None;
        }
        let Pending { fresh, failed } = group.pending();
        let fresh = fresh.earliest();
        let due = match self.waits_behind_failed(group) {
            _ if failed.is_empty() => fresh?,
            false => fresh.into_iter().chain(failed.earliest()).min()?,
            // With very many failed messages, the group is checked again at the
            // promotion of each instead.
            true if failed.len() > MANY_FAILED => return None,
            true => failed.times().max()?,
        };
        Some(due.max(group.opens_at()))
    }

    /// Computes the future positions of a group that was built from a snapshot.
    pub(in crate::queue) fn expect_next(&mut self, ix: GroupIx) {
        if let Some(group) = self.state.groups.get(ix) {
            let positions = self.expected_of(ix, group, group.position(ix));
            self.expect(ix, positions);
        }
    }

    /// Sets the future positions of a group.
    fn expect(&mut self, ix: GroupIx, positions: Positions) {
        let line = self
            .state
            .groups
            .get(ix)
            .and_then(|group| group.position(ix));
        self.set_position(ix, line, positions);
    }

    /// Sets the present position of a group and its future ones.
    pub(in crate::queue) fn set_position(
        &mut self,
        ix: GroupIx,
        line: Option<Position>,
        expected: Positions,
    ) {
        let Some(group) = self.state.groups.get_mut(ix) else {
            return;
        };
        if expected.is_empty() && !group.is_expected() {
            return group.set_line(line);
        }
        let before: Positions = group.expected(ix).collect();
        group.set_positions(line, &expected);
        if before == expected {
            return;
        }
        for key in before {
            self.indexes.expected.remove(&key);
        }
        for key in expected {
            self.indexes.expected.insert(key);
            self.wake_by(key.join.time);
        }
    }

    /// Makes the due messages of a group count as ready, or no longer.
    fn count_as_ready(&mut self, ix: GroupIx, counted: bool) {
        let Some(group) = self.state.groups.get_mut(ix) else {
            return;
        };
        if group.counted == counted {
            return;
        }
        group.counted = counted;
        let count = group.backlog.all().count_at(StoredState::Due);
        if !counted {
            self.uncount_ready(count);
        } else if count > 0 {
            self.indexes.grouped_ready += count;
            self.notes.effects.happened.add(Happened::READY);
        }
    }

    /// Puts a group in the ready line at the position whose time has come by `now`,
    /// if there is one.
    pub(in crate::queue) fn admit(&mut self, ix: GroupIx, now: Millis) {
        if let Some(key) = self
            .state
            .groups
            .get(ix)
            .and_then(|group| group.given_position(ix, now))
        {
            self.refresh(ix, key.join.time, key.join);
            self.notes.effects.changed = true;
            // If the group cannot give after all, that is a bug here. Drop the
            // position, so that it is not tried for ever.
            if self
                .state
                .groups
                .get(ix)
                .is_some_and(|group| group.given_position(ix, now).is_some())
            {
                self.expect(ix, Positions::new());
            }
        }
    }

    fn refresh_plain(&mut self, now: Millis, join: Join) {
        // An event that is processed late must not undo later changes.
        let now = now.max(self.state.last);
        // The position of an entry that joins within this same moment depends on the
        // message that is first at the end of the moment.
        let joins = |key: &Position| key.join == join && join.time == now;
        let current = self.state.plain_position.filter(|key| !joins(key));
        self.state.plain_position = self.place_plain(current, now, join);
    }

    /// The position of the ungrouped messages at `now`: the old one, or a new one
    /// if the message they give first has another priority.
    pub(in crate::queue) fn place_plain(
        &self,
        stood: Option<Position>,
        now: Millis,
        join: Join,
    ) -> Option<Position> {
        let head = self.indexes.waiting.plain.head(now)?;
        Some(Position::of_plain(head, stood, join))
    }

    /// When the pause or the RATE of a group ends (Unix ms), if it waits for that.
    fn group_wake(&self, group: &Group, now: Millis) -> Option<Millis> {
        if let Some(until) = group.ext().paused_until {
            return Some(until);
        }
        let (rate, window) = group.rate()?;
        let next = window.next_free(rate, now);
        (next > now && !group.pending().is_empty()).then_some(next)
    }

    /// The first position of the ready line for a FETCH with or without NOACK.
    #[inline]
    pub(in crate::queue) fn first_in_line(&self, no_ack: bool, now: Millis) -> Option<Position> {
        let hidden = || self.lets_out(GroupIx::NONE, no_ack, now);
        match self.state.seldom.fair.as_deref() {
            None => self.indexes.ready_line.first(no_ack, hidden),
            Some(fair) => fair.first(no_ack, hidden()).map(|key| key.position),
        }
    }

    /// Whether the group at a position delivers before the ungrouped messages at another.
    pub(in crate::queue) fn goes_before_plain(&self, group: Position, plain: Position) -> bool {
        match self.state.seldom.has_fair() {
            false => group < plain,
            true => self.fair_key(group) < self.fair_key_of_plain(plain),
        }
    }

    /// Before events are all processed, a group may be able to give without having
    /// joined the ready line. This puts in those that would be first in it, for a
    /// FETCH with or without NOACK.
    ///
    /// If groups wait for limits with names, it is possible that none of very many groups
    /// gets into the ready line. Then the timer goes on with them.
    pub(in crate::queue) fn admit_first(&mut self, now: Millis, no_ack: bool) {
        let (mut admitted, mut last) = (0, Last::none());
        while let Some(key) = self.indexes.expected.first(now) {
            if last.is_again(key) {
                return self.note_stuck("a group that is to join the ready line");
            }
            if admitted == MOST_PASSED && self.state.seldom.has_limits() {
                return;
            }
            admitted += 1;
            let first = self.first_in_line(no_ack, now);
            // With an order by usage, a group that joins may be before all others.
            if !self.state.seldom.has_fair() && first.is_some_and(|first| first < key) {
                return;
            }
            self.admit(key.group, now);
        }
    }

    /// The position of the ungrouped messages at `now`. A message that is due and
    /// not promoted counts as if it had joined the line at its due time.
    pub(in crate::queue) fn plain_key(&self, now: Millis) -> Option<Position> {
        let head = self.indexes.waiting.plain.head(now)?;
        let join = Join::by_time(head.1);
        Some(Position::of_plain(head, self.state.plain_position, join))
    }

    /// Sets the position of the ungrouped messages to the one at `now`, counting
    /// due messages that are not promoted yet.
    pub(in crate::queue) fn admit_plain(&mut self, now: Millis) {
        let current = self.plain_key(now.max(self.state.last));
        // The position is part of a snapshot, so a replica must learn of its
        // change.
        self.notes.effects.changed |= current != self.state.plain_position;
        self.state.plain_position = current;
    }
}
