//! Tests cron rules when the clocks of a zone are changed.

use chrono::offset::Offset;
use chrono::{DateTime, TimeZone};

use super::tests::{cron, fires, show, utc};
use super::*;

#[test]
fn a_skipped_local_time_fires_once_when_the_clocks_go_forward() {
    let night = ("2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z");
    let berlin = |expr: &str| fires(&cron(expr, "Europe/Berlin"), night.0, night.1);
    assert_eq!(berlin("30 2 * * *"), ["2026-03-29T01:00:00Z"]);
    assert_eq!(berlin("0 2 * * *"), ["2026-03-29T01:00:00Z"]);
    assert_eq!(berlin("59 59 2 * * *"), ["2026-03-29T01:00:00Z"]);
    // The skipped time fires together with the time that the clocks jump to.
    assert_eq!(berlin("0 2,3 * * *"), ["2026-03-29T01:00:00Z"]);
    assert_eq!(
        berlin("0,15,30,45 1-3 * * *"),
        [
            "2026-03-29T00:00:00Z",
            "2026-03-29T00:15:00Z",
            "2026-03-29T00:30:00Z",
            "2026-03-29T00:45:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:15:00Z",
            "2026-03-29T01:30:00Z",
            "2026-03-29T01:45:00Z"
        ]
    );
    // On the next day the rule fires at its usual time again.
    let rule = cron("30 2 * * *", "Europe/Berlin");
    assert_eq!(
        rule.next_after(utc("2026-03-29T01:00:00Z")).map(show),
        Some("2026-03-30T00:30:00Z".to_owned())
    );
    // No rule fires between the skipped time and the change of the clocks.
    assert_eq!(
        rule.first_at_or_after(utc("2026-03-29T00:59:59Z"))
            .map(show),
        Some("2026-03-29T01:00:00Z".to_owned())
    );
    let new_york = cron("30 2 8 3 *", "America/New_York");
    assert_eq!(
        fires(&new_york, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"),
        ["2026-03-08T07:00:00Z"]
    );
    // Lord Howe moves its clocks by half an hour, from 02:00 to 02:30.
    let lord_howe = cron("15 2 * 10 *", "Australia/Lord_Howe");
    assert_eq!(
        fires(&lord_howe, "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z"),
        ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]
    );
    // Samoa moved across the date line and skipped 30 December 2011.
    let samoa = cron("0 0,6,12,18 30 12 *", "Pacific/Apia");
    assert_eq!(
        fires(&samoa, "2011-12-01T00:00:00Z", "2012-01-10T00:00:00Z"),
        ["2011-12-30T10:00:00Z"]
    );
}

