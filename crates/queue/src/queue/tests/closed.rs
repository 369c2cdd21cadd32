//! The schedules of a closed queue.

use super::fixture::{new_message, Fixture};
use crate::op::{DueTime, NewSchedule, Op, Send};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::{Changes, Settings};

#[test]
fn firings_are_skipped_and_counted_and_the_schedule_goes_on() {
    let mut b = Fixture::new(Settings {
        closed: true,
        ..Settings::default()
    });
    b.apply(&Op::Schedule(NewSchedule {
        name: b"s".into(),
        rule: Recurrence::every(10, None, b.now).unwrap(),
        send: Send {
            due: DueTime::Now,
            ..new_message(None)
        },
        missed: Missed::Once,
        overlap: Overlap::Queue,
        limits: None,
    }));
    b.wait(35);
    let totals = *b.queue.totals();
    assert_eq!((totals.sent.get(), totals.skipped_fires.get()), (0, 3));
    b.apply(&Op::Alter(Changes {
        closed: Some(false),
        ..Changes::default()
    }));
    b.wait(10);
    assert_eq!(b.queue.totals().sent.get(), 1);
}
