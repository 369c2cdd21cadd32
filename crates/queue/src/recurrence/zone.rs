//! Local time and Unix time.
//!
//! Every local time is given one instant here: the first of its two where the
//! clocks went back over it, and where they went forward over it the moment
//! they did. So later local times never have earlier instants, and both
//! directions can be searched by bisection.

use chrono::offset::{MappedLocalTime, Offset};
use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::{GapInfo, Tz};

/// Further from its own Unix time than any clock has ever been moved: across
/// the date line, a day was skipped or had twice.
const REACH: TimeDelta = TimeDelta::days(2);

/// The Unix time in seconds that the local time `local` has in `zone`.
pub fn instant(zone: Tz, local: NaiveDateTime) -> Option<i64> {
    let time = match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(time) | MappedLocalTime::Ambiguous(time, _) => time,
        MappedLocalTime::None => GapInfo::new(&local, &zone)?.end?,
    };
    Some(time.timestamp())
}

/// The first local time, on a full second, whose instant is at or after
/// `second` (Unix time).
pub fn first_local(zone: Tz, second: i64) -> Option<NaiveDateTime> {
    let utc = DateTime::from_timestamp(second, 0)?.naive_utc();
    if zone == Tz::UTC {
        return Some(utc);
    }
    let offset = zone.offset_from_utc_datetime(&utc).fix();
    let local = utc.checked_add_offset(offset)?;
    let before = local.checked_sub_signed(TimeDelta::seconds(1))?;
    // True but for the hours around a change of the clocks.
    if instant(zone, local)? == second && instant(zone, before)? < second {
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
        if instant(zone, middle)? < second {
            early = middle;
        } else {
            late = middle;
        }
    }
}

/// The last local time, on a full second, whose instant is at or before
/// `second` (Unix time).
pub fn last_local(zone: Tz, second: i64) -> Option<NaiveDateTime> {
    first_local(zone, second.checked_add(1)?)?.checked_sub_signed(TimeDelta::seconds(1))
}
