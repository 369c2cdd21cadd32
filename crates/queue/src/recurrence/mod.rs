//! When a schedule fires: every so many milliseconds, or by a cron rule.
//!
//! A [`Recurrence`] is a set of points of time and nothing else. Whether and
//! when the server acts on them is not known here, and the clock is an
//! argument.

mod cron;
#[cfg(test)]
mod dst;
mod error;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
mod zone;

pub use cron::CronRule;
pub use error::RecurrenceError;

use super::{Millis, MAX_EXACT};

/// The fire times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recurrence {
    /// At `start`, and every `period` from there on.
    Every {
        /// 1 to 2^53-1 ms.
        period: Millis,
        /// The first fire time: 0 to 2^53-1, Unix ms.
        start: Millis,
        /// Whether the client named the start; it is part of the definition
        /// then.
        start_given: bool,
    },
    /// By a cron expression in a time zone.
    Cron(CronRule),
}

impl Recurrence {
    /// Fires at `start` + k x `period`; without a start at `now` + `period`
    /// first.
    ///
    /// Errors: a period of 0, or a time beyond 2^53-1 ms.
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
    /// UTC. The rules are those of [`CronRule`].
    ///
    /// Errors: an expression or a zone that cannot be read. One that can but
    /// never fires (30 February) is none; its fire times are all `None`.
    pub fn cron(expr: &str, zone: Option<&str>) -> Result<Recurrence, RecurrenceError> {
        CronRule::parse(expr, zone).map(Recurrence::Cron)
    }

    /// The first fire time at or after `t`; `None` when there is none up to
    /// 2^53-1 ms, or for a cron rule up to the year 9999.
    ///
    /// Cost: O(1) for `Every`; for a cron rule some hundred ns, more where it
    /// fires once in years (4 us for 29 February at worst).
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

    /// The first fire time after `t`. Limits and cost as
    /// [`first_at_or_after`](Self::first_at_or_after).
    pub fn next_after(&self, t: Millis) -> Option<Millis> {
        self.first_at_or_after(t.checked_add(1)?)
    }

    /// The last fire time at or before `t` that is not before `not_before`.
    ///
    /// Cost as [`first_at_or_after`](Self::first_at_or_after), however many
    /// fire times lie between the two.
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

    /// The rule as a client writes it: `EVERY 60000`,
    /// `CRON 0 3 * * * TZ Europe/Berlin`.
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
