//! The end, the pause and the jitter of a schedule.

use super::fixture::{new_message, Fixture};
use crate::op::{Done, NewSchedule, Op};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Extras, Limits, Missed, Overlap};
use crate::settings::Settings;
use crate::{Millis, Moment};

/// A schedule that fires every 10 ms. It counts from now, or from a given start.
fn every(limits: Limits, start: Option<Millis>, now: Millis) -> NewSchedule<'static> {
    NewSchedule {
        name: b"s".into(),
        rule: Recurrence::every(10, start, now).unwrap(),
        send: new_message(None),
        missed: Missed::Once,
        overlap: Overlap::Queue,
        limits: Some(Box::new(limits)),
    }
}

fn fixture(limits: Limits) -> Fixture {
    let mut b = Fixture::new(Settings::default());
    b.apply(&Op::Schedule(every(limits, None, b.now)));
    b
}

fn pause(b: &mut Fixture, paused: bool) -> Done {
    b.apply(&Op::PauseSchedule {
        name: b"s".into(),
        paused,
    })
}

fn extras(b: &Fixture) -> Option<Extras> {
    let mut schedules = b.queue.schedules();
    schedules.next().map(|(_, schedule)| schedule.extras())
}

fn until(at: Millis) -> Limits {
    Limits {
        until: Some(at),
        ..Limits::default()
    }
}

#[test]
fn a_pause_within_a_millisecond_loses_and_repeats_nothing() {
    let mut b = fixture(Limits::default());
    b.wait(10);
    pause(&mut b, true);
    pause(&mut b, false);
    assert_eq!(b.wait(0).fired, 0);
    assert_eq!(b.wait(10).fired, 1);
    assert_eq!(extras(&b).unwrap().skipped.get(), 0);
}

#[test]
fn a_pause_beyond_its_end_ends_it_when_it_goes_on() {
    let mut b = fixture(until(1030));
    pause(&mut b, true);
    b.wait(100);
    assert!(extras(&b).is_some());
    assert_eq!(pause(&mut b, false), Done::Flag(true));
    assert_eq!(extras(&b), None);
    assert_eq!(pause(&mut b, false), Done::Flag(false));
}

#[test]
fn jitter_delays_each_message_and_never_a_fire_time() {
    let jitter = Limits {
        jitter: 5,
        ..Limits::default()
    };
    for start in [None, Some(1000)] {
        let mut b = Fixture::new(Settings::default());
        b.apply(&Op::Schedule(every(jitter, start, b.now)));
        assert_eq!(b.wait(1000).fired, 100);
        let due = b.queue.state.store.iter().map(|(_, message)| message.due);
        let late: Vec<_> = due.map(|due| due % 10).collect();
        assert!(late.iter().all(|late| *late <= 5));
        assert!((0..=5).all(|ms| late.contains(&ms)));
    }
}

#[test]
fn missed_times_after_the_end_are_not_made_up_for() {
    for (missed, sent) in [(Missed::Once, 1), (Missed::All, 3), (Missed::Skip, 0)] {
        let mut b = Fixture::new(Settings::default());
        let mut new = every(until(1035), None, b.now);
        new.missed = missed;
        b.apply(&Op::Schedule(new));
        b.now += 100;
        let moment = Moment::at_ms(b.now);
        while b.queue.has_missed(b.now) {
            let since = b.now;
            b.queue
                .apply(&Op::CatchUp { since, skip: false }, moment)
                .unwrap();
        }
        assert_eq!((b.queue.totals().sent.get(), extras(&b)), (sent, None));
        let latest = b.queue.state.store.iter().last();
        let id = latest.map(|(seq, m)| b.queue.id_of(seq, m).as_bytes().to_vec());
        assert!(id.is_none_or(|id| id == b"s@1030"));
    }
}
