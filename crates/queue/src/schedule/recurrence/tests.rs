use chrono::DateTime;

use super::*;

pub fn utc(text: &str) -> Millis {
    let time = DateTime::parse_from_rfc3339(text).unwrap();
    u64::try_from(time.timestamp_millis()).unwrap()
}

pub fn show(t: Millis) -> String {
    let time = DateTime::from_timestamp_millis(i64::try_from(t).unwrap()).unwrap();
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn cron(expr: &str, zone: &str) -> Recurrence {
    Recurrence::cron(expr, Some(zone)).unwrap()
}

/// The fire times of a rule from `from` up to but not including `to`. They are
/// found forward, and checked to be the same backward.
pub fn fires(rule: &Recurrence, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (utc(from), utc(to));
    let mut forward = Vec::new();
    let mut next = rule.first_at_or_after(from);
    while let Some(t) = next.filter(|t| *t < to) {
        forward.push(show(t));
        next = rule.next_after(t);
    }
    let mut backward = Vec::new();
    let mut last = rule.last_at_or_before(to - 1, from);
    while let Some(t) = last {
        backward.push(show(t));
        last = rule.last_at_or_before(t - 1, from);
    }
    backward.reverse();
    assert_eq!(forward, backward);
    forward
}

#[test]
fn every_fires_at_start_plus_periods() {
    let rule = Recurrence::every(100, Some(1000), 7).unwrap();
    assert_eq!(rule.first_at_or_after(0), Some(1000));
    assert_eq!(rule.first_at_or_after(1000), Some(1000));
    assert_eq!(rule.next_after(1000), Some(1100));
    assert_eq!(rule.first_at_or_after(1001), Some(1100));
    assert_eq!(rule.last_at_or_before(999, 0), None);
    assert_eq!(rule.last_at_or_before(1299, 0), Some(1200));
    assert_eq!(rule.last_at_or_before(1299, 1200), Some(1200));
    assert_eq!(rule.last_at_or_before(1299, 1201), None);

    let rule = Recurrence::every(60_000, None, 7).unwrap();
    assert_eq!(rule.first_at_or_after(7), Some(60_007));
}

#[test]
fn every_refuses_values_out_of_range_and_survives_extreme_times() {
    let every = Recurrence::every;
    assert_eq!(every(0, None, 0), Err(RecurrenceError::Period));
    assert_eq!(every(MAX_EXACT + 1, None, 0), Err(RecurrenceError::Period));
    assert_eq!(
        every(1, Some(MAX_EXACT + 1), 0),
        Err(RecurrenceError::Start)
    );
    assert_eq!(every(1, None, MAX_EXACT), Err(RecurrenceError::Start));
    assert_eq!(every(1, None, u64::MAX), Err(RecurrenceError::Start));

    let rule = every(MAX_EXACT, Some(1), 0).unwrap();
    assert_eq!(rule.first_at_or_after(2), None);
    let rule = every(1, Some(0), 0).unwrap();
    assert_eq!(rule.first_at_or_after(MAX_EXACT), Some(MAX_EXACT));
    assert_eq!(rule.next_after(MAX_EXACT), None);
    assert_eq!(rule.next_after(u64::MAX), None);
    assert_eq!(rule.last_at_or_before(u64::MAX, 0), Some(MAX_EXACT));
    // No constructor makes this rule, but a damaged snapshot may hold it.
    let broken = Recurrence::Every {
        period: 0,
        start: 5,
        start_given: false,
    };
    assert_eq!(broken.next_after(9), None);
    assert_eq!(broken.last_at_or_before(9, 0), None);
}

#[test]
fn definitions_are_shown_as_they_were_given() {
    let every = |start| Recurrence::every(60_000, start, 9).unwrap().definition();
    assert_eq!(every(None), "EVERY 60000");
    assert_eq!(every(Some(5)), "EVERY 60000 START 5");
    assert_eq!(
        cron("0 3 * * *", "Europe/Berlin").definition(),
        "CRON 0 3 * * * TZ Europe/Berlin"
    );
    let daily = Recurrence::cron("@daily", None).unwrap();
    assert_eq!(daily.definition(), "CRON @daily");
    let Recurrence::Cron(rule) = daily else {
        panic!("no cron rule");
    };
    assert_eq!((rule.expr(), rule.zone()), ("@daily", None));
    assert_eq!(CronRule::parse(rule.expr(), rule.zone()), Ok(rule));
}

#[test]
fn a_rule_for_29_february_skips_years_that_are_not_leap_years() {
    let rule = cron("0 12 29 2 *", "UTC");
    assert_eq!(
        fires(&rule, "2094-01-01T00:00:00Z", "2109-01-01T00:00:00Z"),
        [
            "2096-02-29T12:00:00Z",
            "2104-02-29T12:00:00Z",
            "2108-02-29T12:00:00Z"
        ]
    );
    assert_eq!(
        rule.next_after(utc("2096-02-29T12:00:00Z")).map(show),
        Some("2104-02-29T12:00:00Z".to_owned())
    );
}

#[test]
fn a_rule_that_never_fires_has_no_fire_times() {
    for expr in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 30-31 FEB ?"] {
        let rule = cron(expr, "Europe/Berlin");
        for t in [0, utc("2026-01-01T00:00:00Z"), MAX_EXACT, u64::MAX] {
            assert_eq!(rule.first_at_or_after(t), None);
            assert_eq!(rule.last_at_or_before(t, 0), None);
        }
    }
    // The day of the month never comes, but the day of the week does.
    let rule = cron("0 0 30 2 MON", "UTC");
    assert_eq!(
        rule.first_at_or_after(utc("2026-01-01T00:00:00Z"))
            .map(show),
        Some("2026-02-02T00:00:00Z".to_owned())
    );
}

