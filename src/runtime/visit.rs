//! What the timer does: it looks at the queues whose time has come.

use crate::command::execute::{self, settle};
use crate::config;
use crate::ffi::{clock, Context, Name, OwnedName};
use dq_queue::codec::record::Record;
use dq_queue::op::Receipts;
use dq_queue::settings::Clock;
use dq_queue::{Millis, Moment, Op, Queue};

use super::{bound, index, metrics, moment, postponed, wake};

/// Steps between two looks at the clock.
const STEPS: u64 = 64;
/// Purged messages freed between two looks at the clock.
const SWEPT: usize = 512;
/// A queue of a slot that this node does not serve is looked at again after
/// so long.
pub const NOT_OURS_MS: u64 = 100;

/// The timer has fired. One queue that has something to replicate is served
/// in one firing: two records of one firing would be wrapped in a transaction.
pub fn fire(ctx: &mut Context) {
    wake::fired();
    wake::end_waits(ctx);
    if !ctx.may_act() {
        if ctx.is_primary() {
            wake::ensure(ctx, clock::now_ms() + wake::ASK_AGAIN_MS);
        }
        return;
    }
    let replicated = match bound::next_released() {
        Some(((db, key), receipts)) => {
            let name = OwnedName::new(&key);
            ctx.select_db(db) && end_leases(ctx, name.name(), receipts)
        }
        None => false,
    };
    if !replicated {
        visit_due(ctx);
    }
    match bound::any_released() {
        true => wake::ensure(ctx, 0),
        false => wake::set_to_next(ctx),
    }
}

/// Visits queues that are due until one of them had something to replicate or
/// the budget is used up.
fn visit_due(ctx: &mut Context) {
    let start = clock::monotonic_us();
    let budget = config::TICK_BUDGET_US.unsigned();
    while let Some((due, (db, key))) = wake::next_due(clock::now_ms()) {
        if !ctx.select_db(db) {
            wake::with_index(|index| index.forget(db, &key));
            continue;
        }
        let name = OwnedName::new(&key);
        let now = clock::now_ms();
        if !ctx.owns(name.name()) {
            wake::with_index(|index| index.note(db, &key, now + NOT_OURS_MS));
            continue;
        }
        let began = clock::monotonic_us();
        let lag = match due {
            index::LOADED | index::ARRIVED => 0,
            due => now.saturating_sub(due),
        };
        let replicated = visit(ctx, name.name(), db, began + budget, due);
        let took = clock::monotonic_us() - began;
        metrics::count_slice(took);
        metrics::count_lag(lag);
        ctx.latency_sample(c"dq-tick", took / 1000);
        if replicated || clock::monotonic_us() - start >= budget {
            return;
        }
    }
}

/// Lets time act on one queue until `deadline` on the monotonic clock; whether
/// there was anything to replicate. It was `due` to be looked at.
fn visit(ctx: &mut Context, key: Name<'_>, db: i32, deadline: u64, due: Millis) -> bool {
    let Ok(mut opened) = ctx.open_write(key) else {
        wake::with_index(|index| index.forget(db, key.bytes()));
        return false;
    };
    let (here, Some(queue)) = opened.split() else {
        wake::with_index(|index| index.forget(db, key.bytes()));
        return false;
    };
    moment::saw_receipt(queue.last_receipt(), moment::now().us);
    if due == index::LOADED && queue.clock() == Clock::Server {
        moment::saw_time(queue.last_seen().saturating_mul(1000));
    }
    let moment = moment::now();
    if matches!(due, index::LOADED | index::ARRIVED) {
        // Nothing could fire where it was before.
        queue.noted_arrival = moment.ms();
    }
    let since = wake::firing_since(queue, moment.ms());
    let (mut steps, mut step) = (0, None);
    // Half of the time is for what a client waits for, if that can go on.
    let half = deadline.saturating_sub(clock::monotonic_us()) / 2;
    let missed = queue.has_missed(since);
    if !missed {
        let next_step = |queue: &mut Queue| {
            let now = queue.now(moment);
            postponed::next_step(db, key.bytes(), queue, now)
        };
        let until = match next_step(queue) {
            Some(_) => deadline - half,
            None => deadline,
        };
        steps = advance(queue, moment, until);
        step = next_step(queue);
    }
    let op = match &step {
        Some(step) => step.op.clone(),
        None if missed => Op::CatchUp { since },
        None => Op::Tick,
    };
    let advanced = clock::monotonic_us();
    // As the record will do it elsewhere.
    let Ok(done) = queue.apply(&op, moment) else {
        return false;
    };
    let took = clock::monotonic_us() - advanced;
    while queue.has_discarded() && clock::monotonic_us() < deadline {
        queue.sweep(SWEPT);
    }
    // What is noted is settled anew: the time it was noted for has come.
    queue.noted_wake = None;
    let record = Record::of(moment, steps, None, &op);
    let told = settle(here, key, queue, moment, &record);
    let changed = steps > 0 || op != Op::Tick;
    drop(opened);
    told.tell(ctx, key);
    if let Some(step) = step {
        postponed::made(db, key.bytes(), &step, &done, took, half);
    }
    if postponed::any(db, key.bytes()) {
        // Also where time has nothing to do there, as with a clock of its own.
        wake::note(ctx, db, key.bytes(), moment.ms());
    }
    changed
}

fn advance(queue: &mut Queue, moment: Moment, deadline: u64) -> u64 {
    let now = queue.now(moment);
    let mut steps = 0;
    loop {
        let progress = queue.advance(now, STEPS);
        steps += progress.steps;
        // A fire is told by itself.
        let fired = progress.ticked.fired > 0;
        if progress.caught_up || fired || clock::monotonic_us() >= deadline {
            return steps;
        }
    }
}

/// Ends leases whose connection is gone; whether there was anything to
/// replicate.
fn end_leases(ctx: &mut Context, key: Name<'_>, receipts: Receipts) -> bool {
    let Ok(mut opened) = ctx.open_write(key) else {
        return false;
    };
    let (here, Some(queue)) = opened.split() else {
        return false;
    };
    let moment = moment::now();
    let steps = execute::let_time_act(queue, moment);
    let op = Op::EndLeases { receipts };
    if queue.apply(&op, moment).is_err() {
        return false;
    }
    let record = Record::of(moment, steps, None, &op);
    let told = settle(here, key, queue, moment, &record);
    drop(opened);
    told.tell(ctx, key);
    true
}
