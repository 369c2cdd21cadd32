//! Model of due events and of schedules.

use super::{Model, Msg, Schedule};
use crate::message::state::{Reason, StoredState};
use crate::op::{Done, DueTime, NewSchedule, Send, Sent, Ticked};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::Overlap;
use crate::{Error, Millis, NEVER};

/// The kinds of events, in the order in which they happen within one millisecond.
/// Each carries what orders events of its kind: a receipt, or the number of a
/// message, group or schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    LeaseEnd(u64),
    Expiry(u64),
    ParkEnd(u64),
    Due(u64),
    PauseEnd,
    GroupPauseEnd(usize),
    GroupRefill(usize),
    HalfOpen(Option<usize>),
    FailuresForgotten(Option<usize>),
    Prune(Millis, u64),
    Fire(usize),
}

impl Model {
    /// How long the message has been due that has waited longest, and is neither running
    /// nor held by a batch.
    pub fn oldest_due_age(&self) -> Option<Millis> {
        let waits = |m: &&Msg| m.stored.is_pending() && m.stored != StoredState::Held;
        let since = self.msgs.iter().filter(waits);
        let since = since.map(|m| m.due.min(m.ttl_base));
        let oldest = since.min().filter(|at| *at <= self.now)?;
        Some(self.now - oldest)
    }

    /// The names of the groups that have a message which is due or in retry, and that give
    /// none.
    pub fn held_groups(&self) -> Vec<&[u8]> {
        let all_held = self.allowance(false) == 0;
        let is_held = |number: &usize| {
            let waits = |m: &Msg| matches!(m.stored, StoredState::Due | StoredState::Retry);
            let mut mine = self.msgs.iter().filter(|m| m.group == Some(*number));
            mine.any(waits) && (all_held || self.head(Some(*number)).is_none())
        };
        let held = (0..self.groups.len()).filter(is_held);
        held.map(|number| &*self.groups[number].name).collect()
    }

