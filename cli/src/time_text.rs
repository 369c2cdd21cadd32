//! Formats and parses times for people. The server's times are milliseconds.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

use crate::bounds::MAX_EXACT;

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

/// Formats a span exactly, with the units that it has: 10m, 1h30m, 1d, 1s500ms.
pub fn exact(ms: Millis) -> String {
    let mut rest = ms;
    let mut text = String::new();
    for (unit, word) in [
        (DAY, "d"),
        (HOUR, "h"),
        (MINUTE, "m"),
        (SECOND, "s"),
        (1, "ms"),
    ] {
        if rest >= unit {
            text.push_str(&format!("{}{word}", rest / unit));
            rest %= unit;
        }
    }
    match text.is_empty() {
        true => "0".to_owned(),
        false => text,
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
    format(at, "%F %T%.3fZ")
}

/// Formats the time of day in UTC: 11:08:25.679.
pub fn clock(at: Millis) -> String {
    format(at, "%T%.3f")
}

/// Formats a time in UTC. Times beyond the calendar, which a hostile queue may have, stay a number.
fn format(at: Millis, format: &str) -> String {
    let time = i64::try_from(at)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    time.map_or(at.to_string(), |time| time.format(format).to_string())
}

/// Returns the time of this machine in Unix milliseconds. It is never compared with
/// the times of a queue, which are those of the server.
pub fn here() -> Millis {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as Millis)
}

/// Parses a span: 500ms, 10s, 5m, 2h, 1d, 1h30m. Only 0 needs no unit, because a number alone
/// would be seconds to one reader and milliseconds to the next.
pub fn parse_span(text: &str) -> Result<Millis, String> {
    const EXAMPLES: &str = "write a time as 5ms, 5s, 10m, 2h or 1d";
    if text == "0" {
        return Ok(0);
    }
    if is_number(text) {
        return Err(format!(
            "{text} has no unit, so {text}s or {text}ms: {EXAMPLES}"
        ));
    }
    let mut rest = text;
    let mut sum: Millis = 0;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let unit = after.find(|c: char| c.is_ascii_digit());
        let (unit, after) = after.split_at(unit.unwrap_or(after.len()));
        let unit = match unit {
            "ms" => 1,
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            _ => return Err(EXAMPLES.to_owned()),
        };
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        let part = part.and_then(|part| sum.checked_add(part));
        sum = part
            .filter(|sum| *sum <= MAX_EXACT.unsigned_abs())
            .ok_or_else(|| EXAMPLES.to_owned())?;
        rest = after;
        if rest.is_empty() {
            return Ok(sum);
        }
    }
}

/// Parses a span of at least 1 ms.
pub fn parse_interval(text: &str) -> Result<Millis, String> {
    match parse_span(text)? {
        0 => Err("at least 1ms".to_owned()),
        span => Ok(span),
    }
}

/// Reads Unix milliseconds that the server keeps exactly.
fn exactly(text: &str) -> Option<Millis> {
    let most = MAX_EXACT.unsigned_abs();
    text.parse().ok().filter(|at| *at <= most)
}

/// Returns whether a text is a number without a unit.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a moment, and returns it in Unix milliseconds: 2026-11-20, or with a time in
/// UTC 2026-11-20T12:00[:00[.000]]; a number of at least ten digits is Unix milliseconds;
/// 10s, 5m, 2h or 1d is that long ago by the clock of this machine.
pub fn parse_moment(text: &str) -> Result<Millis, String> {
    if is_number(text) && text.len() >= 10 {
        return exactly(text).ok_or_else(|| EXAMPLES.to_owned());
    }
    if let Some(at) = parse_stamp(text) {
        return Ok(at);
    }
    match parse_span(text) {
        Ok(span) if !is_number(text) => Ok(here().saturating_sub(span)),
        _ => Err(EXAMPLES.to_owned()),
    }
}

/// Parses a time of the calendar, or Unix milliseconds of at least ten digits.
pub fn parse_time(text: &str) -> Result<Millis, String> {
    let number = || exactly(text).filter(|_| is_number(text) && text.len() >= 10);
    let time = parse_stamp(text).or_else(number);
    time.ok_or("write a time as 2026-11-20T12:00 (UTC) or Unix milliseconds".to_owned())
}

const EXAMPLES: &str =
    "write a time as 2026-11-20T12:00 or Unix milliseconds, or 5ms, 5s, 2h for that long ago";

fn parse_stamp(text: &str) -> Option<Millis> {
    let text = text.strip_suffix('Z').unwrap_or(text).replace('T', " ");
    let day = |text: &str| Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.into());
    let time = |format| NaiveDateTime::parse_from_str(&text, format).ok();
    let time = time("%Y-%m-%d %H:%M:%S%.f")
        .or_else(|| time("%Y-%m-%d %H:%M"))
        .or_else(|| day(&text))?;
    Millis::try_from(time.and_utc().timestamp_millis()).ok()
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
        for (ms, text) in [
            (0, "0"),
            (600_000, "10m"),
            (90 * MINUTE, "1h30m"),
            (DAY, "1d"),
            (1500, "1s500ms"),
        ] {
            assert_eq!(exact(ms), text);
        }
        assert_eq!(parse_time("2026-11-20T11:08"), Ok(1_795_172_880_000));
        assert_eq!(parse_time("1795172880000"), Ok(1_795_172_880_000));
        assert!(parse_time("2h").is_err() && parse_time("").is_err() && parse_time("5").is_err());
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
        assert_eq!(clock(1_795_172_905_679), "11:08:25.679");
        assert_eq!(stamp((1 << 53) - 1), "9007199254740991");
        assert_eq!(stamp(Millis::MAX), "18446744073709551615");
    }

    #[test]
    fn spans_are_parsed() {
        assert_eq!(parse_span("0"), Ok(0));
        assert_eq!(parse_span("500ms"), Ok(500));
        assert_eq!(parse_span("10s"), Ok(10_000));
        assert_eq!(parse_span("2h"), Ok(2 * HOUR));
        assert_eq!(parse_span("1h30m"), Ok(90 * MINUTE));
        assert_eq!(parse_span("1s500ms"), Ok(1500));
        for bad in [
            "",
            "s",
            "-5s",
            "5 s",
            "5m10",
            "m5",
            "5w",
            "99999999999999999999",
            "9999999999999d",
        ] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
        assert!(parse_interval("0").is_err() && parse_interval("1ms") == Ok(1));
    }

    #[test]
    fn a_number_without_a_unit_is_no_time() {
        for (text, shown) in [("5", ["5s", "5ms"]), ("3000", ["3000s", "3000ms"])] {
            let why = parse_span(text).unwrap_err();
            assert!(shown.iter().all(|one| why.contains(one)), "{why}");
        }
    }

    #[test]
    fn moments_are_parsed() {
        for at in [0, 951_782_400_000, 1_709_251_199_999, 4_107_542_400_000] {
            assert_eq!(parse_moment(&stamp(at)), Ok(at));
        }
        assert_eq!(parse_moment("2026-11-20"), Ok(1_795_132_800_000));
        assert_eq!(parse_moment("2026-11-20T11:08"), Ok(1_795_172_880_000));
        assert_eq!(
            parse_moment("2026-11-20 11:08:01.25"),
            Ok(1_795_172_881_250)
        );
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
            "2026-11-20T",
            "2026-11-20T1",
            "2026-11-20 11:08 x",
        ] {
            assert!(parse_moment(bad).is_err(), "{bad}");
        }
    }
}
