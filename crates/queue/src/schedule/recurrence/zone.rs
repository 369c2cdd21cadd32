//! Converts local time to Unix time and back.
//!
//! Here each local time has one instant for each [`Turn`]. A local time that
//! comes twice because the clocks went back has the first or the last of its two
//! instants, and one that was skipped because they went forward has the instant
//! of that change. So within one turn a later local time never has an earlier
//! instant, and both directions can be searched by bisection.

use chrono::offset::{MappedLocalTime, Offset};
use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::{GapInfo, Tz};

/// No local time has ever differed from UTC by this much. A zone that moved across the
/// date line skipped a day or had one twice.
const REACH: TimeDelta = TimeDelta::days(2);

/// The instant that is meant by a local time that comes twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    First,
    Last,
}

/// The instant of the local time `local` in `zone`, in Unix seconds.
pub fn instant(zone: Tz, turn: Turn, local: NaiveDateTime) -> Option<i64> {
    let time = match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(time) => time,
        MappedLocalTime::Ambiguous(first, _) if turn == Turn::First => first,
        MappedLocalTime::Ambiguous(_, last) => last,
        MappedLocalTime::None => GapInfo::new(&local, &zone)?.end?,
    };
    Some(time.timestamp())
}

/// The gap in which the clocks of `zone` skipped `local`; `None` if they show it.
pub fn gap(zone: Tz, local: NaiveDateTime) -> Option<GapInfo> {
    GapInfo::new(&local, &zone)
}

/// The first local time, in full seconds, whose instant is at or after
/// `second`, in Unix seconds.
pub fn first_local(zone: Tz, turn: Turn, second: i64) -> Option<NaiveDateTime> {
    let utc = DateTime::from_timestamp(second, 0)?.naive_utc();
    if zone == Tz::UTC {
        return Some(utc);
    }
    let offset = zone.offset_from_utc_datetime(&utc).fix();
    let local = utc.checked_add_offset(offset)?;
    let before = local.checked_sub_signed(TimeDelta::seconds(1))?;
    // This holds except in the hours around a change of the clocks.
    if instant(zone, turn, local)? == second && instant(zone, turn, before)? < second {
        return Some(local);
    }
    let mut early = local.checked_sub_signed(REACH)?;
    let mut late = local.checked_add_signed(REACH)?;
    loop {
        let seconds = late.signed_duration_since(early).num_seconds();
        if seconds <= 1 {
            return Some(late);
        }
        let middle = early.checked_add_signed(TimeDelta::seconds(seconds / 2))?;
        if instant(zone, turn, middle)? < second {
            early = middle;
        } else {
            late = middle;
        }
    }
}

/// The last local time, in full seconds, whose instant is at or before
/// `second`, in Unix seconds.
pub fn last_local(zone: Tz, turn: Turn, second: i64) -> Option<NaiveDateTime> {
    first_local(zone, turn, second.checked_add(1)?)?.checked_sub_signed(TimeDelta::seconds(1))
}