#[test]
fn a_local_time_that_comes_twice_fires_the_first_time() {
    let night = ("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z");
    let berlin = |expr: &str| fires(&cron(expr, "Europe/Berlin"), night.0, night.1);
    assert_eq!(berlin("30 2 * * *"), ["2026-10-25T00:30:00Z"]);
    assert_eq!(
        berlin("0 2,3 * * *"),
        ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"]
    );
    // These times lie in the hour that comes twice.
    let rule = cron("30 2 * * *", "Europe/Berlin");
    for t in [
        "2026-10-25T00:30:01Z",
        "2026-10-25T01:15:00Z",
        "2026-10-25T01:30:00Z",
    ] {
        assert_eq!(
            rule.first_at_or_after(utc(t)).map(show),
            Some("2026-10-26T01:30:00Z".to_owned())
        );
        assert_eq!(
            rule.last_at_or_before(utc(t), 0).map(show),
            Some("2026-10-25T00:30:00Z".to_owned())
        );
    }
    let new_york = cron("30 1 1 11 *", "America/New_York");
    assert_eq!(
        fires(&new_york, "2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ["2026-11-01T05:30:00Z"]
    );
    // On Lord Howe 01:30 to 02:00 comes twice.
    let lord_howe = cron("0,15,30,45 1-2 5 4 *", "Australia/Lord_Howe");
    assert_eq!(
        fires(&lord_howe, "2026-04-01T00:00:00Z", "2026-04-10T00:00:00Z"),
        [
            "2026-04-04T14:00:00Z",
            "2026-04-04T14:15:00Z",
            "2026-04-04T14:30:00Z",
            "2026-04-04T14:45:00Z",
            "2026-04-04T15:30:00Z",
            "2026-04-04T15:45:00Z",
            "2026-04-04T16:00:00Z",
            "2026-04-04T16:15:00Z"
        ]
    );
}

#[test]
fn a_rule_of_every_minute_never_has_a_gap() {
    let count = |zone: &str, from: &str, to: &str| fires(&cron("* * * * *", zone), from, to).len();
    let spring = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
    let autumn = ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
    for zone in ["Europe/Berlin", "America/New_York", "UTC"] {
        assert_eq!(count(zone, spring.0, spring.1), 23 * 60);
        assert_eq!(count(zone, autumn.0, autumn.1), 25 * 60);
    }
}

#[test]
fn a_rule_of_every_fifteen_minutes_goes_on_through_the_repeated_hour() {
    let (from, to) = (utc("2026-11-01T04:00:00Z"), utc("2026-11-01T08:00:00Z"));
    let expected: Vec<String> = (from..to).step_by(15 * 60_000).map(show).collect();
    for expr in ["*/15 * * * *", "0 */15 * * * *", "0,15,30,45 * * * *"] {
        let rule = cron(expr, "America/New_York");
        assert_eq!(fires(&rule, &show(from), &show(to)), expected, "{expr}");
    }
}

#[test]
fn a_rule_of_every_hour_does_not_fire_for_the_skipped_hour() {
    for expr in ["30 * * * *", "0 30 * * * *"] {
        let rule = cron(expr, "America/New_York");
        assert_eq!(
            fires(&rule, "2026-03-08T06:00:00Z", "2026-03-08T08:00:00Z"),
            ["2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z"]
        );
    }
}

#[test]
fn a_rule_of_every_second_hour_fires_whenever_the_clocks_show_it() {
    let rule = cron("0 */2 * * *", "Europe/Berlin");
    // The clocks go from 02:00 to 03:00 in spring, so they do not show 02:00.
    assert_eq!(
        fires(&rule, "2026-03-28T23:00:00Z", "2026-03-29T04:00:00Z"),
        ["2026-03-28T23:00:00Z", "2026-03-29T02:00:00Z"]
    );
    // The clocks show 02:00 twice in autumn.
    assert_eq!(
        fires(&rule, "2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z"),
        [
            "2026-10-24T22:00:00Z",
            "2026-10-25T00:00:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T03:00:00Z"
        ]
    );
}

#[test]
fn a_rule_of_every_ten_minutes_goes_on_where_clocks_move_by_half_an_hour() {
    let rule = cron("*/10 * * * *", "Australia/Lord_Howe");
    for (from, to) in [
        ("2026-04-04T13:00:00Z", "2026-04-04T17:00:00Z"),
        ("2026-10-03T13:00:00Z", "2026-10-03T17:00:00Z"),
    ] {
        let expected: Vec<String> = (utc(from)..utc(to)).step_by(600_000).map(show).collect();
        assert_eq!(fires(&rule, from, to), expected);
    }
    // Samoa skipped a whole day, and no fire time with it.
    let samoa = cron("* * * * *", "Pacific/Apia");
    let night = ("2011-12-30T09:00:00Z", "2011-12-30T11:00:00Z");
    assert_eq!(fires(&samoa, night.0, night.1).len(), 2 * 60);
}

#[test]
fn a_later_local_time_never_has_an_earlier_instant() {
    // Bisection relies on this. The test covers the days around each change of
    // the clocks from 1990 to 2040.
    for zone in chrono_tz::TZ_VARIANTS {
        let offset = |t: i64| {
            let utc = DateTime::from_timestamp(t, 0).unwrap().naive_utc();
            i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
        };
        let (day, week) = (86_400, 7 * 86_400);
        for start in (20 * 52..70 * 52).map(|weeks| weeks * week) {
            if offset(start) == offset(start + week) {
                continue;
            }
            for turn in [zone::Turn::First, zone::Turn::Last] {
                let mut last = i64::MIN;
                for local in (start - day..start + week + day).step_by(1800) {
                    let local = DateTime::from_timestamp(local, 0).unwrap().naive_utc();
                    let t = zone::instant(zone, turn, local).unwrap();
                    assert!(t >= last, "{zone} {local} {turn:?}");
                    last = t;
                }
            }
        }
    }
}

#[test]
fn summer_time_is_known_up_to_2099() {
    let noon = cron("0 12 1 7 *", "Europe/Berlin");
    assert_eq!(
        fires(&noon, "2099-01-01T00:00:00Z", "2101-01-01T00:00:00Z"),
        ["2099-07-01T10:00:00Z", "2100-07-01T11:00:00Z"]
    );
}
