//! Cron rules: parsing an expression and finding the fire times next to a given
//! time.

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};
use croner::CronComponent;

use super::steps::{check_steps, FIELDS};
use super::zone::{self, Turn};
use super::RecurrenceError;
use crate::quote::quote;
use crate::Millis;

/// The longest cron expression, in bytes. It is longer than one that lists
/// every value of every field.
pub const MAX_EXPR: usize = 1024;

/// The last second in which a rule can fire, in Unix seconds: the end of the
/// year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// The most years between two days of a rule: those between two leap days
/// around a year like 2100, which is not a leap year.
const MAX_GAP_YEARS: i32 = 8;

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A cron expression in a time zone: the set of local times that match it.
///
/// An expression has five fields (minute, hour, day of month, month, day of
/// week), or six with seconds first. A field is `*`, `?` (days only), a number,
/// a name (`JAN`, `MON`; any case), a range `a-b`, a step `*/n` or `a-b/n`, or
/// a list of these with commas. Sunday is 0 and 7. If neither day of month nor
/// day of week is `*`, a day has to match only one of them. An expression can
/// also be `@yearly` (`@annually`), `@monthly`, `@weekly`, `@daily`
/// (`@midnight`) or `@hourly`.
///
/// The fire times around a change of the zone's clocks depend on the rule, as it does in
/// the cron of Debian. If minute and hour are numbers (also lists or ranges of them),
/// each matching local time fires exactly once. One that is skipped when the clocks go
/// forward fires at the moment of the change, together with all others that are skipped
/// and with the local time that the clocks jump to. One that comes twice when they go
/// back fires the first time.
///
/// If the minute or the hour has a `*` or a step, the rule is one of intervals.
/// It fires whenever the clocks show a matching time: both times if that comes
/// twice, and not at all if it is skipped. So `*/15 * * * *` goes on every 15
/// minutes of real time.
///
/// Summer time is known up to the year 2099. After it a zone keeps its last
/// offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronRule {
    expr: String,
    zone: Option<Tz>,
    // One bit for each value; bit 0 is the value 0.
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    days: u64,
    weekdays: u64,
    /// Whether a day has to match only one of `days` and `weekdays`.
    either_day: bool,
    /// Whether the rule is one of intervals, which follows real time.
    intervals: bool,
}

impl CronRule {
    /// Parses an expression and the name of an IANA time zone in its exact
    /// case; `None` is UTC.
    ///
    /// Errors: the expression or the zone cannot be parsed, or a step is too great
    /// for its field. They name the bad field or the zone.
    pub fn parse(expr: &str, zone: Option<&str>) -> Result<CronRule, RecurrenceError> {
        let plain = |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic();
        if expr.len() > MAX_EXPR || !expr.bytes().all(plain) {
            return Err(RecurrenceError::Text);
        }
        let zone = match zone {
            None => None,
            Some(name) => match name.parse::<Tz>() {
                Ok(zone) => Some(zone),
                Err(_) => return Err(RecurrenceError::Zone(quote(name.as_bytes()))),
            },
        };
        let long = match expr.trim() {
            name if name.starts_with('@') => nickname(name)?,
            fields => fields,
        };
        let fields: Vec<&str> = long.split_ascii_whitespace().collect();
        let names = match fields.len() {
            5 => FIELDS.get(1..),
            6 => FIELDS.get(..),
            _ => None,
        };
        let Some(names) = names else {
            return Err(RecurrenceError::Fields(fields.len()));
        };
        let mut intervals = false;
        for (name, field) in names.iter().zip(&fields) {
            check_field(name, field)?;
            intervals |= matches!(*name, "minute" | "hour") && field.contains(['*', '/']);
        }
        check_steps(&fields)?;

        let parser = CronParser::builder()
            .seconds(Seconds::Optional)
            .year(Year::Disallowed)
            .build();
        let parsed = parser.parse(&long.to_ascii_uppercase());
        // Each field has been parsed separately, so parsing all of them cannot fail.
        let pattern = parsed.map_err(|_| RecurrenceError::Text)?.pattern;
        let either_day = !pattern.is_dom_wildcard() && !pattern.is_dow_wildcard();
        Ok(CronRule {
            expr: expr.to_owned(),
            zone,
            seconds: bits(&pattern.seconds),
            minutes: bits(&pattern.minutes),
            hours: bits(&pattern.hours),
            months: bits(&pattern.months),
            days: bits(&pattern.days),
            weekdays: bits(&pattern.days_of_week),
            either_day,
            intervals,
        })
    }

