//! Whether and when a queue can give a message: read-only questions of the server,
//! asked before it serves a client or sets its timer.

use crate::groups::group::Group;
use crate::op::Fetch;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::settings::Clock;
use crate::{GroupIx, Millis, MAX_EXACT, NEVER};

impl Queue {
    /// Whether any message is ready, regardless of a pause and the limits of the whole
    /// queue.
    pub fn has_ready(&self, now: Millis) -> bool {
        self.has_ready_for(now, false)
    }

    /// Whether any message is ready for a FETCH with or without NOACK, regardless of a
    /// pause and the limits of the whole queue.
    fn has_ready_for(&self, now: Millis, no_ack: bool) -> bool {
        self.first_in_line(no_ack, now).is_some()
            || self.are_limits_due(now)
            || (self.indexes.waiting.plain.head(now).is_some()
                && self.lets_out(GroupIx::NONE, no_ack, now))
            || self.indexes.expected.by(now).any(|key| {
                let group = self.state.groups.get(key.group);
                let gives = |group: &Group| group.given_position(key.group, now).is_some();
                group.is_some_and(gives) && self.lets_out(key.group, no_ack, now)
            })
    }

    /// Whether a limit with a name may have room by `now` that it had not when the queue last
    /// acted.
    fn are_limits_due(&self, now: Millis) -> bool {
        self.next_limit_time().is_some_and(|(at, _)| at <= now)
    }

    /// How many deliveries the pause and limits of the whole queue allow at `now`.
    pub(in crate::queue) fn allowance(&self, now: Millis, no_ack: bool) -> u64 {
        if self.is_paused(now) && !seeded(Bug::FetchGivesPaused) {
            return 0;
        }
        let by_rate = self
            .state
            .settings
            .rate
            .map_or(u64::MAX, |rate| self.state.seldom.window.free(rate, now));
        let by_running = match self.state.settings.max_running {
            0 => u64::MAX,
            _ if no_ack => u64::MAX,
            max => max.saturating_sub(self.state.leases.len() as u64),
        };
        // A dump may say that nearly all receipts were given out.
        let receipts = MAX_EXACT.saturating_sub(self.state.last_receipt);
        by_rate.min(by_running).min(receipts)
    }

    /// Whether deliveries of the queue are paused at `now`.
    pub fn is_paused(&self, now: Millis) -> bool {
        self.state.paused_until.is_some_and(|until| until > now)
    }

    /// When the queue next needs attention (Unix ms): an event is due, or, if
    /// `waiters` is set, a RATE lets a blocked client be served. It may be too
    /// early, never too late.
    ///
    /// `None` if nothing is to come. A MANUAL queue never wakes by itself.
    pub fn next_wake(&self, now: Millis, waiters: bool) -> Option<Millis> {
        if matches!(self.state.clock, Clock::Manual(_)) {
            return None;
        }
        let refill = self
            .state
            .settings
            .rate
            .filter(|_| waiters && self.has_ready(now))
            .map(|rate| self.state.seldom.window.next_free(rate, now))
            .filter(|at| *at > now);
        let mut wake = refill.map_or(self.indexes.wake, |at| at.min(self.indexes.wake));
        if self.has_garbage() {
            wake = wake.min(now);
        }
        (wake != NEVER).then_some(wake)
    }

    /// Whether this FETCH would get a message at `now`, regardless of the messages that
    /// its acks would free. A message that it would get once more counts.
    pub fn can_serve(&self, fetch: &Fetch, now: Millis) -> bool {
        if fetch.token.is_some() && self.can_repeat(fetch, now) {
            return true;
        }
        if self.allowance(now, fetch.no_ack) == 0 {
            return false;
        }
        match &fetch.group {
            None => self.has_ready_for(now, fetch.no_ack),
            Some(name) => {
                let group = self.state.groups.find(name);
                group.is_some_and(|ix| {
                    let gives = match self.are_limits_due(now) {
                        true => self.head_of(ix, now).is_some(),
                        false => self.can_group_give(ix, now),
                    };
                    gives && self.lets_out(ix, fetch.no_ack, now)
                })
            }
        }
    }

    /// Whether a FETCH would get a message at `now`: with a lease, and with NOACK. O(1), as
    /// [`Queue::can_serve`] is, which says the same of each.
    pub fn gives(&self, now: Millis) -> [bool; 2] {
        let to_leases = self.has_ready_for(now, false);
        // Only breakers make a difference between the two.
        let to_no_ack = match self.state.settings.breaker {
            None => to_leases,
            Some(_) => self.has_ready_for(now, true),
        };
        [
            to_leases && self.allowance(now, false) > 0,
            to_no_ack && self.allowance(now, true) > 0,
        ]
    }
}
