//! Runs of a plan: in one call, with events in slices, and with events that are processed late.

use super::{perform, Pair};
use crate::op::{Fetch, Moment, Op};
use crate::queue::model::compare::told;
use crate::queue::model::seen::assert_same;
use crate::queue::rebuild::validate;
use crate::queue::tests::ops::{NewMessage, Plan, RandomOp, Step};
use crate::queue::Queue;
use crate::settings::Changes;
use crate::Millis;

/// Applies all steps, then fetches until nothing is left, from the queue and from a
/// copy of it.
pub fn run(plan: &Plan, manual: bool) {
    let mut pair = Pair::new(&plan.options, manual);
    for step in &plan.steps {
        pair.step(step);
    }
    // A copy is made as of the last change, so make a change now.
    pair.apply(&Op::Alter(Changes::default()));
    let mut copy = Pair {
        queue: pair.queue.copy(),
        model: pair.model.copy(),
        now: pair.now,
    };
    copy.compare();
    drain(&mut copy, 5);
    drain(&mut pair, 30);
}

/// Applies all steps. Before each of them the clock is set back and leases are spared,
/// by so many ms. At the end, the queue must equal the one that is built from its parts.
pub fn run_with_steps_back(plan: &Plan, steps_back: &[(Millis, Millis)]) {
    let mut pair = Pair::new(&plan.options, false);
    // No time in the model may fall below 0.
    let mut most = pair.now;
    for (step, (by, spare)) in plan.steps.iter().zip(steps_back.iter().cycle()) {
        let by = most.min(*by);
        most -= by;
        if by > 0 || *spare > 0 {
            // The clock of a queue that has done nothing is not ahead.
            pair.advance(pair.now);
            pair.apply(&Op::Alter(Changes::default()));
            pair.set_back(by, *spare);
            assert_eq!(validate(&pair.queue), Ok(()), "after {by} ms back");
        }
        pair.step(step);
    }
    drain(&mut pair, 30);
}

/// Fetches and acks this many times.
fn drain(pair: &mut Pair, times: usize) {
    let fetch = RandomOp::Fetch {
        count: 2,
        per_group: 1,
        group: None,
        lease: None,
        max_bytes: None,
        acks: vec![0, 1],
        no_ack: false,
        consumer: None,
    };
    for _ in 0..times {
        pair.step(&Step {
            wait: 3,
            op: fetch.clone(),
        });
    }
}

/// Processes due events in calls of up to `most` steps, one millisecond after the
/// other.
fn advance_in_slices(queue: &mut Queue, from: Millis, to: Millis, most: u64) {
    for now in from..=to {
        while !queue.advance(now, most).caught_up {}
    }
}

/// Applies all steps to a queue that processes due events in one call, and to one that
/// processes a few at a time. Both must stay equal.
pub fn run_in_slices(plan: &Plan, most: u64) {
    let mut pair = Pair::new(&plan.options, false);
    let mut sliced = pair.queue.clone();
    for step in &plan.steps {
        let from = pair.now;
        pair.advance(from + step.wait);
        advance_in_slices(&mut sliced, from, pair.now, most);
        let op = step.op.resolve(&pair.model);
        pair.apply(&op);
        let _ = perform(&mut sliced, &op, Moment::at_ms(pair.now));
        pair.advance(pair.now);
        advance_in_slices(&mut sliced, pair.now, pair.now, most);
        assert_same(&pair.queue, &sliced, pair.now);
    }
}

/// Applies all steps to a queue that has processed all due events, and to one that
/// processes only `most` of them before each step. Both must give the same
/// deliveries, and must be equal at the end.
pub fn run_lagging(plan: &Plan, most: u64) {
    let options = Changes {
        dead_count: None,
        dead_retain: None,
        max_len: None,
        max_bytes: None,
        ttl: None,
        closed: None,
        ..plan.options.clone()
    };
    let mut pair = Pair::new(&options, false);
    let mut lagging = pair.queue.clone();
    for step in &plan.steps {
        pair.advance(pair.now + step.wait);
        lagging.advance(pair.now, most);
        // Skips operations that depend on how much was processed: a message that a
        // schedule has not sent yet cannot be delivered, and a command on all messages of
        // a state takes them as they are at that moment.
        let is_of_many = matches!(
            step.op,
            RandomOp::Schedule { .. }
                | RandomOp::Find(..)
                | RandomOp::Purge(..)
                | RandomOp::Alter(_)
        );
        if is_of_many {
            continue;
        }
        let mut op = step.op.clone();
        if let RandomOp::Send(_, new_message) = &mut op {
            // A group that lost its position by an expiry that is not processed yet may
            // keep it if an operation changes the group meanwhile. So no message expires
            // here.
            new_message.choices.ttl = None;
            // No message is held either, because messages that are released late come late.
            new_message.choices.change_rare(|rare| {
                rare.expire_at = None;
                rare.batching = None;
            });
        }
        if let RandomOp::AckSend(_, messages, _) = &mut op {
            messages.iter_mut().for_each(|new_message| {
                new_message.choices.ttl = None;
                new_message.choices.rare = None;
            });
        }
        let op = op.resolve(&pair.model);
        let moment = Moment::at_ms(pair.now);
        let _ = lagging.apply(&Op::Tick, moment);
        // PEEK changes nothing: it does not see the changes that expiries would make in the line.
        if !lagging.has_overdue_expiry(pair.now) {
            let peeked = lagging.peek(100, pair.now);
            assert_eq!(peeked, pair.queue.peek(100, pair.now), "what comes next");
        }
        let given = told(perform(&mut lagging, &op, moment));
        let expected = told(perform(&mut pair.queue.clone(), &op, moment));
        assert_eq!(given, expected, "what came of {op:?}");
        pair.apply(&op);
        pair.advance(pair.now);
    }
    lagging.advance(pair.now, u64::MAX);
    assert_same(&pair.queue, &lagging, pair.now);
}

/// Sends all messages, then fetches from a queue that has processed all due events and
/// from a queue that has processed only `most` of them before each FETCH. Both must give
/// the same deliveries, and must be equal at the end.
pub fn run_burst(letters: &[NewMessage], fetches: &[(u64, Millis)], most: u64) {
    let mut pair = Pair::new(&Changes::default(), false);
    pair.advance(pair.now);
    for new_message in letters {
        pair.apply(&RandomOp::Send(1, new_message.clone()).resolve(&pair.model));
    }
    let mut lagging = pair.queue.clone();
    pair.advance(pair.now + 10);
    for (count, wait) in fetches {
        pair.advance(pair.now + wait);
        lagging.advance(pair.now, most);
        let fetch = Op::fetch(Fetch {
            count: *count,
            ..Fetch::one()
        });
        let expected = pair.queue.clone().apply(&fetch, Moment::at_ms(pair.now));
        let given = lagging.apply(&fetch, Moment::at_ms(pair.now));
        assert_eq!(given, expected, "after {most} steps");
        pair.apply(&fetch);
    }
    pair.advance(pair.now);
    lagging.advance(pair.now, u64::MAX);
    assert_same(&pair.queue, &lagging, pair.now);
}
