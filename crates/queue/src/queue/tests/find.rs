//! FIND: its conditions, ranges, steps and bounds.

use super::driver::Pair;
use super::ops::{RandomOp, Step};
use crate::glob::Glob;
use crate::message::state::State;
use crate::op::{DueTime, FindAct, Send};
use crate::queue::inspect::find::{Search, MOST_OF_PAYLOAD};
use crate::queue::Queue;
use crate::settings::{Changes, Clock, Settings};
use crate::{Done, Millis, Moment, Op, Seq};

/// A search for all messages in a state.
pub fn all(state: State) -> Search<'static> {
    Search {
        state,
        id: None,
        label: None,
        group: None,
        batch: None,
        parent: None,
        header: None,
        error: None,
        payload: None,
        since: None,
        until: None,
        reverse: false,
        cursor: None,
        count: 1000,
    }
}

/// A queue with a message that is due at each of these times.
fn due_at(times: &[Millis]) -> Queue {
    let mut queue = Queue::new(Settings::default(), Clock::Server, 7);
    for time in times {
        let send = Send {
            due: DueTime::At(*time),
            group: (time % 2 == 0).then(|| b"even"[..].into()),
            ..Send::plain(b"x")
        };
        queue.apply(&Op::Send(send), Moment::at_ms(1)).unwrap();
    }
    queue
}

/// All messages that a search finds, step by step.
fn found(queue: &Queue, mut search: Search, now: Millis) -> Vec<Seq> {
    let mut all = Vec::new();
    loop {
        let (next, found) = queue.search(&search, now);
        all.extend(found);
        search.cursor = next;
        if next.is_none() {
            return all;
        }
    }
}

#[test]
fn a_range_holds_the_times_from_since_to_before_until_in_both_directions() {
    let mut queue = due_at(&[10, 20, 30, 30, 41, 50]);
    let times: [(Option<Millis>, Option<Millis>, &[Seq]); 6] = [
        (None, None, &[1, 2, 3, 4, 5, 6]),
        (Some(20), Some(41), &[2, 3, 4]),
        (Some(21), None, &[3, 4, 5, 6]),
        (None, Some(30), &[1, 2]),
        (Some(31), Some(41), &[]),
        (Some(30), Some(20), &[]),
    ];
    let check = |queue: &Queue, state: State, now: Millis| {
        for (since, until, expected) in times {
            for count in [1, 2, 1000] {
                let search = |reverse| Search {
                    since,
                    until,
                    reverse,
                    count,
                    ..all(state)
                };
                assert_eq!(found(queue, search(false), now), expected);
                let back = expected.iter().rev().copied().collect::<Vec<_>>();
                assert_eq!(found(queue, search(true), now), back);
            }
        }
    };
    check(&queue, State::Delayed, 9);
    // Due, first as far as time goes, then in the indexes as well.
    check(&queue, State::Ready, 50);
    queue.advance(50, u64::MAX);
    check(&queue, State::Ready, 50);
}

#[test]
fn a_range_is_gone_to_and_not_searched_for() {
    let times: Vec<Millis> = (0..500).map(|n| 1000 + n).collect();
    let queue = due_at(&times);
    for reverse in [false, true] {
        let search = Search {
            since: Some(1400),
            until: Some(1402),
            count: 2,
            reverse,
            ..all(State::Delayed)
        };
        let (next, found) = queue.search(&search, 1);
        assert_eq!((next, found.len()), (None, 2));
    }
}

#[test]
fn a_step_examines_count_messages_and_goes_on_from_there() {
    let queue = due_at(&[10, 20, 30, 40, 50]);
    let mut search = Search {
        id: Some(Glob::new(b"nobody")),
        count: 2,
        ..all(State::Delayed)
    };
    let mut steps = 1;
    while let (Some(next), found) = queue.search(&search, 1) {
        assert!(found.is_empty());
        search.cursor = Some(next);
        steps += 1;
    }
    assert_eq!(steps, 3);
}

#[test]
fn a_step_ends_after_four_mebibytes_of_text_and_a_payload_counts_to_its_first_64_kib() {
    let mut queue = Queue::new(Settings::default(), Clock::Server, 7);
    let mut payload = vec![b'x'; MOST_OF_PAYLOAD];
    payload.push(b'y');
    for _ in 0..70 {
        let send = Op::Send(Send::plain(&payload));
        queue.apply(&send, Moment::at_ms(1)).unwrap();
    }
    let search = |pattern: &[u8]| Search {
        payload: Some(Glob::new(pattern)),
        ..all(State::Ready)
    };
    let (next, seqs) = queue.search(&search(b"*x"), 1);
    assert_eq!((next.is_some(), seqs.len()), (true, 64));
    assert_eq!(found(&queue, search(b"*x"), 1).len(), 70);
    assert_eq!(found(&queue, search(b"*y"), 1).len(), 0);
    // A message that does not match does not count.
    assert_eq!(queue.search(&all(State::Ready), 1).0, None);
}

#[test]
fn what_a_search_does_counts_only_what_it_applies_to() {
    let mut pair = Pair::new(&Changes::default(), false);
    pair.step(&Step {
        wait: 1,
        op: RandomOp::Tick,
    });
    for _ in 0..3 {
        pair.apply(&Op::Send(Send::plain(b"x")));
    }
    // Two messages that exist, and one that never existed.
    for (act, count) in [
        (FindAct::Redrive, 0),
        (FindAct::Cancel, 2),
        (FindAct::Purge, 0),
        (FindAct::Cancel, 0),
    ] {
        let seqs = vec![1, 3, 9];
        let op = Op::FindDo { act, seqs };
        let done = pair.queue.clone().apply(&op, Moment::at_ms(pair.now));
        assert_eq!(done, Ok(Done::Count(count)), "{act:?}");
        pair.apply(&op);
        pair.compare();
    }
}
