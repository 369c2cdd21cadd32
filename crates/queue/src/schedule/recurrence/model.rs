//! Compares random rules with a slow scan, and feeds the parser random text.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDateTime};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::tests::{cron, utc};
use super::*;

fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    let range = move || (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    // A step that is too large for the field is refused.
    let step = move || 1..=(max - min).min(19);
    let item = prop_oneof![
        2 => (min..=max).prop_map(|n| n.to_string()),
        1 => range().prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (range(), step()).prop_map(|((a, b), n)| format!("{a}-{b}/{n}")),
        1 => step().prop_map(|n| format!("*/{n}")),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    // A rule with fixed fields has few fire times, so following them covers a
    // long time.
    let minute = prop_oneof![(0..60_u32).prop_map(|n| n.to_string()), field(0, 59)];
    let hour = prop_oneof![1 => (0..5_u32).prop_map(|n| n.to_string()), 2 => field(0, 23)];
    (minute, hour, field(1, 31), field(1, 12), field(0, 7))
        .prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
}

/// Whether `local` matches the rule, according to croner.
fn matches(rule: &croner::Cron, local: NaiveDateTime) -> bool {
    rule.is_time_matching(&local).unwrap()
}

/// Whether the rule fires at intervals: its minute or hour has a `*` or a step.
fn of_intervals(expr: &str) -> bool {
    let mut minute_and_hour = expr.split(' ').take(2);
    minute_and_hour.any(|field| field.contains('*') || field.contains('/'))
}

/// All fire times of a span, found by reading the clocks of the zone at every
/// minute.
fn scan(expr: &str, zone: Tz, from: i64, to: i64) -> Vec<Millis> {
    let rule: croner::Cron = expr.parse().unwrap();
    let mut first_seen = BTreeMap::new();
    let mut t = from - 3 * 3600;
    let mut fires = Vec::new();
    while t < to + 3 * 3600 {
        let utc = DateTime::from_timestamp(t, 0).unwrap();
        let local = utc.with_timezone(&zone).naive_local();
        if of_intervals(expr) && (from..to).contains(&t) && matches(&rule, local) {
            fires.push(u64::try_from(t * 1000).unwrap());
        }
        first_seen.entry(local).or_insert(t);
        t += 60;
    }
    if of_intervals(expr) {
        return fires;
    }
    let mut local = *first_seen.first_key_value().unwrap().0;
    let end = *first_seen.last_key_value().unwrap().0;
    while local <= end {
        if matches(&rule, local) {
            // The clocks never showed a skipped time. It fires at the first
            // time that they showed after it.
            let (_, t) = first_seen.range(local..).next().unwrap();
            if (from..to).contains(t) {
                fires.push(u64::try_from(t * 1000).unwrap());
            }
        }
        local += chrono::TimeDelta::minutes(1);
    }
    fires.dedup();
    fires
}

fn changes() -> impl Strategy<Value = (Tz, i64)> {
    prop::sample::select(vec![
        (Tz::Europe__Berlin, "2026-03-29T01:00:00Z"),
        (Tz::Europe__Berlin, "2026-10-25T01:00:00Z"),
        (Tz::America__New_York, "2026-03-08T07:00:00Z"),
        (Tz::America__New_York, "2026-11-01T06:00:00Z"),
        (Tz::Australia__Lord_Howe, "2026-04-04T15:00:00Z"),
        (Tz::Australia__Lord_Howe, "2026-10-03T15:30:00Z"),
        (Tz::Africa__Cairo, "2026-04-23T22:00:00Z"),
        (Tz::Asia__Kathmandu, "2026-01-31T18:15:00Z"),
        (Tz::UTC, "2028-02-29T00:00:00Z"),
    ])
    .prop_map(|(zone, t)| (zone, i64::try_from(utc(t)).unwrap() / 1000))
}

proptest! {
    #[test]
    fn fire_times_equal_those_of_a_scan_of_the_clocks(expr in expression(), (zone, middle) in changes()) {
        let (from, to) = (middle - 86_400, middle + 2 * 86_400);
        let expected = scan(&expr, zone, from, to);
        let rule = cron(&expr, zone.name());
        let ms = |t: i64| u64::try_from(t * 1000).unwrap();

        let forward: Vec<Millis> =
            std::iter::successors(rule.first_at_or_after(ms(from)), |t| rule.next_after(*t))
                .take_while(|t| *t < ms(to))
                .collect();
        prop_assert_eq!(&forward, &expected);
        let mut backward: Vec<Millis> = std::iter::successors(
            rule.last_at_or_before(ms(to) - 1, ms(from)),
            |t| rule.last_at_or_before(*t - 1, ms(from)),
        )
        .collect();
        backward.reverse();
        prop_assert_eq!(&backward, &expected);
    }
}

proptest! {
    #[test]
    fn no_fire_time_lies_between_neighbouring_fire_times(
        second in field(0, 59),
        expr in expression(),
        zone in prop::sample::select(&chrono_tz::TZ_VARIANTS[..]),
        t in prop_oneof![0..4_102_444_800_000_u64, any::<u64>()],
    ) {
        let rule = cron(&format!("{second} {expr}"), zone.name());
        if let Some(next) = rule.next_after(t) {
            prop_assert!(next > t);
            prop_assert_eq!(rule.first_at_or_after(next), Some(next));
            prop_assert_eq!(rule.last_at_or_before(next, 0), Some(next));
            prop_assert!(rule.last_at_or_before(next - 1, 0).is_none_or(|last| last <= t));
            prop_assert!(rule.next_after(next).is_none_or(|after| after > next));
        }
        if let Some(last) = rule.last_at_or_before(t, 0) {
            prop_assert!(last <= t);
            prop_assert_eq!(rule.first_at_or_after(last), Some(last));
        }
    }

    #[test]
    fn every_fires_at_multiples_of_its_period(
        period in 1..100_u64,
        start in 0..1000_u64,
        t in 0..3000_u64,
    ) {
        let rule = Recurrence::every(period, Some(start), 0).unwrap();
        let fires = || (0..).map(|k| start + k * period);
        prop_assert_eq!(rule.first_at_or_after(t), fires().find(|fire| *fire >= t));
        prop_assert_eq!(
            rule.last_at_or_before(t, 0),
            fires().take_while(|fire| *fire <= t).last()
        );
    }

    #[test]
    fn no_text_makes_the_parser_panic(
        expr in prop_oneof!["[*0-9,/\\-?@a-zLW# ]{0,24}", ".{0,24}", "([0-9*/,-]{1,4} ){4}[A-Z0-9#+]{1,4}"],
        zone in "\\PC{0,12}",
        t in any::<u64>(),
    ) {
        if let Ok(rule) = Recurrence::cron(&expr, None) {
            let _ = (rule.next_after(t), rule.last_at_or_before(t, t / 2));
            prop_assert!(rule.definition().ends_with(&expr));
        }
        if let Err(error) = Recurrence::cron("@daily", Some(&zone)) {
            prop_assert!(!error.to_string().contains(char::is_control));
        }
    }
}
