//! The fire times of a schedule: at an interval in milliseconds, or by a cron rule.
//!
//! A [`Recurrence`] is a set of points of time and nothing else. It does not
//! know whether the server fires at them, and the current time is an argument.

mod cron;
#[cfg(test)]
mod dst;
mod error;
#[cfg(test)]
mod model;
mod steps;
#[cfg(test)]
mod tests;
mod zone;

pub use cron::CronRule;
pub use error::RecurrenceError;

use crate::collections::footprint::allocated;
use crate::{Millis, MAX_EXACT};

/// The fire times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recurrence {
    /// Fires at `start`, and every `period` after it.
    Every {
        /// The time between two fire times, 1 to 2^53-1 ms.
        period: Millis,
        /// The first fire time, in Unix ms, 0 to 2^53-1.
        start: Millis,
        /// Whether the client gave the start, which is then shown in the
        /// definition.
        start_given: bool,
    },
    /// Fires by a cron expression in a time zone.
    Cron(CronRule),
}

impl Recurrence {
    /// The bytes of the text of a cron rule.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Recurrence::Every { .. } => 0,
            Recurrence::Cron(rule) => allocated(rule.expr().len()),
        }
    }

    /// Fires at `start` + k x `period` for every k from 0 on. Without a start,
    /// it first fires at `now` + `period`.
    ///
    /// Errors: the period is not 1 to 2^53-1 ms, or the first fire time is
    /// beyond 2^53-1.
    pub fn every(
        period: Millis,
        start: Option<Millis>,
        now: Millis,
    ) -> Result<Recurrence, RecurrenceError> {
        if !(1..=MAX_EXACT).contains(&period) {
            return Err(RecurrenceError::Period);
        }
        let first = start.unwrap_or(now.saturating_add(period));
        if first > MAX_EXACT {
            return Err(RecurrenceError::Start);
        }
        Ok(Recurrence::Every {
            period,
            start: first,
            start_given: start.is_some(),
        })
    }

    /// Fires by the cron expression `expr` in the IANA time zone `zone`, or in
    /// UTC without one. [`CronRule`] describes the rules.
    ///
    /// Errors: the expression or the zone cannot be parsed. An expression that
    /// never fires (30 February) is not an error; it has no fire times.
    pub fn cron(expr: &str, zone: Option<&str>) -> Result<Recurrence, RecurrenceError> {
        CronRule::parse(expr, zone).map(Recurrence::Cron)
    }

    /// Whether the fire times are points of time that a client has named: those of a
    /// cron rule, or counted from a given start. Others are counted from when the rule
    /// was made.
    pub fn is_of_points(&self) -> bool {
        match self {
            Recurrence::Every { start_given, .. } => *start_given,
            Recurrence::Cron(_) => true,
        }
    }

    /// The first fire time at or after `t`, in Unix ms. `None` if there is none
    /// up to 2^53-1, or up to the year 9999 for a cron rule.
    ///
    /// Cost: O(1) for `Every`. Some hundred ns for a cron rule, about
    /// twice as much for one of intervals in a zone, and more for one that fires
    /// once in years (at worst 4 us, for 29 February).
    pub fn first_at_or_after(&self, t: Millis) -> Option<Millis> {
        let fire = match self {
            Recurrence::Every { start, .. } if t <= *start => Some(*start),
            Recurrence::Every { period, start, .. } => {
                let beyond = t.checked_sub(*start)?.checked_rem(*period)?;
                let ahead = period.checked_sub(beyond)?.checked_rem(*period)?;
                t.checked_add(ahead)
            }
            Recurrence::Cron(rule) => rule.first_at_or_after(t),
        };
        fire.filter(|fire| *fire <= MAX_EXACT)
    }

    /// The first fire time after `t`. Limits and cost are those of
    /// [`first_at_or_after`](Self::first_at_or_after).
    pub fn next_after(&self, t: Millis) -> Option<Millis> {
        self.first_at_or_after(t.checked_add(1)?)
    }

    /// The last fire time at or before `t`; `None` if it would be before
    /// `not_before`.
    ///
    /// The cost is that of [`first_at_or_after`](Self::first_at_or_after),
    /// however many fire times lie between the two.
    pub fn last_at_or_before(&self, t: Millis, not_before: Millis) -> Option<Millis> {
        let t = t.min(MAX_EXACT);
        let fire = match self {
            Recurrence::Every { period, start, .. } => {
                let beyond = t.checked_sub(*start)?.checked_rem(*period)?;
                t.checked_sub(beyond)
            }
            Recurrence::Cron(rule) => rule.last_at_or_before(t),
        };
        fire.filter(|fire| *fire >= not_before)
    }

    /// The rule as a client writes it: `EVERY 60000`, `CRON 0 3 * * * TZ
    /// Europe/Berlin`.
    pub fn definition(&self) -> String {
        match self {
            Recurrence::Every {
                period,
                start,
                start_given: true,
            } => format!("EVERY {period} START {start}"),
            Recurrence::Every { period, .. } => format!("EVERY {period}"),
            Recurrence::Cron(rule) => match rule.zone() {
                Some(zone) => format!("CRON {} TZ {zone}", rule.expr()),
                None => format!("CRON {}", rule.expr()),
            },
        }
    }
}
