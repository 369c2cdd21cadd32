//! What time brings, strictly in its order.

use super::Queue;
use crate::error::Error;
use crate::group::GroupIx;
use crate::line::Join;
use crate::op::{Done, Ticked};
use crate::settings::Clock;
use crate::state::{Place, Reason};
use crate::{Millis, Seq, IS_SMALL, NEVER};

/// What happens by itself, in the order in which it happens within one
/// millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    LeaseEnd,
    Expiry,
    Due,
    PauseEnd,
    GroupWake,
    Join,
    SettledAge,
    DeadAge,
    DedupAge,
    ConsumerAge,
    Fire,
    Redrive,
    Remains,
    SettledCount,
    DeadCount,
}

/// More fires than this are refused in one move of a manual clock.
const MOST_FIRES: u64 = 1_000_000;

/// So many messages of one kind that are due and not promoted make a large
/// burst.
const BURST: usize = if IS_SMALL { 3 } else { 256 };

/// So many leases at most end with one operation, which must not hold the
/// server: the timer is at work on them.
const MOST_ENDED: u64 = 4096;

/// How far [`Queue::advance`] got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps taken.
    pub steps: u64,
    /// What they did.
    pub ticked: Ticked,
    /// Whether nothing is left to do at that time.
    pub caught_up: bool,
}

impl Queue {
    /// Does what has fallen due by `now`, in order of time, `most` steps of it
    /// at most. Each thing is done as of its own time, so that two calls do
    /// what one does. O(log n) a step; O(1) when nothing is due.
    ///
    /// In a large burst a slice begins with what concerns consumers, and it
    /// ends with a fire; `u64::MAX` is no slice, but strictly in order.
    ///
    /// A MANUAL queue does what is due at its own time, all of it: that moves
    /// by [`crate::Op::Advance`] alone.
    pub fn advance(&mut self, now: Millis, most: u64) -> Progress {
        match self.clock {
            Clock::Manual(clock) => self.run(clock, u64::MAX),
            Clock::Server => self.run(now.max(self.last), most),
        }
    }

    /// Whether [`Queue::advance`] would do anything at `now`. O(1).
    pub fn has_work(&self, now: Millis) -> bool {
        self.wake <= now
    }

    /// Whether no group can have got anything to give by `now` without having
    /// joined the line.
    pub(super) fn is_worked_off(&mut self, now: Millis) -> bool {
        if self.wake > now {
            return true;
        }
        self.drop_purged_heads(now);
        let events = [
            self.leases.first_end().map(|(at, _)| at),
            self.expiring.first().map(|((at, _), ())| at),
            self.waiting.next_promotion().map(|(at, _)| at),
            self.groups.next_wake().map(|(at, _)| at),
            self.expected.next().map(|key| key.join.time),
        ];
        events.into_iter().flatten().all(|at| at > now)
    }

    /// What a MANUAL queue has left to do at its own time, it does at once: no
    /// timer comes to it.
    pub(super) fn finish_manually(&mut self) {
        if let Clock::Manual(clock) = self.clock {
            self.run(clock, u64::MAX);
        }
    }

    pub(super) fn advance_manually(&mut self, to: Millis) -> Result<Done, Error> {
        let Clock::Manual(now) = self.clock else {
            return Err(Error::ClockIsServers);
        };
        if to < now {
            return Err(Error::ClockGoesBack { now, to });
        }
        if self.fires_until(to) > MOST_FIRES {
            return Err(Error::TooManyFires { limit: MOST_FIRES });
        }
        let progress = self.run(to, u64::MAX);
        self.clock = Clock::Manual(to);
        self.last = to;
        self.effects.changed |= to > now;
        self.effects.visible |= to > now;
        Ok(Done::Ticked(progress.ticked))
    }

