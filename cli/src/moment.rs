//! Formats and parses times for people. The server's times are milliseconds.

/// Milliseconds of a span, or since the Unix epoch.
pub type Millis = u64;

const SECOND: Millis = 1000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;
const DAY: Millis = 24 * HOUR;

/// Formats a span in at most six columns: 850ms, 12.3s, 4m10s, 3h20m, 5d2h, 1234d.
pub fn span(ms: Millis) -> String {
    if ms < SECOND {
        format!("{ms}ms")
    } else if ms < MINUTE {
        format!("{}.{}s", ms / SECOND, ms % SECOND / 100)
    } else if ms < HOUR {
        format!("{}m{}s", ms / MINUTE, ms % MINUTE / SECOND)
    } else if ms < DAY {
        format!("{}h{}m", ms / HOUR, ms % HOUR / MINUTE)
    } else if ms < 100 * DAY {
        format!("{}d{}h", ms / DAY, ms % DAY / HOUR)
    } else {
        format!("{}d", ms / DAY)
    }
}

/// Formats how far `at` is from `now`: "in 3.2s", "5m10s ago", "now".
pub fn relative(at: Millis, now: Millis) -> String {
    if at > now {
        format!("in {}", span(at - now))
    } else if at < now {
        format!("{} ago", span(now - at))
    } else {
        "now".to_owned()
    }
}

/// Formats a time in UTC: 2026-11-20 11:08:25.679Z.
pub fn stamp(at: Millis) -> String {
    let (year, month, day) = date(at / DAY);
    format!("{year}-{month:02}-{day:02} {}Z", clock(at))
}

/// Formats the time of day in UTC: 11:08:25.679.
pub fn clock(at: Millis) -> String {
    let (hour, minute) = (at % DAY / HOUR, at % HOUR / MINUTE);
    let (second, ms) = (at % MINUTE / SECOND, at % SECOND);
    format!("{hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// Returns year, month and day of a number of days since 1970-01-01. This is Howard
/// Hinnant's `civil_from_days`, whose year begins in March so that the leap day is last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// Returns the time of this machine in Unix milliseconds. It is never compared with
/// the times of a queue, which are those of the server.
pub fn here() -> Millis {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as Millis)
}

/// Parses a span of at least 1 ms: 500ms, 10s, 5m, 2h, 1d, or a number of milliseconds.
pub fn parse_span(text: &str) -> Result<Millis, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "" | "ms" => 1,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        _ => return Err("write a time as 500ms, 10s, 5m, 2h or 1d".to_owned()),
    };
    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)) {
        Some(0) => Err("at least 1ms".to_owned()),
        Some(ms) if ms < 1 << 53 => Ok(ms),
        _ => Err("write a time as 500ms, 10s, 5m, 2h or 1d".to_owned()),
    }
}

/// Parses a moment, and returns it in Unix milliseconds: 2026-11-20, or with a time in
/// UTC 2026-11-20T12:00[:00[.000]]; a number of at least ten digits is Unix milliseconds;
/// 10s, 5m, 2h or 1d is so long ago by the clock of this machine.
pub fn parse_moment(text: &str) -> Result<Millis, String> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if digits && text.len() >= 10 {
        return text.parse().map_err(|_| EXAMPLES.to_owned());
    }
    if let Some(at) = parse_stamp(text) {
        return Ok(at);
    }
    match parse_span(text) {
        Ok(span) if !digits => Ok(here().saturating_sub(span)),
        _ => Err(EXAMPLES.to_owned()),
    }
}

const EXAMPLES: &str =
    "write a time as 2026-11-20T12:00, Unix milliseconds, or 2h for two hours ago";

fn parse_stamp(text: &str) -> Option<Millis> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1970..10_000).contains(&year) {
        return None;
    }
    // Of the days that have this year and month, the one of this number.
    let first = days(year, month.checked_sub(1).filter(|m| *m < 12)?);
    let at = first + day.checked_sub(1)?;
    if self::date(at) != (year, month, day) {
        return None;
    }
    let mut ms = at * DAY;
    if let Some(time) = time {
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut parts = time.split(':').map(|part| part.parse::<u64>().ok());
        let (hour, minute) = (parts.next()??, parts.next()??);
        let second = parts.next().unwrap_or(Some(0))?;
        let fraction: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        ms += hour * HOUR + minute * MINUTE + second * SECOND + fraction;
    }
    Some(ms)
}

/// Returns the number of days from 1970-01-01 to the first day of a month, which counts
/// from 0.
fn days(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let leap = leaps(year) > leaps(year - 1) && month > 1;
    let of_year = BEFORE.get(month as usize).copied().unwrap_or(0);
    365 * (year - 1970) + leaps(year - 1) - leaps(1969) + of_year + u64::from(leap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_their_units() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1000, "1.0s"),
            (59_999, "59.9s"),
            (60_000, "1m0s"),
            (3_599_999, "59m59s"),
            (3_600_000, "1h0m"),
            (DAY, "1d0h"),
            (400 * DAY, "400d"),
        ] {
            assert_eq!(span(ms), text);
        }
        assert_eq!(relative(2000, 500), "in 1.5s");
        assert_eq!(relative(500, 2000), "1.5s ago");
        assert_eq!(relative(5, 5), "now");
    }

    #[test]
    fn stamps_know_leap_years() {
        assert_eq!(stamp(0), "1970-01-01 00:00:00.000Z");
        assert_eq!(stamp(951_782_400_000), "2000-02-29 00:00:00.000Z");
        assert_eq!(stamp(1_709_251_199_999), "2024-02-29 23:59:59.999Z");
        assert_eq!(stamp(1_795_172_905_679), "2026-11-20 11:08:25.679Z");
        assert_eq!(stamp(4_107_542_400_000), "2100-03-01 00:00:00.000Z");
    }

    #[test]
    fn spans_are_parsed() {
        assert_eq!(parse_span("500"), Ok(500));
        assert_eq!(parse_span("10s"), Ok(10_000));
        assert_eq!(parse_span("2h"), Ok(2 * HOUR));
        for bad in [
            "",
            "s",
            "0",
            "-5s",
            "5 s",
            "5w",
            "99999999999999999999",
            "9999999999999d",
        ] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_are_parsed() {
        for at in [0, 951_782_400_000, 1_709_251_199_999, 4_107_542_400_000] {
            assert_eq!(parse_moment(&stamp(at)), Ok(at));
        }
        assert_eq!(parse_moment("2026-11-20"), Ok(1_795_132_800_000));
        assert_eq!(parse_moment("2026-11-20T11:08"), Ok(1_795_172_880_000));
        assert_eq!(parse_moment("1795172880000"), Ok(1_795_172_880_000));
        let hour = here() - parse_moment("1h").unwrap();
        assert!((HOUR..HOUR + MINUTE).contains(&hour));
        for bad in [
            "",
            "now",
            "500",
            "2026-02-29",
            "2026-13-01",
            "2026-01-01T24:00",
            "1969-01-01",
        ] {
            assert!(parse_moment(bad).is_err(), "{bad}");
        }
    }
}