    /// Processes all events that are due by `to`. Returns what they did.
    pub fn advance(&mut self, to: Millis) -> Ticked {
        self.ticked = Ticked::default();
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= to) {
            self.now = at;
            self.happen(event);
            self.line_up(0);
            self.send_reruns(0);
            self.settle_batches();
        }
        self.now = self.now.max(to);
        self.prune_counts();
        self.ticked
    }

    /// No timer serves a MANUAL queue, so an operation also processes the events that it
    /// has made due.
    pub(super) fn finish_manually(&mut self) {
        self.prune_counts();
        self.line_up(self.ticket);
        if self.manual {
            self.advance(self.now);
        }
    }

    pub(super) fn advance_manually(&mut self, to: Millis, skip_fires: bool) -> Result<Done, Error> {
        if !self.manual {
            return Err(Error::ClockIsServers);
        }
        if to < self.now {
            return Err(Error::ClockGoesBack { now: self.now, to });
        }
        self.skips_fires = skip_fires;
        let ticked = self.advance(to);
        self.skips_fires = false;
        Ok(Done::Ticked(ticked))
    }

    /// The time of the next event that a client can see.
    pub fn next_wake(&self) -> Option<Millis> {
        let is_seen = |event: Event| match event {
            Event::GroupPauseEnd(number) => self.waits_for(number),
            Event::GroupRefill(number) => {
                let mut after = self.clone();
                after.groups[number].given.remove(0);
                self.head(Some(number)).is_none() && after.head(Some(number)).is_some()
            }
            _ => true,
        };
        let events = self.events().into_iter();
        events.filter(|(_, e)| is_seen(*e)).map(|(at, _)| at).min()
    }

    fn waits_for(&self, number: usize) -> bool {
        let mut pending = self.msgs.iter().filter(|m| m.stored.is_pending());
        pending.any(|m| m.group == Some(number))
    }

    fn next_event(&self) -> Option<(Millis, Event)> {
        self.events().into_iter().min()
    }

    fn events(&self) -> Vec<(Millis, Event)> {
        let mut events = Vec::new();
        for m in &self.msgs {
            match m.stored {
                StoredState::Running => events.push((m.lease_until, Event::LeaseEnd(m.receipt))),
                StoredState::Delayed | StoredState::Retry => {
                    events.push((m.due, Event::Due(m.seq)))
                }
                StoredState::Finished | StoredState::Cancelled => {
                    let retain = m.choices.retain();
                    let at = m.ended_at + retain.unwrap_or(self.settings.retain);
                    events.push((at, Event::Prune(m.ended_at, m.seq)));
                }
                StoredState::Dead if self.settings.dead_retain > 0 => {
                    let at = m.ended_at + self.settings.dead_retain;
                    events.push((at, Event::Prune(m.ended_at, m.seq)));
                }
                StoredState::Held => {
                    let at = self.park_end(m.seq);
                    events.extend(at.map(|at| (at, Event::ParkEnd(m.seq))));
                }
                StoredState::Dead | StoredState::Due | StoredState::Leaving => {}
            }
            if m.stored.is_pending() {
                let at = self.expiry(m.seq);
                events.extend(at.map(|at| (at, Event::Expiry(m.seq))));
            }
        }
        let lasting = |until: Option<Millis>| until.filter(|at| *at != NEVER);
        events.extend(lasting(self.paused_until).map(|at| (at, Event::PauseEnd)));
        for (number, group) in self.groups.iter().enumerate() {
            let end = lasting(group.paused_until);
            events.extend(end.map(|at| (at, Event::GroupPauseEnd(number))));
            if let (Some(rate), Some(first)) = (group.rate, group.given.first()) {
                events.push((first + rate.per, Event::GroupRefill(number)));
            }
        }
        for breaker in &self.breakers {
            events.extend(breaker.until.map(|at| (at, Event::HalfOpen(breaker.who))));
            if let (Some(rule), Some(last)) = (self.settings.breaker, breaker.failures.last()) {
                events.push((last + rule.per, Event::FailuresForgotten(breaker.who)));
            }
        }
        for (number, schedule) in self.schedules.iter().enumerate() {
            if !schedule.paused {
                events.push((schedule.next_at, Event::Fire(number)));
            }
        }
        // An event whose time an operation has moved into the past happens now.
        let events = events.into_iter().map(|(at, e)| (at.max(self.now), e));
        events.collect()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::LeaseEnd(receipt) => {
                self.ticked.timeouts += 1;
                let m = self.running(receipt).unwrap();
                let (seq, closed) = (m.seq, m.old_end.is_some());
                self.time_out(seq, closed);
            }
            Event::Expiry(seq) => self.die(seq, Reason::Expired),
            Event::ParkEnd(seq) => {
                self.ticked.due += 1;
                self.unpark(seq);
            }
            Event::Due(seq) => {
                self.ticked.due += 1;
                self.msg_mut(seq).stored = StoredState::Due;
            }
            Event::PauseEnd => self.paused_until = None,
            Event::GroupPauseEnd(number) => self.groups[number].paused_until = None,
            Event::GroupRefill(number) => {
                self.groups[number].given.remove(0);
            }
            Event::HalfOpen(who) => self.end_open_time(who),
            Event::FailuresForgotten(who) => self.forget_failures(who),
            Event::Prune(_, seq) => {
                self.ticked.pruned += 1;
                self.drop_record(seq);
            }
            Event::Fire(number) => {
                let sent = self.fire(number);
                let schedule = &mut self.schedules[number];
                match (sent, &mut schedule.limits.times) {
                    (false, _) => schedule.skipped += 1,
                    (true, Some(left)) => *left -= 1,
                    (true, None) => {}
                }
                self.end_schedules();
            }
        }
    }

    /// Fires a schedule. Returns whether it sent a message.
    fn fire(&mut self, number: usize) -> bool {
        let now = self.now;
        let schedule = &mut self.schedules[number];
        schedule.next_at += schedule.period;
        let schedule = schedule.clone();
        let last = self.msgs.iter().find(|m| Some(m.seq) == schedule.last);
        let has_ended = last.is_none_or(|m| !m.is_live());
        if schedule.overlap == Overlap::Skip && !has_ended {
            return false;
        }
        if self.skips_fires {
            self.totals.skipped_fires += 1;
            return false;
        }
        let delay = schedule.limits.delay(self.salt, &schedule.name, now);
        let mut id = schedule.name.clone();
        id.extend_from_slice(format!("@{now}").as_bytes());
        let send = Send {
            new_salt: None,
            payloads: [&schedule.payload[..]].into_iter().collect(),
            id: Some(id.into()),
            replace: false,
            rerun: false,
            due: match schedule.is_given {
                true => DueTime::At(now + delay),
                false => DueTime::After(delay),
            },
            group: schedule.group.map(Into::into),
            priority: schedule.priority,
            choices: schedule.choices,
            if_group: schedule.if_group,
            dedup: None,
        };
        let sent = self.send(&send, self.live());
        let Ok(Done::Sent(sent)) = sent else {
            self.totals.skipped_fires += 1;
            return false;
        };
        if let Sent::Added(seq) = sent[0] {
            self.ticked.fired += 1;
            self.schedules[number].last = Some(seq);
            return true;
        }
        false
    }

    /// Removes the schedules that have ended. A pause keeps one.
    fn end_schedules(&mut self) {
        self.schedules.retain(|s| {
            let over = s.limits.until.is_some_and(|until| s.next_at > until);
            s.limits.times != Some(0) && (s.paused || !over)
        });
    }

    pub(super) fn pause_schedule(&mut self, name: &[u8], paused: bool) -> bool {
        let now = self.now;
        let Some(schedule) = self.schedules.iter_mut().find(|s| s.name == name) else {
            return false;
        };
        schedule.paused = paused;
        while !paused && schedule.next_at < now {
            schedule.next_at += schedule.period;
        }
        self.end_schedules();
        true
    }

    pub(super) fn schedule(&mut self, new: &NewSchedule) -> Result<Done, Error> {
        let Recurrence::Every {
            period,
            start,
            start_given,
        } = new.rule
        else {
            unreachable!("not modelled");
        };
        let mut next_at = start;
        while next_at < self.now {
            next_at += period;
        }
        let limits = new.limits.as_deref().copied().unwrap_or_default();
        if limits.until.is_some_and(|until| next_at > until) {
            return Err(Error::NeverFires);
        }
        self.schedules.retain(|s| s.name != *new.name);
        self.schedules.push(Schedule {
            name: new.name.to_vec(),
            period,
            start,
            is_given: start_given,
            next_at,
            overlap: new.overlap,
            limits,
            paused: false,
            skipped: 0,
            last: None,
            payload: new.send.payloads[0].to_vec(),
            group: new.send.group.as_ref().map(|g| g.to_vec()),
            priority: new.send.priority,
            choices: new.send.choices.clone(),
            if_group: new.send.if_group,
        });
        Ok(Done::NextFire(next_at))
    }

    pub(super) fn unschedule(&mut self, name: &[u8]) -> bool {
        let before = self.schedules.len();
        self.schedules.retain(|s| s.name != name);
        self.schedules.len() < before
    }
}