    fn run(&mut self, now: Millis, most: u64) -> Progress {
        let mut progress = Progress::default();
        let in_slices = most < u64::MAX;
        if in_slices && self.is_burst(now) && !self.run_ahead(now, most, &mut progress) {
            return progress;
        }
        while self.wake <= now {
            self.drop_purged_heads(now);
            let Some((at, event)) = self.next_event() else {
                self.wake = NEVER;
                break;
            };
            if at > now {
                self.wake = at;
                break;
            }
            if progress.steps >= most {
                self.wake = at;
                return progress;
            }
            // What is over a limit of counts has no time of its own.
            let at = match event {
                Event::SettledCount | Event::DeadCount | Event::Redrive | Event::Remains => {
                    self.last
                }
                _ => at,
            };
            self.last = self.last.max(at);
            if let Clock::Manual(clock) = &mut self.clock {
                *clock = self.last;
            }
            self.step(at, event, most, &mut progress);
            if event == Event::Fire && in_slices {
                // A fire is the last of its slice: it is replicated by itself.
                return progress;
            }
        }
        progress.caught_up = true;
        progress
    }

    /// Whether a large burst is due at `now`. How much of what was purged is freed
    /// by now must not matter: every server frees at its own pace.
    fn is_burst(&mut self, now: Millis) -> bool {
        if self.wake > now {
            return false;
        }
        self.drop_purged_heads(now);
        self.waiting
            .is_burst(now, BURST, |seq| !self.is_purged(seq))
    }

    /// In a large burst, what changes what consumers can have does not wait for
    /// what only moves on: leases that are over, expiries and schedules. Whether
    /// the slice goes on.
    fn run_ahead(&mut self, now: Millis, most: u64, progress: &mut Progress) -> bool {
        while progress.steps < most {
            self.drop_purged_heads(now);
            let lease = self.leases.first_end().map(|(at, _)| (at, Event::LeaseEnd));
            let expiry = self.expiring.first();
            let expiry = expiry.map(|((at, _), ())| (at, Event::Expiry));
            let fire = self.schedules.next_fire().map(|(at, _)| (at, Event::Fire));
            match lease.into_iter().chain(expiry).chain(fire).min() {
                Some((at, event)) if at <= now => {
                    self.last = self.last.max(at);
                    self.admit_plain(at);
                    self.step(at, event, most, progress);
                    if event == Event::Fire {
                        return false;
                    }
                }
                _ => return true,
            }
        }
        true
    }

    /// Where a burst is still being worked off, brings up to date what an
    /// operation at `now` cannot see through: what it does must not depend on
    /// how far time was worked off.
    pub(super) fn catch_up_with(&mut self, now: Millis) {
        let mut progress = Progress::default();
        self.heed_heads(now);
        while let Some((at, _)) = self.leases.first_end().filter(|(at, _)| *at <= now) {
            if progress.steps == MOST_ENDED {
                break;
            }
            self.last = self.last.max(at);
            self.admit_plain(at);
            self.step(at, Event::LeaseEnd, MOST_ENDED, &mut progress);
        }
        // No message of a group: only that which the ungrouped ones give first.
        self.redrive_first(now, &mut 0);
        self.admit_plain(now);
    }

    /// What happens next by itself, and when.
    fn next_event(&self) -> Option<(Millis, Event)> {
        let age = |oldest: Option<(Millis, Seq)>, keep: Millis| {
            oldest
                .filter(|_| keep > 0)
                .map(|(ended_at, _)| ended_at.saturating_add(keep))
        };
        let over = |place| self.over_count(place).then_some(0);
        let candidates = [
            (self.leases.first_end().map(|(at, _)| at), Event::LeaseEnd),
            (self.expiring.first().map(|(key, ())| key.0), Event::Expiry),
            (self.waiting.next_promotion().map(|(at, _)| at), Event::Due),
            (self.paused_until.filter(|at| *at != NEVER), Event::PauseEnd),
            (self.groups.next_wake().map(|(at, _)| at), Event::GroupWake),
            (self.expected.next().map(|key| key.join.time), Event::Join),
            (self.settled_age(), Event::SettledAge),
            (
                age(self.records.oldest_dead(), self.settings.dead_retain),
                Event::DeadAge,
            ),
            (
                self.records
                    .dedup
                    .oldest()
                    .map(|at| at.saturating_add(self.settings.dedup)),
                Event::DedupAge,
            ),
            (self.consumers.next_forget(), Event::ConsumerAge),
            (self.schedules.next_fire().map(|(at, _)| at), Event::Fire),
            (
                (!self.redriving.left.is_empty()).then_some(0),
                Event::Redrive,
            ),
            ((!self.remains.is_empty()).then_some(0), Event::Remains),
            (over(Place::Finished), Event::SettledCount),
            (over(Place::Dead), Event::DeadCount),
        ];
        candidates
            .into_iter()
            .filter_map(|(at, event)| Some((at?, event)))
            .min()
    }

