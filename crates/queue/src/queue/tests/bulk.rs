//! Random plans in which long purges and redrives are done in slices.

use super::driver::Pair;
use super::ops::Plan as RandomPlan;
use crate::message::state::State;
use crate::op::{Done, Op};
use crate::queue::bulk::{Plan, Step};
use crate::queue::model::seen::all_seen;
use crate::queue::Queue;
use crate::{Millis, Moment, Seq};

/// No operation of these tests has this many slices.
const MOST_SLICES: usize = 1000;

/// A purge or redrive that is under way.
struct Bulk {
    plan: Plan,
    /// The messages that have matched the purge since it began.
    always: Vec<Seq>,
}

/// The messages that a purge is to remove now.
fn doomed(queue: &Queue, op: &Op, now: Millis) -> Vec<Seq> {
    let Op::Purge { state, group } = op else {
        return Vec::new();
    };
    let group = group.as_deref().map(|name| queue.state.groups.find(name));
    let is_doomed = |seq: &Seq| {
        let message = queue.message(*seq);
        message.is_some_and(|message| {
            group.is_none_or(|ix| ix == Some(message.group))
                && state.is_none_or(|state| queue.state_of(message, now) == state)
        })
    };
    queue
        .state
        .store
        .seqs()
        .into_iter()
        .filter(is_doomed)
        .collect()
}

/// Does the next slice. Returns false when nothing is left to do.
fn slice(pair: &mut Pair, bulk: &mut Bulk, most: u64) -> bool {
    match bulk.plan.next(&pair.queue, most, pair.now) {
        Step::Do(op) => {
            pair.apply(&op);
            pair.compare();
            true
        }
        Step::Look => true,
        Step::Done => {
            for seq in &bulk.always {
                assert!(pair.queue.message(*seq).is_none(), "{seq} was left");
            }
            false
        }
    }
}

/// Applies all steps to the queue and to the model, with a slice of a bulk operation
/// between two steps. Messages that existed all the time are gone in the end.
pub fn run_between_others(acts: &RandomPlan, most: u64) {
    let mut pair = Pair::new(&acts.options, false);
    let mut bulk: Option<(Op<'static>, Bulk)> = None;
    for step in &acts.steps {
        if let Some((op, under_way)) = &mut bulk {
            let there = doomed(&pair.queue, op, pair.now);
            under_way.always.retain(|seq| there.contains(seq));
            if !slice(&mut pair, under_way, most) {
                bulk = None;
            }
        }
        pair.advance(pair.now + step.wait);
        let op = step.op.resolve(&pair.model);
        match pair.queue.plan(&op, pair.now).filter(|_| bulk.is_none()) {
            Some(plan) => {
                let always = doomed(&pair.queue, &op, pair.now);
                bulk = Some((op, Bulk { plan, always }));
            }
            None => pair.apply(&op),
        }
        pair.advance(pair.now);
        pair.compare();
    }
    if let Some((op, mut under_way)) = bulk {
        let there = doomed(&pair.queue, &op, pair.now);
        under_way.always.retain(|seq| there.contains(seq));
        let slices = (0..MOST_SLICES).take_while(|_| slice(&mut pair, &mut under_way, most));
        assert!(slices.count() < MOST_SLICES, "{op:?} is never done");
    }
}

/// Does all steps, and each bulk operation also in slices: the same messages are left,
/// though groups may have another order in the ready line.
pub fn run_beside(acts: &RandomPlan, most: u64) {
    let mut pair = Pair::new(&acts.options, false);
    for step in &acts.steps {
        pair.advance(pair.now + step.wait);
        // A batch that ends between two slices releases its held messages earlier.
        let op = step.op.without_batches().resolve(&pair.model);
        let plan = pair.queue.plan(&op, pair.now);
        let mut sliced = pair.queue.clone();
        pair.apply(&op);
        if let Some(mut plan) = plan {
            let moment = Moment::at_ms(pair.now);
            let mut slices = 0;
            while let Some(op) = next_op(&mut plan, &sliced, most, pair.now) {
                let done = sliced.apply(&op, moment);
                assert!(matches!(done, Ok(Done::Count(_))), "{done:?}");
                slices += 1;
                assert!(slices < MOST_SLICES, "{op:?} is never done");
            }
            assert_eq!(all_seen(&sliced, pair.now), all_seen(&pair.queue, pair.now));
            assert_eq!(sliced.totals(), pair.queue.totals());
            assert_eq!(sliced.bytes(), pair.queue.bytes());
            assert_eq!(sliced.groups_listed(), pair.queue.groups_listed());
            for state in State::ALL {
                assert_eq!(sliced.count(state), pair.queue.count(state), "{state:?}");
            }
            let dedup = |queue: &Queue| queue.state.records.dedup.entries().len();
            assert_eq!(dedup(&sliced), dedup(&pair.queue));
        }
        pair.advance(pair.now);
    }
}

/// The next slice with a change.
fn next_op(plan: &mut Plan, queue: &Queue, most: u64, now: Millis) -> Option<Op<'static>> {
    loop {
        match plan.next(queue, most, now) {
            Step::Do(op) => return Some(*op),
            Step::Look => {}
            Step::Done => return None,
        }
    }
}
