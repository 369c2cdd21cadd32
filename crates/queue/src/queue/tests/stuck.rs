//! Queues with an index that was broken on purpose: every loop over it ends, and says that it was
//! stuck. Without that, each of these tests would run for ever.

use std::borrow::Cow;

use super::fixture::*;
use crate::handles::GroupIx;
use crate::index::ready_line::{Join, Kind, Position};
use crate::op::{Done, Fetch, Op, Redrive};
use crate::settings::Settings;
use crate::{Moment, Seq};

const GONE: Seq = 1000;

/// The loops that were stuck since the last call.
fn stuck(b: &mut Fixture) -> Option<&'static str> {
    b.queue.take_effects().told.and_then(|told| told.stuck)
}

/// The next FETCH, as it is, without the time that passes before it.
fn fetched(b: &mut Fixture, fetch: Fetch) -> Vec<Seq> {
    let done = b.queue.apply(&Op::fetch(fetch), Moment::at_ms(b.now));
    match done.unwrap() {
        Done::Fetched(given) => given.iter().map(|one| one.seq).collect(),
        other => panic!("{other:?}"),
    }
}

fn many() -> Fetch<'static> {
    Fetch {
        count: 10,
        ..Fetch::one()
    }
}

#[test]
fn a_fetch_ends_where_an_ungrouped_message_is_gone_from_the_store() {
    let mut b = Fixture::new(Settings::default());
    let seq = b.plain();
    b.queue.state.store.remove(seq, |_| ());
    assert!(fetched(&mut b, many()).is_empty());
    assert_eq!(stuck(&mut b), Some("a FETCH"));
}

#[test]
fn a_fetch_ends_where_a_message_of_a_group_is_gone_from_the_store() {
    for group in [None, Some("g")] {
        let mut b = Fixture::new(Settings::default());
        let seq = b.to("g");
        b.queue.state.store.remove(seq, |_| ());
        let group = group.map(|name| Cow::Borrowed(name.as_bytes()));
        assert!(fetched(&mut b, Fetch { group, ..many() }).is_empty());
        assert!(stuck(&mut b).is_some());
    }
}

#[test]
fn a_fetch_passes_a_group_that_is_gone_and_gives_the_others() {
    let mut b = Fixture::new(Settings::default());
    let (plain, grouped) = (b.plain(), b.to("g"));
    let gone = Position {
        priority: -9,
        join: Join::by_time(0),
        seq: GONE,
        group: GroupIx::in_slot(77),
    };
    b.queue.indexes.ready_line.insert(gone, Kind::Steady);
    assert_eq!(fetched(&mut b, many()), [plain, grouped]);
    assert_eq!(stuck(&mut b), Some("a FETCH"));
    b.plain();
    assert_eq!(fetched(&mut b, many()).len(), 1);
    assert_eq!(stuck(&mut b), None, "the line is whole again");
}

#[test]
fn an_event_that_changes_nothing_is_left_out_and_the_others_go_on() {
    let settings = Settings {
        lease: 100,
        dead_retain: 50,
        ..Settings::default()
    };
    let mut b = Fixture::new(settings);
    b.plain();
    let [(seq, _)] = b.fetch(Fetch::one())[..] else {
        panic!("nothing was delivered");
    };
    b.queue.state.records.dead.insert((b.now, GONE), ());
    b.queue.wake_by(b.now + 50);
    let later = b.now + 200;
    let progress = b.queue.advance(later, u64::MAX);
    assert_eq!(stuck(&mut b), Some("an event of time"));
    assert_eq!(progress.ticked.timeouts, 1);
    assert!(progress.caught_up, "a slice of the timer is over");
    assert!(!b.queue.has_work(later), "the timer tries again later");
    assert!(b.queue.has_work(later + 1000));
    let message = b.queue.message(seq).unwrap();
    assert!(message.stored.is_pending());
}

#[test]
fn the_due_events_of_a_log_entry_end_however_many_it_names() {
    let mut b = Fixture::new(Settings {
        dead_retain: 1,
        ..Settings::default()
    });
    b.queue.state.records.dead.insert((b.now - 1, GONE), ());
    b.queue.wake_by(b.now);
    let progress = b.queue.advance_logged(b.now, u64::MAX >> 10);
    assert_eq!(
        progress.steps, 0,
        "so the replay ends, and says what is missing"
    );
    assert_eq!(stuck(&mut b), Some("an event of time"));
}

#[test]
fn an_operation_on_all_of_a_kind_ends() {
    let mut b = Fixture::new(Settings::default());
    b.queue.state.records.dead.insert((b.now, GONE), ());
    let all = Op::Redrive(Redrive::Oldest(u64::MAX));
    b.queue.apply(&all, Moment::at_ms(b.now)).unwrap();
    assert_eq!(stuck(&mut b), Some("a dead message that is to be redriven"));
}
