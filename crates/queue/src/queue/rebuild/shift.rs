//! Moves times when the clock of a queue is set back.
//!
//! A span that is under way (a delay, a lease, a backoff, a pause, what a window
//! counts) keeps what is left of it, so its end moves with the clock. A point of time
//! (AT, EXPIREAT, the times of a cron rule) stays where it is.

use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::{Circuit, Phase};
use crate::message::history::History;
use crate::message::left::Left;
use crate::message::state::StoredState;
use crate::message::Message;
use crate::schedule::recurrence::Recurrence;
use crate::schedule::Schedule;
use crate::{Millis, NEVER};

use super::{SavedPosition, Whole};

/// The step of a clock back to an earlier time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift {
    /// The time by which the clock is set back, in ms.
    pub by: Millis,
    /// The time that the clock shows then, in Unix ms.
    pub now: Millis,
}

impl Shift {
    /// Converts a time that moves with the clock. [`NEVER`] stays.
    pub fn time(self, at: Millis) -> Millis {
        match at {
            NEVER => NEVER,
            at => at.saturating_sub(self.by),
        }
    }

    pub fn whole(self, whole: Whole) -> Whole {
        Whole {
            last: self.now,
            window: self.window(&whole.window),
            paused_until: whole.paused_until.map(|until| self.time(until)),
            plain_position: whole.plain_position.map(|at| self.position(at)),
            ..whole
        }
    }

    pub fn position(self, position: SavedPosition) -> SavedPosition {
        SavedPosition {
            time: self.time(position.time),
            ..position
        }
    }

    pub fn window(self, window: &RateWindow) -> RateWindow {
        let given = window.given();
        RateWindow::from_given(given.map(|(at, n)| (self.time(at), n)))
    }

    pub fn circuit(self, circuit: &Circuit) -> Circuit {
        let phase = match circuit.phase() {
            Phase::Closed(failures) => {
                Phase::Closed(failures.iter().map(|at| self.time(*at)).collect())
            }
            Phase::Open { until, length } => Phase::Open {
                until: self.time(*until),
                length: *length,
            },
            half_open @ Phase::HalfOpen { .. } => half_open.clone(),
        };
        Circuit::restored(phase, circuit.cause())
    }

    /// A schedule. The times of a rule that are points come again if the clock has been
    /// there before: they have not come by the right clock.
    pub fn schedule(self, schedule: &Schedule) -> Schedule {
        let mut schedule = schedule.clone();
        if schedule.rule.is_of_points() {
            let next = schedule.rule.next_after(self.now);
            let next = next.filter(|next| !schedule.limits().is_over_at(*next));
            schedule.next_at = schedule.next_at.and(next);
            schedule.change_held(|held| next.unwrap_or(held));
            return schedule;
        }
        if let Recurrence::Every { start, .. } = &mut schedule.rule {
            *start = self.time(*start);
        }
        schedule.next_at = schedule.next_at.map(|at| self.time(at));
        schedule.last_at = schedule.last_at.map(|at| self.time(at));
        schedule.change_held(|held| self.time(held));
        schedule
    }

    /// A message. One that is due at a point of time which is still to come is not due
    /// any more.
    pub fn message(self, message: &Message) -> Message {
        let mut message = message.clone();
        // The due time that was given, if it is a point.
        let point = message.is_due_at_point().then(|| message.ttl_base());
        let base = |at: Millis| match Some(at) == point {
            true => at,
            false => self.time(at),
        };
        // A generated id is computed from this time. The held messages are in its order.
        let is_parked = message.is_parked();
        if message.has_given_id() && (message.stored != StoredState::Held || is_parked) {
            message.sent_at = self.time(message.sent_at);
        }
        if point.is_some() && matches!(message.history, History::Once { .. }) {
            message.extension_mut();
        }
        message.due = match is_parked {
            true => self.time(message.due),
            false => base(message.due),
        };
        if let History::Full(ext) = &mut message.history {
            for at in [&mut ext.due_at, &mut ext.score_base, &mut ext.ttl_base] {
                *at = base(*at);
            }
            for at in [
                &mut ext.first_started_at,
                &mut ext.started_at,
                &mut ext.ended_at,
            ] {
                *at = self.time(*at);
            }
            let errors = ext.errors.take();
            ext.errors = errors.and_then(|errors| errors.moved(|at| self.time(at)));
            if let Some(Left::More(more)) = ext
                .texts
                .as_mut()
                .and_then(|texts| texts.left.as_deref_mut())
            {
                if let Some(rerun) = &mut more.rerun {
                    rerun.first_at = self.time(rerun.first_at);
                }
            }
        }
        if message.stored == StoredState::Running {
            let history = std::mem::take(&mut message.history);
            message.history = match history {
                History::Full(ext) => History::of_running(*ext, message.due),
                other => other,
            };
        }
        if message.stored == StoredState::Due && message.due > self.now {
            message.stored = match message.has_failed() {
                true => StoredState::Retry,
                false => StoredState::Delayed,
            };
        }
        message
    }
}