    /// When the oldest finished or cancelled record has been kept long enough.
    fn settled_age(&self) -> Option<Millis> {
        let (ended_at, _) = self.records.oldest_settled()?;
        Some(ended_at.saturating_add(self.settings.retain))
    }

    fn step(&mut self, at: Millis, event: Event, most: u64, progress: &mut Progress) {
        progress.steps += 1;
        self.effects.changed = true;
        self.effects.visible = true;
        let ticked = &mut progress.ticked;
        let join = Join::by_time(at);
        match event {
            Event::LeaseEnd => {
                let first = self.leases.first_end();
                let lease = first.and_then(|(_, receipt)| self.leases.find(receipt));
                if let Some(lease) = lease {
                    ticked.timeouts += 1;
                    let expired = self.totals.expired;
                    if self.time_out(lease.seq, at, join) == Some(Reason::Retries) {
                        ticked.dead += 1;
                    }
                    // What came back with it may have expired as well.
                    ticked.expired += self.totals.expired - expired;
                }
            }
            Event::Expiry => {
                ticked.expired += 1;
                self.expire_next(at, join);
            }
            Event::Due => self.promote_all(at, most, progress),
            Event::PauseEnd => self.paused_until = None,
            // All of one moment are one step: which of them is first depends
            // on where they are in memory.
            Event::GroupWake => {
                while let Some((_, ix)) = self.groups.next_wake().filter(|(due, _)| *due <= at) {
                    if !self.knows_purges(ix) {
                        self.heed_purges(ix);
                        continue;
                    }
                    if let Some(group) = self.groups.get_mut(ix) {
                        if group.ext().paused_until.is_some_and(|until| until <= at) {
                            group.ext_mut().paused_until = None;
                        }
                    }
                    self.groups.wake_at(ix, None);
                    // The place that this gives it is known already.
                    self.refresh(ix, self.last, join);
                }
            }
            Event::Join => self.admit_all(at, most, progress),
            Event::SettledAge => {
                ticked.pruned += 1;
                self.prune_oldest(Place::Finished);
            }
            Event::DeadAge => {
                ticked.pruned += 1;
                self.prune_oldest(Place::Dead);
            }
            Event::DedupAge => self.records.dedup.forget_oldest(),
            Event::ConsumerAge => self.consumers.forget_next(),
            Event::Fire => {
                // What time sends joins the line as time does.
                let ticket = std::mem::take(&mut self.ticket);
                ticked.fired += u64::from(self.fire_next(at));
                self.ticket = ticket;
            }
            Event::Redrive => self.redrive_next(),
            Event::Remains => self.drop_next_remains(),
            Event::SettledCount => self.prune_oldest(Place::Finished),
            Event::DeadCount => self.prune_oldest(Place::Dead),
        }
    }

    /// The message whose TTL ends first dies, as of `at`.
    pub(super) fn expire_next(&mut self, at: Millis, join: Join) {
        if let Some(((_, seq), ())) = self.expiring.first() {
            let group = self.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
            self.leave_pending(seq);
            self.die(seq, Reason::Expired, at);
            self.refresh(group, at, join);
        }
    }

    /// Lets those groups join the line that can give since `at`, as far as the
    /// steps go.
    fn admit_all(&mut self, at: Millis, most: u64, progress: &mut Progress) {
        let mut first = true;
        while let Some(key) = self.expected.next().filter(|key| key.join.time <= at) {
            if !self.knows_purges(key.group) {
                self.heed_purges(key.group);
                continue;
            }
            if !first && progress.steps >= most {
                return;
            }
            if !first {
                progress.steps += 1;
            }
            first = false;
            self.admit(key.group, key.join.time);
        }
    }
}
