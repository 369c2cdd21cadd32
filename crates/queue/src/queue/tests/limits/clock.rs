//! Limits with names, and a clock that is set back.

use super::{fixture, limited, rule};
use crate::op::{Before, DueTime, Send};
use crate::queue::rebuild::validate;
use crate::Moment;

#[test]
fn messages_with_limits_and_no_group_are_given_after_the_clock_was_set_back() {
    let mut fixture = fixture(&[("api", rule(5, &[]))]);
    let at_a_point = fixture.send(Send {
        due: DueTime::At(90_000),
        ..limited(None, &["api"], 1)
    });
    fixture.wait(100_000);
    fixture.now = 80_000;
    let before = Before {
        cut: 21_000,
        ..Before::default()
    };
    let moment = Moment::at_ms(fixture.now);
    fixture.queue.prepare(&before, moment);
    validate(&fixture.queue).unwrap();
    assert!(fixture.take(5).is_empty());
    fixture.wait(15_000);
    validate(&fixture.queue).unwrap();
    assert_eq!(fixture.take(5), [at_a_point]);
}