    /// The expression as the client wrote it.
    pub fn expr(&self) -> &str {
        &self.expr
    }

    /// The name of the time zone; `None` if the client gave none.
    pub fn zone(&self) -> Option<&'static str> {
        self.zone.map(Tz::name)
    }

    /// The first fire time at or after `t`, both in Unix ms.
    pub(super) fn first_at_or_after(&self, t: Millis) -> Option<Millis> {
        let second = i64::try_from(t.div_ceil(1000)).ok()?;
        if second > LAST_SECOND {
            return None;
        }
        let fires = self
            .turns()
            .iter()
            .filter_map(|turn| self.first(*turn, second));
        let fire = fires.min()?;
        millis(fire).filter(|_| fire <= LAST_SECOND)
    }

    /// The last fire time at or before `t`, both in Unix ms.
    pub(super) fn last_at_or_before(&self, t: Millis) -> Option<Millis> {
        let second = i64::try_from(t / 1000).ok()?.min(LAST_SECOND);
        let fires = self
            .turns()
            .iter()
            .filter_map(|turn| self.last(*turn, second));
        millis(fires.max()?)
    }

    /// The times at which a local time that comes twice fires. A zone whose
    /// clocks never change needs only one of them.
    fn turns(&self) -> &'static [Turn] {
        match self.zone {
            Some(zone) if self.intervals && zone != Tz::UTC => &[Turn::First, Turn::Last],
            _ => &[Turn::First],
        }
    }

    /// The first second at or after `second` in which a matching local time
    /// comes, by its first or its last time.
    fn first(&self, turn: Turn, second: i64) -> Option<i64> {
        let zone = self.zone.unwrap_or(Tz::UTC);
        let mut local = self.first_match(zone::first_local(zone, turn, second)?)?;
        // The clocks never show a time in a gap, so a rule of intervals continues with
        // the time that they jump to.
        while let Some(gap) = zone::gap(zone, local).filter(|_| self.intervals) {
            local = self.first_match(gap.end?.naive_local())?;
        }
        zone::instant(zone, turn, local)
    }

    /// Like [`first`](Self::first), but the last second at or before `second`.
    fn last(&self, turn: Turn, second: i64) -> Option<i64> {
        let zone = self.zone.unwrap_or(Tz::UTC);
        let mut local = self.last_match(zone::last_local(zone, turn, second)?)?;
        while let Some(gap) = zone::gap(zone, local).filter(|_| self.intervals) {
            let (start, _) = gap.begin?;
            local = self.last_match(start.checked_sub_signed(TimeDelta::seconds(1))?)?;
        }
        zone::instant(zone, turn, local)
    }

    /// The first local time at or after `from` that matches.
    fn first_match(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        if self.matches_day(from.date()) {
            if let Some(time) = self.first_time(from.time()) {
                return Some(from.date().and_time(time));
            }
        }
        let time = self.first_time(NaiveTime::MIN)?;
        let last_year = from.year().checked_add(MAX_GAP_YEARS)?;
        let mut day = from.date().succ_opt()?;
        while day.year() <= last_year {
            if !has(self.months, day.month()) {
                day = first_of_next_month(day)?;
            } else if self.matches_day(day) {
                return Some(day.and_time(time));
            } else {
                day = day.succ_opt()?;
            }
        }
        None
    }

    /// The last local time at or before `from` that matches.
    fn last_match(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        if self.matches_day(from.date()) {
            if let Some(time) = self.last_time(from.time()) {
                return Some(from.date().and_time(time));
            }
        }
        let time = self.last_time(NaiveTime::from_hms_opt(23, 59, 59)?)?;
        let first_year = from.year().checked_sub(MAX_GAP_YEARS)?;
        let mut day = from.date().pred_opt()?;
        while day.year() >= first_year {
            if !has(self.months, day.month()) {
                day = day.checked_sub_days(Days::new(u64::from(day.day())))?;
            } else if self.matches_day(day) {
                return Some(day.and_time(time));
            } else {
                day = day.pred_opt()?;
            }
        }
        None
    }

    fn matches_day(&self, day: NaiveDate) -> bool {
        let in_month = has(self.days, day.day());
        let in_week = has(self.weekdays, day.weekday().num_days_from_sunday());
        has(self.months, day.month())
            && if self.either_day {
                in_month || in_week
            } else {
                in_month && in_week
            }
    }

    /// The first time of day at or after `from` that matches.
    fn first_time(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute) = (from.hour(), from.minute());
        if has(self.hours, hour) {
            if has(self.minutes, minute) {
                if let Some(second) = first_bit(self.seconds, from.second()) {
                    return NaiveTime::from_hms_opt(hour, minute, second);
                }
            }
            if let Some(minute) = first_bit(self.minutes, minute.saturating_add(1)) {
                return NaiveTime::from_hms_opt(hour, minute, first_bit(self.seconds, 0)?);
            }
        }
        NaiveTime::from_hms_opt(
            first_bit(self.hours, hour.saturating_add(1))?,
            first_bit(self.minutes, 0)?,
            first_bit(self.seconds, 0)?,
        )
    }

    /// The last time of day at or before `from` that matches.
    fn last_time(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute) = (from.hour(), from.minute());
        if has(self.hours, hour) {
            if has(self.minutes, minute) {
                if let Some(second) = last_bit(self.seconds, from.second()) {
                    return NaiveTime::from_hms_opt(hour, minute, second);
                }
            }
            let earlier = minute.checked_sub(1);
            if let Some(minute) = earlier.and_then(|minute| last_bit(self.minutes, minute)) {
                return NaiveTime::from_hms_opt(hour, minute, last_bit(self.seconds, 59)?);
            }
        }
        NaiveTime::from_hms_opt(
            last_bit(self.hours, hour.checked_sub(1)?)?,
            last_bit(self.minutes, 59)?,
            last_bit(self.seconds, 59)?,
        )
    }
}

