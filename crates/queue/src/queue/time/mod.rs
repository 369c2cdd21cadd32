//! Processes due events strictly in the order of their times.
//!
//! Events are processed in steps, so that a large number of them does not hold the
//! server. Each is processed as of its own time, so the result does not depend on
//! when the steps are run.

mod fire;
pub(in crate::queue) mod lead;
pub(in crate::queue) mod promote;
mod spare;
mod step;

use super::event::Event;
use super::stuck::{StuckEvents, AGAIN_AFTER};
use super::Queue;
use crate::error::Error;
use crate::index::dedup_ids::DedupIds;
use crate::message::state::StoredState;
use crate::message::Message;
use crate::op::{Done, Ticked};
use crate::settings::Clock;
use crate::{Millis, Seq, IS_SMALL, NEVER};

/// Whether schedules fire in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fires {
    /// Fires happen at their times.
    Happen,
    /// Not in this run.
    Wait,
}

/// Maximum number of fires in one move of a manual clock; more are refused.
const MOST_FIRES: u64 = 1_000_000;

/// In a burst, at least this many messages of one kind are due and not promoted.
const BURST: usize = if IS_SMALL { 3 } else { 256 };

/// Maximum number of leases and waits that one operation ends, so that it does not hold the
/// server. The timer processes the others.
const MOST_ENDED: u64 = 4096;

/// The result of [`Queue::advance`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of steps run.
    pub steps: u64,
    /// The counts of the steps.
    pub ticked: Ticked,
    /// Whether no event is left that is due at that time.
    pub caught_up: bool,
    /// The kinds of events that made no progress. They were left out from then on.
    stuck: StuckEvents,
}

impl Queue {
    /// Processes up to `most` events that are due by `now`, in the order of their
    /// times. O(log n) a step; O(1) if nothing is due.
    ///
    /// Each event is processed as of its own time, so two calls have the same
    /// result as one. With `u64::MAX` steps the order is strict. With fewer, a fired
    /// schedule ends the call, and in a large burst events that concern consumers
    /// are processed before promotions.
    ///
    /// The call ends where the queue owes something to other keys that the next event must not
    /// miss, and until that is taken ([`Queue::take_owed`]) it does nothing.
    ///
    /// A MANUAL queue processes everything that is due at its own time and ignores
    /// `now`: its time is moved only by [`crate::Op::Advance`].
    pub fn advance(&mut self, now: Millis, most: u64) -> Progress {
        match self.must_settle() {
            true => Progress::default(),
            false => self.advance_logged(now, most),
        }
    }

    /// Like [`Queue::advance`], for the due events of a log entry, whose order was decided where it
    /// was written.
    pub(crate) fn advance_logged(&mut self, now: Millis, most: u64) -> Progress {
        match self.state.clock {
            Clock::Manual(clock) => self.run(clock, u64::MAX, Fires::Happen),
            Clock::Server => self.run(now.max(self.state.last), most, Fires::Happen),
        }
    }

    /// Like [`Queue::advance`], but no schedule fires: separate operations decide about
    /// missed fire times, while all other work continues.
    pub fn advance_without_fires(&mut self, now: Millis, most: u64) -> Progress {
        match self.must_settle() {
            true => Progress::default(),
            false => self.advance_logged_without_fires(now, most),
        }
    }

    /// Like [`Queue::advance_logged`] without fires.
    pub(crate) fn advance_logged_without_fires(&mut self, now: Millis, most: u64) -> Progress {
        match self.state.clock {
            Clock::Manual(_) => Progress::default(),
            Clock::Server => self.run(now.max(self.state.last), most, Fires::Wait),
        }
    }

    /// Whether [`Queue::advance`] would do anything at `now`. It may say yes where
    /// nothing is due, never no where something is. O(1).
    pub fn has_work(&self, now: Millis) -> bool {
        self.indexes.wake <= now
    }

    /// Processes all due events of a MANUAL queue at its own time, up to one after which it owes
    /// something to other keys. No timer does that for it.
    pub(super) fn finish_manually(&mut self) {
        if let (Clock::Manual(clock), false) = (self.state.clock, self.must_settle()) {
            self.run(clock, u64::MAX, Fires::Happen);
        }
    }

