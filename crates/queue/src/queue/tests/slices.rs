//! Bulk operations of tests, in slices of at most two messages.

use super::fixture::{later, named, new_message, Fixture};
use super::named_batches::with;
use crate::message::after::OnFail;
use crate::message::state::State;
use crate::op::{Done, Fetch, NackKind, Op, Send};
use crate::queue::bulk::{Plan, Step};
use crate::queue::rebuild::validate;
use crate::settings::{Changes, Settings};
use crate::Moment;

pub const GROUPS: [&str; 5] = ["a", "b", "c", "d", "e"];

pub fn purge(state: Option<State>, group: Option<&'static str>) -> Op<'static> {
    Op::Purge {
        state,
        group: group.map(|name| name.as_bytes().into()),
    }
}

/// Does the next slice of up to two messages. Returns how many it removed or revived,
/// `None` when there is nothing left to do.
pub fn slice(b: &mut Fixture, plan: &mut Plan) -> Option<u64> {
    match plan.next(&b.queue, 2, b.now) {
        Step::Done => None,
        Step::Look => Some(0),
        Step::Do(op) => {
            let done = b.queue.apply(&op, Moment::at_ms(b.now));
            assert_eq!(validate(&b.queue), Ok(()));
            match done {
                Ok(Done::Count(count)) => {
                    assert!(count <= 2, "{count}");
                    Some(count)
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Does the rest of a plan. Returns the count and the number of slices.
pub fn finish(b: &mut Fixture, plan: &mut Plan) -> (u64, u32) {
    let mut counted = 0;
    for slices in 0..1000 {
        match slice(b, plan) {
            Some(count) => counted += count,
            None => return (counted, slices),
        }
    }
    panic!("{plan:?} is never done");
}

/// Does an operation, in slices where it is long. Returns the count and the number of
/// slices, 0 where it was done at once.
pub fn in_slices(b: &mut Fixture, op: &Op<'static>) -> (u64, u32) {
    match b.queue.plan(op, b.now) {
        Some(mut plan) => finish(b, &mut plan),
        None => match b.apply(op) {
            Done::Count(count) => (count, 0),
            other => panic!("{other:?}"),
        },
    }
}

/// The number of messages in no matter which state.
pub fn left(b: &Fixture) -> u64 {
    State::ALL.iter().map(|state| b.queue.count(*state)).sum()
}

/// An ungrouped message that goes before others.
pub fn with_priority(priority: i8) -> Send<'static> {
    Send {
        priority,
        ..new_message(None)
    }
}

/// Three messages in each state except blocked, ungrouped or of a group.
pub fn populated(group: Option<&'static str>) -> Fixture {
    let mut b = Fixture::new(Settings {
        retain: 1_000_000,
        lease: 1_000_000,
        group_concurrency: 100,
        ..Settings::default()
    });
    b.apply(&Op::Alter(Changes {
        on_retry: Some(crate::settings::OnRetry::Skip),
        ..Changes::default()
    }));
    let first = |group| Send {
        priority: -1,
        ..new_message(group)
    };
    for kind in [Some(NackKind::Fatal), Some(NackKind::Delay(500_000)), None] {
        for _ in 0..3 {
            b.send(first(group));
            let got = b.fetch(Fetch::one());
            if let Some(kind) = kind {
                b.nack(&[got[0].1], kind);
            }
        }
    }
    for _ in 0..3 {
        b.send(first(group));
        let got = b.fetch(Fetch::one());
        b.ack(&[got[0].1]);
    }
    for id in ["x", "y", "z"] {
        b.send(Send {
            group: group.map(|name| name.as_bytes().into()),
            ..named(id)
        });
        b.cancel(id);
    }
    for _ in 0..3 {
        b.send(with(later(group, 800_000), Some("batch"), None));
        b.send(new_message(group));
    }
    for _ in 0..3 {
        let after = Some(("batch", OnFail::Hold));
        b.send(with(new_message(group), None, after));
    }
    b
}
