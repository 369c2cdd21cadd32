//! Limits with names: the limit for which each group waits, and the groups that may deliver.

// Clients choose what is summed here: by the types of `sums`, or saturating.
#![warn(clippy::arithmetic_side_effects)]

use crate::error::Error;
use crate::groups::breaker::Lets;
use crate::groups::group::{Group, Home};
use crate::index::order_key::OrderKey;
use crate::index::ready_line::{Kind, Position};
use crate::message::Message;
use crate::named_limits::{LimitRule, NamedLimits, Touched};
use crate::op::{Done, Happened};
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{GroupIx, LimitIx, Millis, Seq, NEVER};

impl Queue {
    /// Limits with names, if the queue has had any.
    pub fn limits(&self) -> Option<&NamedLimits> {
        self.state.seldom.limits.as_deref()
    }

    /// Whether the limits of a message, which is the next one of its group, let it be
    /// delivered at `now`.
    #[inline]
    pub(in crate::queue) fn limits_let(&self, seq: Seq, ix: GroupIx, now: Millis) -> bool {
        !self.state.seldom.has_limits() || self.blocking_limit(seq, ix, now).is_none()
    }

    /// The first limit that blocks the delivery of a message at `now`. The message is the next
    /// one of its group.
    pub(in crate::queue) fn blocking_limit(
        &self,
        seq: Seq,
        ix: GroupIx,
        now: Millis,
    ) -> Option<&[u8]> {
        let limits = self.state.seldom.limits.as_deref()?;
        let message = self.state.store.get(seq)?;
        let limited = message.limited()?;
        let stands = self
            .state
            .groups
            .get(ix)
            .and_then(|group| group.position(ix));
        let key = stands.unwrap_or(Position {
            priority: message.priority,
            join: self.join(now),
            seq,
            group: ix,
        });
        limits.blocking(limited, key, now)
    }

    /// Puts groups in an order that is the same on every server, because this order decides in
    /// which they wait for limits. Their numbers are not the same: a queue that was loaded
    /// gives others.
    pub(in crate::queue) fn put_in_order(&self, groups: &mut [GroupIx]) {
        if self.state.seldom.has_limits() {
            let name = |ix: &GroupIx| {
                let group = self.state.groups.get(*ix);
                group.map(|group| (group.is_hidden(), &group.name))
            };
            groups.sort_by(|one, other| name(one).cmp(&name(other)));
        }
    }

    /// Whether a group waits for a limit, or would wait for one with this next message.
    #[inline]
    pub(in crate::queue) fn waits_for_limits(&self, ix: GroupIx, head: Option<OrderKey>) -> bool {
        if !self.state.seldom.has_limits() {
            return false;
        }
        let stands = self.state.groups.get(ix).and_then(Group::home);
        let next = head.and_then(|head| self.state.store.get(head.seq()));
        stands.is_some() || next.is_some_and(|message| message.limited().is_some())
    }

    /// The part of the ready line in which a group is.
    #[inline]
    pub(in crate::queue) fn kind_of(&self, ix: GroupIx, now: Millis) -> Kind {
        // Only messages with limits have hidden groups.
        if !self.state.seldom.has_limits() && self.state.settings.breaker.is_none() {
            return Kind::Steady;
        }
        match self.state.groups.get(ix) {
            Some(group) if group.is_hidden() => Kind::Hidden,
            _ if self.lets(ix, now) == Lets::Probe => Kind::HalfOpen,
            _ => Kind::Steady,
        }
    }

    /// Moves a group from one position to another, of which either may be none. It stands in
    /// the ready line, or in the line of a limit that its next message names.
    #[inline]
    pub(in crate::queue) fn move_in_line(
        &mut self,
        from: Option<Position>,
        to: Option<(Position, OrderKey)>,
        now: Millis,
    ) {
        if self.state.seldom.has_limits() {
            return self.move_among_lines(from, to, now);
        }
        if let Some(key) = from {
            self.line_remove(&key);
        }
        if let Some((key, _)) = to {
            let kind = self.kind_of(key.group, now);
            self.line_insert(key, kind);
        }
    }

    #[cold]
    fn move_among_lines(
        &mut self,
        from: Option<Position>,
        to: Option<(Position, OrderKey)>,
        now: Millis,
    ) {
        let left = match from {
            Some(key) => self.leave_line(key),
            None => None,
        };
        if let Some((key, head)) = to {
            self.enter_line(key, head.seq(), now);
        }
        if let Some(limit) = left {
            self.open_limit(limit);
        }
    }