    /// Moves a manual clock, up to an event after which the queue owes something to other keys. With
    /// `skip_fires` the schedules on the way do not fire.
    pub(super) fn advance_manually(&mut self, to: Millis, skip_fires: bool) -> Result<Done, Error> {
        let Clock::Manual(now) = self.state.clock else {
            return Err(Error::ClockIsServers);
        };
        if to < now {
            return Err(Error::ClockGoesBack { now, to });
        }
        if self.fires_until(to) > MOST_FIRES {
            return Err(Error::TooManyFires { limit: MOST_FIRES });
        }
        self.notes.skips_fires = skip_fires;
        let progress = self.run(to, u64::MAX, Fires::Happen);
        self.notes.skips_fires = false;
        let reached = if progress.caught_up {
            to
        } else {
            self.state.last
        };
        self.state.clock = Clock::Manual(reached);
        self.state.last = reached;
        self.notes.effects.changed |= reached > now;
        self.notes.effects.visible |= reached > now;
        Ok(Done::Ticked(progress.ticked))
    }

    fn run(&mut self, now: Millis, most: u64, fires: Fires) -> Progress {
        let mut progress = Progress::default();
        let in_slices = most < u64::MAX;
        if in_slices && self.is_burst(now) && !self.run_ahead(now, most, fires, &mut progress) {
            return progress;
        }
        // A fire that waits is due all the time.
        let waits = match fires {
            Fires::Happen => NEVER,
            Fires::Wait => self
                .state
                .seldom
                .schedules
                .next_fire()
                .map_or(NEVER, |(at, _)| at),
        };
        while self.indexes.wake <= now {
            let Some((at, event)) = self.next_event(fires, progress.stuck) else {
                self.indexes.wake = waits;
                break;
            };
            if at > now {
                self.indexes.wake = at.min(waits);
                break;
            }
            if progress.steps >= most {
                self.indexes.wake = at.min(waits);
                return progress;
            }
            // The limits by count, and unfinished work, have no time of their own.
            let at = match event {
                Event::SettledCount | Event::DeadCount | Event::Release => self.state.last,
                _ => at,
            };
            self.state.last = self.state.last.max(at);
            if let Clock::Manual(clock) = &mut self.state.clock {
                *clock = self.state.last;
            }
            let released = self.step(at, event, most, &mut progress);
            if self.must_settle() || in_slices && (event == Event::Fire || released) {
                // No event may see what the last one has left for other keys.
                // A fire ends the call, because it is replicated as a separate operation.
                // Released messages may make the next events a burst, which is only
                // noticed where a call begins.
                return progress;
            }
        }
        if !progress.stuck.is_empty() {
            self.indexes.wake = self.indexes.wake.min(now.saturating_add(AGAIN_AFTER));
        }
        progress.caught_up = true;
        progress
    }

    /// Whether a large burst is due at `now`.
    fn is_burst(&self, now: Millis) -> bool {
        self.indexes.wake <= now && self.indexes.waiting.is_burst(now, BURST)
    }

    /// In a large burst, processes ended leases, expiries and schedules before
    /// promotions, because they change the messages that consumers can get. Returns
    /// whether the call may go on with other events.
    fn run_ahead(&mut self, now: Millis, most: u64, fires: Fires, progress: &mut Progress) -> bool {
        while progress.steps < most && progress.stuck.is_empty() {
            let lease = self
                .state
                .leases
                .first_end()
                .map(|(at, _)| (at, Event::LeaseEnd));
            let expiry = self.indexes.expiring.first();
            let expiry = expiry.map(|((at, _), ())| (at, Event::Expiry));
            let park = self
                .indexes
                .held
                .first_end()
                .map(|(at, _)| (at, Event::ParkEnd));
            let fire = self.next_fire(fires).map(|at| (at, Event::Fire));
            let release = self
                .has_released()
                .then_some((self.state.last, Event::Release));
            match release.or([lease, expiry, park, fire].into_iter().flatten().min()) {
                Some((at, event)) if at <= now => {
                    self.state.last = self.state.last.max(at);
                    self.admit_plain(at);
                    let released = self.step(at, event, most, progress);
                    if event == Event::Fire || released || self.must_settle() {
                        return false;
                    }
                }
                _ => return true,
            }
        }
        true
    }