/// The expression for which a nickname is short.
fn nickname(name: &str) -> Result<&'static str, RecurrenceError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return Err(RecurrenceError::Nickname(quote(name.as_bytes()))),
    })
}

/// Checks the field `name` by the rules of croner and some more. Croner accepts
/// names in any field and empty items in lists, and it has modifiers (`L`, `W`,
/// `#`, `+`) that are not supported here.
fn check_field(name: &'static str, field: &str) -> Result<(), RecurrenceError> {
    let bad = |what: String| RecurrenceError::Field {
        name,
        text: quote(field.as_bytes()),
        what,
    };
    let field = field.to_ascii_uppercase();
    for item in field.split([',', '-', '/']) {
        if item.is_empty() {
            return Err(bad("a value is missing".to_owned()));
        }
        let known = match name {
            _ if item == "*" || item.bytes().all(|byte| byte.is_ascii_digit()) => true,
            "month" => MONTHS.contains(&item),
            "day-of-week" => item == "?" || WEEKDAYS.contains(&item),
            "day-of-month" => item == "?",
            _ => false,
        };
        if !known {
            let what = format!("{} is no value of it", quote(item.as_bytes()));
            return Err(bad(what));
        }
    }
    // All other fields are `*`, so an error is about this field.
    let whole: Vec<&str> = FIELDS
        .iter()
        .map(|other| if *other == name { field.as_str() } else { "*" })
        .collect();
    match CronParser::new().parse(&whole.join(" ")) {
        Ok(_) => Ok(()),
        Err(croner::errors::CronError::ComponentError(what)) => Err(bad(what)),
        Err(error) => Err(bad(error.to_string())),
    }
}

/// The values of a field, one bit each.
fn bits(field: &CronComponent) -> u64 {
    let values = field.values();
    values
        .iter()
        .filter_map(|value| 1_u64.checked_shl(u32::from(*value)))
        .fold(0, |bits, bit| bits | bit)
}

fn has(bits: u64, value: u32) -> bool {
    bits.checked_shr(value).unwrap_or(0) & 1 == 1
}

/// The smallest value in `bits` that is at least `from`.
fn first_bit(bits: u64, from: u32) -> Option<u32> {
    let rest = bits.checked_shr(from)?;
    (rest != 0).then(|| rest.trailing_zeros().saturating_add(from))
}

/// The largest value in `bits` that is at most `to`, which is below 64.
fn last_bit(bits: u64, to: u32) -> Option<u32> {
    let rest = bits & (u64::MAX.checked_shr(63_u32.saturating_sub(to))?);
    rest.checked_ilog2()
}

fn first_of_next_month(day: NaiveDate) -> Option<NaiveDate> {
    let (year, month) = match day.month() {
        12 => (day.year().checked_add(1)?, 1),
        month => (day.year(), month.saturating_add(1)),
    };
    NaiveDate::from_ymd_opt(year, month, 1)
}

/// Converts Unix seconds to Unix ms; `None` before 1970.
fn millis(second: i64) -> Option<Millis> {
    u64::try_from(second).ok()?.checked_mul(1000)
}