    /// Removes a group from its line. Returns the limit in whose line it was, for
    /// [`Queue::open_limit`].
    pub(in crate::queue) fn leave_line(&mut self, key: Position) -> Option<LimitIx> {
        let group = self.state.groups.get_mut(key.group);
        let home = group.as_ref().and_then(|group| group.home());
        let (Some(group), Some(home)) = (group, home) else {
            self.line_remove(&key);
            return None;
        };
        group.set_home(None);
        let limit = self.state.seldom.limits_mut()?.get_mut(home.limit)?;
        let known = limit.line.remove(&key).is_some() || limit.too_large.remove(&key).is_some();
        debug_assert!(known, "a limit does not have the position of a group");
        if limit.open == Some(key) {
            limit.open = None;
            self.line_remove(&key);
        }
        Some(home.limit)
    }

    /// Adds a group to the ready line, or to the groups that wait for a limit.
    fn enter_line(&mut self, key: Position, head: Seq, now: Millis) {
        let last = self.state.last;
        let limited = self.state.store.get(head).and_then(Message::limited);
        let home = limited.and_then(|limited| {
            let limits = self.state.seldom.limits_mut()?;
            let limit = limits.home_of(limited, key, last)?;
            Some(Home {
                limit,
                cost: limited.cost,
            })
        });
        if let Some(group) = self.state.groups.get_mut(key.group) {
            group.set_home(home);
        }
        let Some(home) = home else {
            let kind = self.kind_of(key.group, now);
            self.line_insert(key, kind);
            return;
        };
        if let Some(limit) = self
            .state
            .seldom
            .limits_mut()
            .and_then(|l| l.get_mut(home.limit))
        {
            limit.line.insert(key, ());
        }
        self.open_limit(home.limit);
    }

    /// Moves the first group that waits for a limit to the ready line, if the limit has room
    /// for its next message now, and moves back the one that was there. Call it after every
    /// change to the limit and to its line.
    pub(in crate::queue) fn open_limit(&mut self, ix: LimitIx) {
        let now = self.state.last;
        let Some(first) = self.first_for_limit(ix) else {
            return;
        };
        let Some(limits) = self.state.seldom.limits_mut() else {
            return;
        };
        let Some(limit) = limits.get_mut(ix) else {
            return;
        };
        let opens = first.filter(|(_, cost)| limit.has_room(*cost, now));
        let opens = opens.map(|(key, _)| key);
        let before = std::mem::replace(&mut limit.open, opens);
        self.set_limit_time(ix, first);
        if let Some(limits) = self.state.seldom.limits_mut() {
            limits.drop_idle(ix, now);
        }
        if before == opens {
            return;
        }
        if let Some(key) = before {
            self.line_remove(&key);
        }
        if let Some(key) = opens {
            let kind = self.kind_of(key.group, now);
            self.line_insert(key, kind);
            self.notes.effects.happened.add(Happened::READY);
        }
    }

    /// The first group that waits for a limit, and the cost of its next message. Groups
    /// whose next message costs more than the limit ever allows are put aside. `None` if
    /// there is no such limit.
    fn first_for_limit(&mut self, ix: LimitIx) -> Option<Option<(Position, u64)>> {
        let limit = self.state.seldom.limits_mut()?.get_mut(ix)?;
        while let Some((key, ())) = limit.line.first() {
            let home = self.state.groups.get(key.group).and_then(Group::home);
            let cost = home.map_or(1, |home| home.cost);
            if limit.ever_has_room(cost) {
                return Some(Some((key, cost)));
            }
            limit.line.remove(&key);
            limit.too_large.insert(key, ());
        }
        Some(None)
    }

    /// Sets the time of the next check of a limit: when it has room for the first group that
    /// waits, or when it is no longer needed.
    fn set_limit_time(&mut self, ix: LimitIx, first: Option<(Position, u64)>) {
        let Some(limits) = self.state.seldom.limits_mut() else {
            return;
        };
        let time = limits.get(ix).and_then(|limit| match first {
            Some(_) if limit.open.is_some() => None,
            Some((_, cost)) => limit.room_at(cost),
            None if limit.is_kept() => None,
            None => limit.over_at(),
        });
        if let Some(at) = limits.set_time(ix, time.filter(|at| *at != NEVER)) {
            if !seeded(Bug::LimitWakesLate) {
                self.wake_by(at);
            }
        }
    }

