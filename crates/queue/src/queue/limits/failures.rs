//! Breakers: they stop the deliveries of a group, or of the ungrouped messages, after
//! too many failures.
//!
//! The states of a breaker are in `groups/breaker.rs`. A group whose breaker is open, or
//! half-open with its probe out, is not in the ready line. Ungrouped messages keep their
//! state and position, as under a limit of the whole queue.
//!
//! The end of an open time counts from its own millisecond on, whether the event was
//! processed or not.

use std::sync::Arc;

use crate::groups::breaker::{Circuit, Lets};
use crate::index::ready_line::Join;
use crate::op::Happened;
use crate::queue::Queue;
use crate::settings::Breaker;
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// The group that has the breaker of these messages: hidden groups use the breaker of
    /// the ungrouped messages.
    fn with_breaker(&self, ix: GroupIx) -> GroupIx {
        match self.state.groups.get(ix) {
            Some(group) if group.is_hidden() => GroupIx::NONE,
            _ => ix,
        }
    }

    /// The breaker of a group or of the ungrouped messages, unless it is closed and
    /// remembers no failure.
    pub(in crate::queue) fn breaker(&self, ix: GroupIx) -> Option<&Circuit> {
        let ix = self.with_breaker(ix);
        match ix.is_some() {
            true => self.state.groups.get(ix)?.breaker(),
            false => self.state.seldom.plain_breaker.as_deref(),
        }
    }

    /// How many messages the breaker of a group, or of the ungrouped messages, lets out
    /// at `now`. O(1).
    #[inline]
    pub(in crate::queue) fn lets(&self, ix: GroupIx, now: Millis) -> Lets {
        match self.state.settings.breaker {
            None => Lets::Any,
            Some(_) => self.breaker(ix).map_or(Lets::Any, |c| c.lets(now)),
        }
    }

    /// Whether the breaker lets out a message for a FETCH with or without NOACK.
    pub(in crate::queue) fn lets_out(&self, ix: GroupIx, no_ack: bool, now: Millis) -> bool {
        match self.lets(ix, now) {
            Lets::Any => true,
            Lets::Probe => !no_ack,
            Lets::None => false,
        }
    }

    /// The number of breakers that are open at `now`. O(1), except for those whose time
    /// has ended and that are not half-open yet.
    pub fn breakers_open(&self, now: Millis) -> u64 {
        let plain = self.state.seldom.plain_breaker.as_deref();
        let plain = plain.is_some_and(|circuit| circuit.open_until(now).is_some());
        self.state.groups.breakers_open(now) as u64 + u64::from(plain)
    }

    /// The state of the breaker of a group, or of the ungrouped messages, at `now`:
    /// `closed`, `open` or `half-open`. O(1).
    pub fn breaker_state(&self, group: Option<&[u8]>, now: Millis) -> &'static str {
        let ix = match group {
            Some(name) => self.state.groups.find(name),
            None => Some(GroupIx::NONE),
        };
        let circuit = ix.and_then(|ix| self.breaker(ix));
        circuit.map_or("closed", |circuit| circuit.state(now))
    }

    /// When the next breaker changes with time (Unix ms), and of which group it is;
    /// [`GroupIx::NONE`] for the ungrouped messages.
    pub(in crate::queue) fn next_breaker_change(&self) -> Option<(Millis, GroupIx)> {
        let rule = self.state.settings.breaker.as_ref()?;
        let plain = self
            .state
            .seldom
            .plain_breaker
            .as_deref()
            .and_then(|circuit| {
                let at = circuit.next_change(rule)?;
                Some((at, circuit.cause(), GroupIx::NONE))
            });
        let of_groups = self.state.groups.next_breaker_change();
        let next = plain.into_iter().chain(of_groups).min();
        next.map(|(at, _, ix)| (at, ix))
    }

    /// Applies a change to a breaker, after its changes by time up to `now`.
    fn change_breaker<R>(
        &mut self,
        ix: GroupIx,
        now: Millis,
        change: impl FnOnce(&mut Circuit, &Breaker) -> R,
    ) -> Option<R> {
        let rule = self.state.settings.breaker?;
        let ix = self.with_breaker(ix);
        let mut circuit = match ix.is_some() {
            true => self.state.groups.take_breaker(ix, &rule),
            false => self
                .state
                .seldom
                .used_mut()
                .and_then(|seldom| seldom.plain_breaker.take())
                .map(|circuit| *circuit),
        }
        .unwrap_or_default();
        if circuit.pass_time(&rule, now) {
            self.notes.effects.happened.add(Happened::BREAKER);
        }
        let result = change(&mut circuit, &rule);
        if let Some(at) = circuit.next_change(&rule) {
            self.wake_by(at);
        }
        match ix.is_some() {
            true => self.state.groups.set_breaker(ix, circuit, &rule),
            false => {
                self.state.seldom.plain_breaker = (!circuit.is_idle()).then(|| Box::new(circuit))
            }
        }
        Some(result)
    }

    /// Counts the failure of a message that no longer runs. The caller refreshes the
    /// group.
    pub(in crate::queue) fn count_failure(
        &mut self,
        seq: Seq,
        ix: GroupIx,
        was_probe: bool,
        now: Millis,
    ) {
        let opens = self.change_breaker(ix, now, |c, rule| c.fail(rule, seq, was_probe, now));
        if opens == Some(true) {
            self.notes.effects.happened.add(Happened::BREAKER);
        }
    }

    /// Closes a breaker and forgets its failures. Returns whether it was open or
    /// half-open. The caller refreshes the group.
    pub(in crate::queue) fn close_breaker(&mut self, ix: GroupIx) -> bool {
        let ix = self.with_breaker(ix);
        let is_closed = self.breaker(ix).is_none_or(Circuit::is_closed);
        let Some(rule) = self.state.settings.breaker.filter(|_| !is_closed) else {
            return false;
        };
        if ix.is_some() {
            self.state.groups.take_breaker(ix, &rule);
            let position = self
                .state
                .groups
                .get(ix)
                .and_then(|group| group.position(ix));
            if let Some(key) = position {
                self.indexes.ready_line.close_breaker(key);
                let key = self.fair_key(key);
                if let Some(fair) = self.state.seldom.fair_mut() {
                    fair.close_breaker(key);
                }
            }
        } else {
            self.state.seldom.plain_breaker = None;
        }
        self.notes.effects.happened.add(Happened::BREAKER);
        true
    }

    /// Makes the message that was just delivered the probe of its breaker, if that is
    /// half-open.
    pub(in crate::queue) fn let_out(&mut self, seq: Seq, ix: GroupIx, now: Millis) {
        if self.breaker(ix).is_some_and(|circuit| !circuit.is_closed()) {
            self.change_breaker(ix, now, |circuit, _| circuit.let_out(seq));
        }
    }

    /// Notes that a message no longer runs. Returns whether it was the probe of its
    /// breaker.
    pub(in crate::queue) fn withdraw(&mut self, seq: Seq, ix: GroupIx) -> bool {
        let ix = self.with_breaker(ix);
        // No event changes a breaker while its probe is out.
        let circuit = match ix.is_some() {
            true => self
                .state
                .groups
                .get_mut(ix)
                .and_then(|group| group.ext_if_any()?.breaker.as_deref_mut()),
            false => self
                .state
                .seldom
                .used_mut()
                .and_then(|seldom| seldom.plain_breaker.as_deref_mut()),
        };
        circuit.is_some_and(|circuit| circuit.withdraw(seq))
    }

    /// Notes that no ungrouped message runs any longer.
    pub(in crate::queue) fn withdraw_plain(&mut self) {
        if let Some(circuit) = self
            .state
            .seldom
            .used_mut()
            .and_then(|seldom| seldom.plain_breaker.as_deref_mut())
        {
            circuit.withdraw_any();
        }
    }

    /// Applies the change of a breaker that is due at `at`.
    pub(in crate::queue) fn pass_time_of_breaker(&mut self, ix: GroupIx, at: Millis) {
        self.change_breaker(ix, at, |_, _| ());
        // The new position of the group is already in `expected`.
        self.refresh(ix, self.state.last, Join::by_time(at));
    }

    /// Adapts the breakers to another BREAKER of the queue. O(log n) for each group
    /// whose breaker is not closed or remembers failures.
    pub(in crate::queue) fn alter_breakers(&mut self, before: Option<Breaker>, now: Millis) {
        let Some(before) = before.filter(|before| Some(*before) != self.state.settings.breaker)
        else {
            return;
        };
        if let Some(rule) = self.state.settings.breaker {
            return self.state.groups.alter_breakers(&rule);
        }
        Arc::make_mut(&mut self.state.settings).breaker = Some(before);
        let mut groups = self.state.groups.with_breaker();
        self.put_in_order(&mut groups);
        for ix in groups.iter().copied().chain([GroupIx::NONE]) {
            self.close_breaker(ix);
        }
        Arc::make_mut(&mut self.state.settings).breaker = None;
        self.state.seldom.plain_breaker = None;
        for ix in groups {
            self.state.groups.take_breaker(ix, &before);
            self.refresh(ix, now, self.join(now));
        }
    }

    /// All times at which the breakers of groups change, for tests.
    #[cfg(any(test, feature = "validate"))]
    pub(in crate::queue) fn breaker_change_times(&self) -> Vec<(Millis, Seq)> {
        self.state.groups.breaker_change_times()
    }
}
