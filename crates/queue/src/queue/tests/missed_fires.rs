//! Fire times of schedules that are missed, or passed over because there is no memory.

use super::fixture::{new_message, with_ttl, Fixture};
use crate::op::{NewSchedule, Op};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::Settings;
use crate::Moment;

/// Adds a schedule that fires each 10 ms for each policy of missed times.
fn schedule_with_each_policy(b: &mut Fixture) {
    let policies = [Missed::All, Missed::Once, Missed::Skip];
    for (name, missed) in [&b"all"[..], b"once", b"skip"].into_iter().zip(policies) {
        b.apply(&Op::Schedule(NewSchedule {
            name: name.into(),
            rule: Recurrence::every(10, Some(b.now + 10), b.now).unwrap(),
            send: new_message(None),
            missed,
            overlap: Overlap::Queue,
            limits: None,
        }));
    }
}

#[test]
fn missed_fires_are_sent_one_by_one() {
    let mut b = Fixture::new(Settings::default());
    schedule_with_each_policy(&mut b);
    // Three fire times of each schedule were missed. Time has gone on by 1 ms when
    // they are handled.
    let (since, now) = (b.now + 35, b.now + 36);
    let mut made_up = Vec::new();
    while b.queue.has_missed(since) {
        let before = b.queue.live();
        let catch_up = Op::CatchUp { since, skip: false };
        b.queue.apply(&catch_up, Moment::at_ms(now)).unwrap();
        assert!(b.queue.has_work(now), "what is left is not forgotten");
        made_up.push(b.queue.live() - before);
        assert!(made_up.len() < 10, "it never ends");
    }
    assert_eq!(made_up, [1, 1, 0, 1, 1]);
    b.now = now;
    assert_eq!(b.wait(3).fired, 0);
    assert_eq!(b.wait(1).fired, 3);
}

#[test]
fn without_memory_due_fires_are_passed_over_and_counted() {
    let mut b = Fixture::new(Settings::default());
    schedule_with_each_policy(&mut b);
    b.apply(&Op::Send(with_ttl(new_message(None), 15)));
    let now = b.now + 30;
    assert!(!b.queue.has_fire(b.now + 9) && b.queue.has_fire(b.now + 10));
    let advanced = b.queue.advance_without_fires(now, 100);
    assert_eq!((advanced.ticked.expired, advanced.ticked.fired), (1, 0));
    // Each schedule had three fire times, of which two were missed. MISSED fires both, one or none
    // of them.
    let since = b.now + 25;
    let mut rounds = 0;
    while b.queue.has_fire(now) {
        rounds += 1;
        assert!(rounds < 20, "it never ends");
        let skip = Op::CatchUp { since, skip: true };
        b.queue.apply(&skip, Moment::at_ms(now)).unwrap();
        assert!(b.queue.has_work(now), "what is left is not forgotten");
    }
    assert_eq!(
        b.queue.totals().skipped_fires.get(),
        [2, 1, 0].map(|missed| missed + 1).iter().sum::<u64>()
    );
    assert_eq!(b.queue.totals().sent.get(), 1);
    b.now = now;
    assert_eq!(b.wait(9).fired, 0);
    assert_eq!(b.wait(1).fired, 3);
}
