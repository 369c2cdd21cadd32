//! Fires schedules, and decides about fire times that were missed.

use crate::op::{Done, DueTime, Send, Sent};
use crate::queue::Queue;
use crate::schedule::{Missed, Overlap, Template};
use crate::settings::Clock;
use crate::{Millis, IS_SMALL};

/// Maximum number of fire times that one operation passes over, so that it does not hold
/// the server.
const MOST_SKIPPED: u64 = if IS_SMALL { 2 } else { 1024 };

/// The most fires of a MANUAL queue that may be due when it is loaded.
const MOST_FIRES_BEHIND: u64 = 1000;

impl Queue {
    /// Fires the schedule that is due next. Returns whether it sent a message.
    pub(in crate::queue) fn fire_next(&mut self, at: Millis) -> bool {
        let Some(name) = self
            .state
            .seldom
            .schedules
            .next_fire()
            .map(|(_, name)| name.to_vec())
        else {
            return false;
        };
        self.fire(&name, at, at)
    }

    /// Fires a schedule for its fire time `at`, acting at `now`, and sets its next
    /// fire time. Returns whether it sent a message.
    pub(in crate::queue) fn fire(&mut self, name: &[u8], at: Millis, now: Millis) -> bool {
        let Some(schedule) = self.state.seldom.schedules.get(name) else {
            return false;
        };
        let next = schedule.next_after(at);
        let last_runs = schedule
            .last_seq
            .and_then(|seq| self.state.store.get(seq))
            .is_some_and(|message| !message.stored.is_ended());
        let sent = if last_runs && schedule.overlap == Overlap::Skip {
            None
        } else if self.notes.skips_fires {
            self.state.totals.skipped_fires += 1;
            None
        } else {
            // Both messages are due now. Only the times of a cron rule, and of intervals
            // from a given start, are points of time.
            let delay = schedule.limits().delay(self.state.ids.salt(), name, at);
            // The message of a fire time that was missed may be due already.
            let wait = (at + delay).saturating_sub(now);
            let due = match schedule.rule.is_of_points() {
                true => DueTime::At(at + delay),
                false if wait > 0 => DueTime::After(wait),
                false => DueTime::Now,
            };
            let template = schedule.template.clone();
            self.send_scheduled(name, &template, (at, due), now)
        };
        self.state.seldom.schedules.change(name, |schedule| {
            schedule.next_at = next;
            if sent.is_some() {
                schedule.last_at = Some(at);
                schedule.last_seq = sent;
                schedule.fired += 1;
            }
            if sent.is_none() || schedule.extras.is_some() {
                schedule.change_extras(|extras| match (sent, &mut extras.limits.times) {
                    (None, _) => extras.skipped += 1,
                    (Some(_), Some(left)) => *left = left.saturating_sub(1),
                    (Some(_), None) => {}
                });
            }
        });
        self.end_schedule(name);
        if let Some(next) = next {
            self.wake_by(next);
        }
        sent.is_some()
    }

    pub(in crate::queue) fn send_scheduled(
        &mut self,
        name: &[u8],
        template: &Template,
        (at, due): (Millis, DueTime),
        now: Millis,
    ) -> Option<u64> {
        let mut id = name.to_vec();
        id.push(b'@');
        id.extend_from_slice(at.to_string().as_bytes());
        let send = Send {
            payloads: smallvec::smallvec![&*template.payload],
            id: Some(id.into()),
            replace: false,
            rerun: false,
            due,
            group: template.group.as_deref().map(Into::into),
            priority: template.priority,
            choices: template.choices.clone(),
            if_group: template.if_group,
            dedup: None,
            new_salt: None,
        };
        match self.send(&send, now) {
            Ok(Done::Sent(sent)) => match sent.first() {
                Some(Sent::Added(seq)) => Some(*seq),
                _ => None,
            },
            _ => {
                self.state.totals.skipped_fires += 1;
                None
            }
        }
    }