    /// Updates a limit of a snapshot after its groups were added, and moves the first of
    /// them to the ready line if the limit is open.
    pub(in crate::queue) fn restore_limit(&mut self, ix: LimitIx, is_open: bool) {
        let first = self.first_for_limit(ix).flatten();
        let opens = first.filter(|_| is_open).map(|(key, _)| key);
        if let Some(limit) = self
            .state
            .seldom
            .limits_mut()
            .and_then(|limits| limits.get_mut(ix))
        {
            limit.open = opens;
        }
        if let Some(key) = opens {
            let kind = self.kind_of(key.group, self.state.last);
            self.indexes.ready_line.insert(key, kind);
        }
        self.set_limit_time(ix, first);
    }

    fn open_each(&mut self, touched: Touched) {
        for ix in touched {
            self.open_limit(ix);
        }
    }

    /// Opens the limits that have room at `at` because time has passed. Each is checked once:
    /// a limit that is still full cannot have room at this time any more.
    pub(in crate::queue) fn pass_time_of_limits(&mut self, at: Millis) {
        while let Some((_, ix)) = self.next_limit_time().filter(|(due, _)| *due <= at) {
            self.open_limit(ix);
            let Some(limits) = self.state.seldom.limits_mut() else {
                return;
            };
            if limits.time_of(ix).is_some_and(|again| again <= at) {
                limits.set_time(ix, Some(at.saturating_add(1)));
                self.note_stuck("a limit that is due twice at one time");
            }
        }
    }

    /// The time of the next check of a limit, and the limit.
    pub(in crate::queue) fn next_limit_time(&self) -> Option<(Millis, LimitIx)> {
        self.state.seldom.limits.as_ref()?.next_time()
    }

    /// Counts the delivery of a message in its limits.
    pub(in crate::queue) fn count_in_limits(&mut self, seq: Seq, now: Millis, is_leased: bool) {
        let limited = self.state.store.get(seq).and_then(Message::limited);
        let (Some(limited), Some(limits)) = (limited, self.state.seldom.limits_mut()) else {
            return;
        };
        let touched = limits.count(limited, now, is_leased);
        self.open_each(touched);
    }

    /// Notes in the limits of a message that it runs no longer.
    pub(in crate::queue) fn release_limits(&mut self, seq: Seq) {
        let limited = self.state.store.get(seq).and_then(Message::limited);
        let (Some(limited), Some(limits)) = (limited, self.state.seldom.limits_mut()) else {
            return;
        };
        let touched = limits.release(limited);
        if !seeded(Bug::LimitStaysClosed) {
            self.open_each(touched);
        }
    }

    /// Corrects the cost of the delivery of a running message, in the windows that still count it.
    /// Deliveries are told apart by their millisecond: one that a limit has not counted, because
    /// it came before DQ.LIMIT in the same millisecond, is taken for one that it has.
    pub(in crate::queue) fn correct_cost(&mut self, seq: Seq, cost: u64) {
        let message = self.state.store.get(seq);
        let Some((limited, message)) = message.and_then(|m| Some((m.limited()?, m))) else {
            return;
        };
        let Some(limits) = self.state.seldom.limits_mut() else {
            return;
        };
        let touched = limits.correct(limited, message.started_at(), cost);
        self.open_each(touched);
    }

    /// Sets or removes the rule of a limit, or of all limits whose names match a pattern.
    /// O(log n), and O(limits) for a pattern.
    ///
    /// Errors: there would be too many patterns, or too much between their stars.
    pub(in crate::queue) fn set_limit(
        &mut self,
        name: &[u8],
        rule: &LimitRule,
    ) -> Result<Done, Error> {
        let rule = (!rule.is_open()).then(|| rule.clone());
        let limits = self.state.seldom.limits.get_or_insert_default();
        if rule.is_some() && name.contains(&b'*') {
            limits.check_pattern(name)?;
        }
        for ix in limits.set_rule(name, rule) {
            self.open_limit(ix);
        }
        self.changed();
        Ok(Done::Ok)
    }

    /// Makes sure that the counts of limits are kept from now on.
    pub(in crate::queue) fn use_limits(&mut self) {
        self.state.seldom.limits.get_or_insert_default();
    }

    /// Notes that no message runs and no group waits any longer, because all messages were removed.
    pub(in crate::queue) fn empty_limits(&mut self) {
        let limits = self.state.seldom.limits_mut();
        for ix in limits.map_or_else(Vec::new, NamedLimits::without_messages) {
            self.open_limit(ix);
        }
    }
}