#[test]
fn fire_times_end_in_1970_and_9999() {
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Pacific/Kiritimati",
    ] {
        let rule = cron("* * * * *", zone);
        assert_eq!(rule.first_at_or_after(0), Some(0), "{zone}");
        assert_eq!(rule.last_at_or_before(0, 0), Some(0), "{zone}");
        let last = utc("9999-12-31T23:59:00Z");
        assert_eq!(rule.first_at_or_after(last), Some(last), "{zone}");
        for t in [last, MAX_EXACT, u64::MAX] {
            assert_eq!(rule.next_after(t), None, "{zone}");
            assert_eq!(rule.last_at_or_before(t, 0), Some(last), "{zone}");
        }
        let rule = cron("0 0 1 1 *", zone);
        assert!(rule
            .last_at_or_before(86_399_999 / 2, 0)
            .is_none_or(|t| t < 86_400_000));
    }
}

#[test]
fn the_last_fire_time_of_a_whole_year_is_found_without_a_walk() {
    let rule = cron("* * * * * *", "Europe/Berlin");
    let (from, to) = (utc("2025-01-01T00:00:00Z"), utc("2026-01-01T00:00:00Z"));
    for _ in 0..1000 {
        assert_eq!(rule.last_at_or_before(to + 999, from), Some(to));
    }
    assert_eq!(rule.last_at_or_before(to + 999, to + 1), None);
}

#[test]
fn errors_name_what_cannot_be_parsed() {
    let error = |expr: &str| match Recurrence::cron(expr, None) {
        Ok(rule) => panic!("{expr:?} was taken: {rule:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        error("* * * *"),
        "cron expression has 4 fields; it takes five, or six with seconds first"
    );
    assert_eq!(
        error("@fortnightly"),
        "unknown cron expression '@fortnightly'"
    );
    assert_eq!(
        error("0 JAN * * *"),
        "cron field hour 'JAN': 'JAN' is no value of it"
    );
    for (expr, field) in [
        ("60 * * * *", "minute '60'"),
        ("60 * * * * *", "second '60'"),
        ("* 24 * * *", "hour '24'"),
        ("* * 0 * *", "day-of-month '0'"),
        ("* * 32 * *", "day-of-month '32'"),
        ("* * * 13 *", "month '13'"),
        ("* * * * 8", "day-of-week '8'"),
        ("*/0 * * * *", "minute '*/0'"),
        ("*/99999 * * * *", "minute '*/99999'"),
        ("5/10 * * * *", "minute '5/10'"),
        ("30-10 * * * *", "minute '30-10'"),
        ("1-2-3 * * * *", "minute '1-2-3'"),
        ("1/2/3 * * * *", "minute '1/2/3'"),
        ("1,,2 * * * *", "minute '1,,2'"),
        (", * * * *", "minute ','"),
        ("-5 * * * *", "minute '-5'"),
        ("? * * * *", "minute '?'"),
        ("+5 * * * *", "minute '+5'"),
        ("* * * * +1", "day-of-week '+1'"),
        ("* * L * *", "day-of-month 'L'"),
        ("* * 15W * *", "day-of-month '15W'"),
        ("* * * * 1#2", "day-of-week '1#2'"),
        ("* * * JANFEB *", "month 'JANFEB'"),
        ("* * * 1JAN *", "month '1JAN'"),
        ("* * * MON *", "month 'MON'"),
        ("* * * * JAN", "day-of-week 'JAN'"),
        ("every day at 3 pm", "minute 'every'"),
    ] {
        let text = error(expr);
        assert!(text.starts_with(&format!("cron field {field}: ")), "{text}");
    }
    for expr in ["", " ", "* * * * * * *", "@daily @daily", "@"] {
        error(expr);
    }
    for expr in [
        "* *\n* * *",
        "\u{661} * * * *",
        "*\0* * * *",
        &"1,".repeat(600),
    ] {
        assert_eq!(
            error(expr),
            "cron expression is not plain text of at most 1024 bytes"
        );
    }
    for zone in ["", "Mars/Olympus", "europe/berlin", "Europe/Berlin\r\n"] {
        assert!(Recurrence::cron("@daily", Some(zone)).is_err(), "{zone:?}");
    }
    assert_eq!(
        Recurrence::cron("@daily", Some("X\r\n"))
            .unwrap_err()
            .to_string(),
        r"unknown time zone 'X\r\n'"
    );
}
