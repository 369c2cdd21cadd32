//! What the timer does: it runs slices of the queues whose time has come.

use crate::redis::{clock as server_clock, Context, Name, OwnedName};
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::op::Receipts;
use dq_queue::settings::Clock;
use dq_queue::{Done, Millis, Moment, Op, Queue};

use super::commit::{self, change, Replication, Slot};
use super::{bound_leases, bulk_ops, clock, config, due_index, metrics, wakeups};

/// Steps between two readings of the clock.
const STEPS: u64 = 64;
/// Removed messages that are freed between two readings of the clock.
const FREED: usize = 512;
/// How long until a queue of a slot that this node does not serve is tried again, in ms.
pub const NOT_OURS_MS: u64 = 100;

/// The timer has fired. One queue that has something to replicate is served
/// in one firing: two log entries of one firing would be wrapped in a transaction.
pub fn fire(ctx: &mut Context) {
    wakeups::fired();
    wakeups::end_waits(ctx);
    if !ctx.may_act() {
        if ctx.is_primary() {
            wakeups::ensure(ctx, server_clock::now_ms() + wakeups::ASK_AGAIN_MS);
        }
        return;
    }
    let replicated = match bound_leases::next_released() {
        Some(((db, key), receipts)) => {
            let name = OwnedName::new(&key);
            ctx.select_db(db) && end_leases(ctx, name.name(), receipts)
        }
        None => false,
    };
    if !replicated {
        run_due_slices(ctx);
    }
    match bound_leases::any_released() {
        true => wakeups::ensure(ctx, 0),
        false => wakeups::set_to_next(ctx),
    }
}

/// Runs slices of due queues until one of them had something to replicate or the budget is used
/// up.
fn run_due_slices(ctx: &mut Context) {
    let start = server_clock::monotonic_us();
    let budget = config::TICK_BUDGET_US.unsigned();
    while let Some((due, (db, key))) = wakeups::next_due(server_clock::now_ms()) {
        if !ctx.select_db(db) {
            wakeups::with_index(|index| index.forget(db, &key));
            continue;
        }
        let name = OwnedName::new(&key);
        let now = server_clock::now_ms();
        if !ctx.owns(name.name()) {
            wakeups::with_index(|index| index.schedule(db, &key, now + NOT_OURS_MS));
            continue;
        }
        let began = server_clock::monotonic_us();
        let lag = match due {
            due_index::LOADED | due_index::ARRIVED => 0,
            due => now.saturating_sub(due),
        };
        let replicated = run_slice(ctx, name.name(), db, began + budget, due);
        let took = server_clock::monotonic_us() - began;
        metrics::count_slice(took);
        metrics::count_lag(lag);
        ctx.latency_sample(c"dq-tick", took / 1000);
        if replicated || server_clock::monotonic_us() - start >= budget {
            return;
        }
    }
}

/// What a slice did.
#[derive(Default)]
struct Ran {
    /// Whether there was anything to replicate.
    changed: bool,
    /// The slice of a bulk operation in it: its outcome, and how long it took and should take, in
    /// microseconds.
    bulk: Option<(bulk_ops::Slice, Done, u64, u64)>,
}

/// Runs one slice of a queue, until `deadline` on the monotonic clock: due events, then a part of
/// a bulk operation. `due` is when it was to run. Returns whether there was anything to replicate.
fn run_slice(ctx: &mut Context, key: Name<'_>, db: i32, deadline: u64, due: Millis) -> bool {
    let ran = change(ctx, key, |slot| run_slice_in(slot, key, db, deadline, due));
    let Ok(Some(ran)) = ran else {
        wakeups::with_index(|index| index.forget(db, key.bytes()));
        return false;
    };
    if let Some((slice, done, took, aim)) = ran.bulk {
        bulk_ops::slice_done(db, key.bytes(), &slice, &done, took, aim);
    }
    if bulk_ops::any(db, key.bytes()) {
        // The clock of a queue made with CLOCK MANUAL does not wake the timer.
        wakeups::schedule(ctx, db, key.bytes(), clock::now().ms());
    }
    ran.changed
}

/// [`run_slice`] on the open key; `None` where it holds no queue.
fn run_slice_in(
    slot: &mut Slot<'_>,
    key: Name<'_>,
    db: i32,
    deadline: u64,
    due: Millis,
) -> Option<Ran> {
    let queue = slot.split().1?;
    clock::saw_receipt(queue.last_receipt(), clock::now().us);
    if due == due_index::LOADED && queue.clock() == Clock::Server {
        clock::saw_time(queue.last_seen().saturating_mul(1000));
    }
    let moment = clock::now();
    if matches!(due, due_index::LOADED | due_index::ARRIVED) {
        // Nothing could fire where it was before.
        queue.noted_arrival = moment.ms();
    }
    let since = wakeups::firing_since(queue, moment.ms());
    let (mut steps, mut bulk) = (0, None);
    // A bulk operation that can go on gets half of the time.
    let half = deadline.saturating_sub(server_clock::monotonic_us()) / 2;
    let missed = queue.has_missed(since);
    if !missed {
        let next_slice = |queue: &mut Queue| {
            let now = queue.now(moment);
            bulk_ops::next_slice(db, key.bytes(), queue, now)
        };
        let until = match next_slice(queue) {
            Some(_) => deadline - half,
            None => deadline,
        };
        steps = advance(queue, moment, until);
        bulk = next_slice(queue);
    }
    let op = match &bulk {
        Some(slice) => slice.op.clone(),
        None if missed => Op::CatchUp { since },
        None => Op::Tick,
    };
    let advanced = server_clock::monotonic_us();
    // A Tick, too, is applied exactly as replicas will apply it.
    let Ok(done) = queue.apply(&op, moment) else {
        return Some(Ran::default());
    };
    let took = server_clock::monotonic_us() - advanced;
    while queue.has_discarded() && server_clock::monotonic_us() < deadline {
        queue.sweep(FREED);
    }
    // The time for which the timer was scheduled has come: it is scheduled anew.
    queue.noted_wake = None;
    let entry = LogEntry::of(moment, steps, None, &op);
    slot.commit(moment, Replication::Entry(&entry));
    Some(Ran {
        changed: steps > 0 || op != Op::Tick,
        bulk: bulk.map(|slice| (slice, done, took, half)),
    })
}

/// Processes due events until `deadline`. Returns the number of steps it took.
fn advance(queue: &mut Queue, moment: Moment, deadline: u64) -> u64 {
    let now = queue.now(moment);
    let mut steps = 0;
    loop {
        let progress = queue.advance(now, STEPS);
        steps += progress.steps;
        // Each time a schedule fires is replicated by itself.
        let fired = progress.ticked.fired > 0;
        if progress.caught_up || fired || server_clock::monotonic_us() >= deadline {
            return steps;
        }
    }
}

/// Ends leases whose connection is closed. Returns whether there was anything to replicate.
fn end_leases(ctx: &mut Context, key: Name<'_>, receipts: Receipts) -> bool {
    let ended = change(ctx, key, |slot| {
        let queue = slot.split().1?;
        let moment = clock::now();
        let steps = commit::process_due_events(queue, moment);
        let op = Op::EndLeases { receipts };
        queue.apply(&op, moment).ok()?;
        let entry = LogEntry::of(moment, steps, None, &op);
        slot.commit(moment, Replication::Entry(&entry));
        Some(())
    });
    matches!(ended, Ok(Some(())))
}