    /// Handles the first fire time before `since` that has passed by `now` and was
    /// missed because nothing could fire.
    ///
    /// It sends at most one message. The caller repeats it, so that each fire is an
    /// operation of its own and many missed ones do not hold the server.
    pub(in crate::queue) fn catch_up(&mut self, since: Millis, now: Millis) -> Done {
        let until = since.min(now);
        let Some((at, name)) = self
            .state
            .seldom
            .schedules
            .next_fire()
            .filter(|(at, _)| *at < until)
        else {
            return Done::Ok;
        };
        let name = name.to_vec();
        let Some(schedule) = self.state.seldom.schedules.get(&name) else {
            return Done::Ok;
        };
        // Its next fire time is not after its end.
        let end = schedule.limits().until.unwrap_or(Millis::MAX);
        let last = until
            .checked_sub(1)
            .map(|last| last.min(end))
            .and_then(|end| schedule.rule.last_at_or_before(end, at))
            .unwrap_or(at);
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        match schedule.missed {
            Missed::All => {
                self.fire(&name, at, now);
            }
            Missed::Once => {
                self.fire(&name, last, now);
            }
            Missed::Skip => {
                let next = schedule.next_after(last);
                self.state
                    .seldom
                    .schedules
                    .change(&name, |s| s.next_at = next);
                self.end_schedule(&name);
                if let Some(next) = next {
                    self.wake_by(next);
                }
            }
        }
        if let Some((next, _)) = self.state.seldom.schedules.next_fire() {
            self.wake_by(next);
        }
        Done::Ok
    }

    /// Passes over the fire times up to `now`, at most [`MOST_SKIPPED`] of them: the server
    /// has no memory for their messages. Fires before `since` were missed anyway, and only
    /// those of them that MISSED would fire count as skipped.
    pub(in crate::queue) fn skip_fires(&mut self, since: Millis, now: Millis) -> Done {
        self.notes.skips_fires = true;
        for _ in 0..MOST_SKIPPED {
            match self
                .state
                .seldom
                .schedules
                .next_fire()
                .filter(|(at, _)| *at <= now)
            {
                None => break,
                Some((at, _)) if at < since.min(now) => drop(self.catch_up(since, now)),
                Some((at, name)) => {
                    let name = name.to_vec();
                    self.fire(&name, at, now);
                    self.notes.effects.changed = true;
                    self.notes.effects.visible = true;
                }
            }
        }
        self.notes.skips_fires = false;
        if let Some((next, _)) = self.state.seldom.schedules.next_fire() {
            self.wake_by(next);
        }
        Done::Ok
    }

    /// Whether a schedule is due to fire by `now`. No schedule of a MANUAL queue is: its
    /// clock fires each on its way.
    pub fn has_fire(&self, now: Millis) -> bool {
        self.state.clock == Clock::Server
            && self
                .state
                .seldom
                .schedules
                .next_fire()
                .is_some_and(|(at, _)| at <= now)
    }

    /// Whether a MANUAL queue that comes from a snapshot is so far behind its own clock that
    /// its fires would hold up the server. One that a server has saved is not behind at all.
    pub(in crate::queue) fn is_far_behind(&self) -> bool {
        matches!(self.state.clock, Clock::Manual(now) if self.fires_until(now) > MOST_FIRES_BEHIND)
    }

    /// Roughly how many fire times lie at or before `until`. For a rule with many,
    /// the density of the next 64 is taken for all.
    pub(in crate::queue) fn fires_until(&self, until: Millis) -> u64 {
        const SAMPLE: u64 = 64;
        let fires = self.state.seldom.schedules.iter().map(|(_, schedule)| {
            let until = until.min(schedule.limits().until.unwrap_or(Millis::MAX));
            let Some(first) = schedule.next_at.filter(|at| *at <= until) else {
                return 0;
            };
            let (mut last, mut count) = (first, 1);
            while count < SAMPLE {
                match schedule.rule.next_after(last).filter(|at| *at <= until) {
                    Some(next) => (last, count) = (next, count + 1),
                    None => return count,
                }
            }
            let span = u128::from(last - first).max(1);
            let all = u128::from(until - first) * u128::from(SAMPLE) / span;
            u64::try_from(all).unwrap_or(u64::MAX)
        });
        fires.fold(0, u64::saturating_add)
    }

    /// Whether the next fire time was missed because nothing could fire from `begin` to
    /// `end` (Unix ms): it lies before the end, and that was longer than the time to the
    /// fire time after it. A MANUAL queue misses none.
    pub fn has_missed_in(&self, begin: Millis, end: Millis) -> bool {
        let Some((at, name)) = self.state.seldom.schedules.next_fire() else {
            return false;
        };
        if self.state.clock != Clock::Server || at >= end {
            return false;
        }
        let next = self
            .state
            .seldom
            .schedules
            .get(name)
            .and_then(|s| s.rule.next_after(at));
        next.is_some_and(|next| next - at < end.saturating_sub(begin))
    }

    /// Whether any schedule has a fire time before `since` (Unix ms). A MANUAL
    /// queue misses none.
    pub fn has_missed(&self, since: Millis) -> bool {
        self.state.clock == Clock::Server
            && self
                .state
                .seldom
                .schedules
                .next_fire()
                .is_some_and(|(at, _)| at < since)
    }
}
