//! Model of a clock that is set back, and of leases that are spared.

use super::{Model, Msg};
use crate::message::state::StoredState;
use crate::{Millis, NEVER};

impl Model {
    /// Sets the clock back by `by` ms.
    pub fn cut(&mut self, by: Millis) {
        let back = |at: Millis| if at == NEVER { at } else { at - by };
        self.now -= by;
        let now = self.now;
        for m in &mut self.msgs {
            let point = m.is_point.then_some(m.ttl_base);
            let base = |at: Millis| if Some(at) == point { at } else { at - by };
            m.due = match m.parked_at {
                Some(_) => back(m.due),
                None => base(m.due),
            };
            for at in [&mut m.due_at, &mut m.score_base, &mut m.ttl_base] {
                *at = base(*at);
            }
            if let Some(parked_at) = &mut m.parked_at {
                *parked_at -= by;
            }
            m.ended_at = back(m.ended_at);
            for failed in &mut m.errors {
                failed.at = failed.at.saturating_sub(by);
            }
            if let Some(rerun) = &mut m.rerun {
                rerun.first_at -= by;
            }
            m.lease_until = back(m.lease_until);
            m.old_end = m.old_end.map(back);
            if m.is_given {
                m.first_sent_at -= by;
                if m.stored != StoredState::Held || m.parked_at.is_some() {
                    m.sent_at -= by;
                }
            }
            m.stored = match m.stored {
                StoredState::Due if m.due > now && m.failures > 0 && !m.snoozed => {
                    StoredState::Retry
                }
                StoredState::Due if m.due > now => StoredState::Delayed,
                stored => stored,
            };
        }
        self.paused_until = self.paused_until.map(back);
        self.given.iter_mut().for_each(|at| *at -= by);
        for group in &mut self.groups {
            group.paused_until = group.paused_until.map(back);
            group.given.iter_mut().for_each(|at| *at -= by);
        }
        for breaker in &mut self.breakers {
            breaker.failures.iter_mut().for_each(|at| *at -= by);
            breaker.until = breaker.until.map(back);
        }
        self.ended_ids.iter_mut().for_each(|(_, at)| *at -= by);
        self.dedup_ids.iter_mut().for_each(|(_, _, at)| *at -= by);
        for schedule in &mut self.schedules {
            if schedule.is_given {
                let mut next = schedule.start;
                while next <= now {
                    next += schedule.period;
                }
                // A paused schedule that will never fire again keeps the time that it had.
                let is_over = schedule.limits.until.is_some_and(|until| next > until);
                if !(schedule.paused && is_over) {
                    schedule.next_at = next;
                }
            } else {
                schedule.start -= by;
                schedule.next_at -= by;
            }
        }
        self.line.iter_mut().for_each(|at| at.time -= by);
        let has_point = |m: &Msg| m.is_point && m.stored.is_pending();
        let points = self.msgs.iter().filter(|m| has_point(m));
        let moved: Vec<Option<usize>> = points.map(|m| m.group).collect();
        self.line
            .retain(|at| at.who.is_none() || !moved.contains(&at.who));
        self.ticket += 1;
        self.line_up(self.ticket);
    }

    /// Lets leases that would end before `to` end at `to`.
    pub fn spare(&mut self, to: Millis) {
        for m in &mut self.msgs {
            if m.stored == StoredState::Running {
                m.lease_until = m.lease_until.max(to);
            }
        }
    }
}