    /// Processes the due events that an operation at `now` cannot see past, in a
    /// burst that is not all processed. The result of an operation must not depend
    /// on how much of the burst was processed. Leases whose ends may concern other keys are left:
    /// their messages run on until their ends can be settled by themselves.
    #[cold]
    pub(super) fn catch_up_with(&mut self, now: Millis) {
        let mut progress = Progress::default();
        while progress.steps < MOST_ENDED && progress.stuck.is_empty() {
            let lease = self
                .state
                .leases
                .first_end()
                .map(|(at, _)| (at, Event::LeaseEnd));
            let park = self
                .indexes
                .held
                .first_end()
                .map(|(at, _)| (at, Event::ParkEnd));
            let next = lease.into_iter().chain(park).min();
            let Some((at, event)) = next.filter(|(at, _)| *at <= now) else {
                break;
            };
            if event == Event::LeaseEnd && self.may_owe_at_next_lease_end() {
                break;
            }
            self.state.last = self.state.last.max(at);
            self.admit_plain(at);
            self.step(at, event, MOST_ENDED, &mut progress);
        }
        while let Some((at, _)) = self.next_limit_time().filter(|(at, _)| *at <= now) {
            if progress.steps == MOST_ENDED || !progress.stuck.is_empty() {
                break;
            }
            self.state.last = self.state.last.max(at);
            self.step(at, Event::Limit, MOST_ENDED, &mut progress);
        }
        self.admit_plain(now);
    }

    /// Whether the next end of a lease may owe something to other keys.
    fn may_owe_at_next_lease_end(&self) -> bool {
        let runs_for_parent = || {
            let first = self.state.leases.first_end();
            let lease = first.and_then(|(_, receipt)| self.state.leases.find(receipt));
            let message = lease.and_then(|lease| self.state.store.get(lease.seq));
            let rerun = message.and_then(Message::rerun);
            rerun.is_some_and(|rerun| rerun.choices.parent().is_some())
        };
        self.state.settings.dead_to.is_some()
            || self.state.seldom.has_siblings()
            || self.indexes.has_reruns && runs_for_parent()
    }

    /// When a schedule fires next, unless fires wait.
    fn next_fire(&self, fires: Fires) -> Option<Millis> {
        match fires {
            Fires::Happen => self.state.seldom.schedules.next_fire().map(|(at, _)| at),
            Fires::Wait => None,
        }
    }

    /// The next event and its time, without kinds that are stuck.
    fn next_event(&self, fires: Fires, stuck: StuckEvents) -> Option<(Millis, Event)> {
        let age = |oldest: Option<(Millis, Seq)>, keep: Millis| {
            oldest
                .filter(|_| keep > 0)
                .map(|(ended_at, _)| ended_at.saturating_add(keep))
        };
        let over = |stored| self.over_count(stored).then_some(0);
        let candidates = [
            (
                self.state.leases.first_end().map(|(at, _)| at),
                Event::LeaseEnd,
            ),
            (
                self.indexes.expiring.first().map(|(key, ())| key.0),
                Event::Expiry,
            ),
            (
                self.indexes.held.first_end().map(|(at, _)| at),
                Event::ParkEnd,
            ),
            (
                self.indexes.waiting.next_promotion().map(|(at, _)| at),
                Event::Due,
            ),
            (
                self.state.paused_until.filter(|at| *at != NEVER),
                Event::PauseEnd,
            ),
            (
                self.state.groups.next_wake().map(|(at, _)| at),
                Event::GroupWake,
            ),
            (self.next_breaker_change().map(|(at, _)| at), Event::Breaker),
            (self.next_limit_time().map(|(at, _)| at), Event::Limit),
            (
                self.indexes.expected.next().map(|key| key.join.time),
                Event::Join,
            ),
            (self.next_settled_age().map(|(at, _)| at), Event::SettledAge),
            (
                age(
                    self.state.records.oldest_dead(),
                    self.state.settings.dead_retain,
                ),
                Event::DeadAge,
            ),
            (
                self.state
                    .records
                    .dedup
                    .oldest()
                    .map(|at| at.saturating_add(self.state.settings.dedup)),
                Event::DedupAge,
            ),
            (
                self.dedup_ids().and_then(DedupIds::next_end),
                Event::DedupIdEnd,
            ),
            (self.state.consumers.next_forget(), Event::ConsumerAge),
            (self.next_fire(fires), Event::Fire),
            (self.has_released().then_some(0), Event::Release),
            (over(StoredState::Finished), Event::SettledCount),
            (over(StoredState::Dead), Event::DeadCount),
        ];
        candidates
            .into_iter()
            .filter_map(|(at, event)| Some((at?, event)))
            .filter(|(_, event)| !stuck.has(*event))
            .min()
    }
}
