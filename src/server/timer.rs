//! The timer's handler: it runs slices of the queues that are due.

use std::cell::Cell;

use crate::redis::clock as redis_clock;
use crate::redis::{Context, Name, OwnedName, Value};
use dq_queue::limits::MAX_STEPS;
use dq_queue::queue::bulk::Step;
use dq_queue::{Done, Moment, Op, Queue};

use super::address::QueueAddress;
use super::commit::{self, begin_without_events, change, change_up_to_date, Begun, Slot};
use super::due_index::Due;
use super::serving::{serve, slots};
use super::{arrivals, bound_leases, bulk_ops, clock, config, metrics, moving_slots, wakeups};

/// The number of steps between two readings of the clock.
const STEPS: u64 = 64;
/// The number of removed messages that are freed between two readings of the clock.
const FREED: usize = 512;

/// The maximum number of timers in a burst. Each runs a few microseconds, and all timers of a turn
/// share one budget.
const MAX_BURST: usize = 256;
/// The maximum number of timers that a burst has beyond those that the last turn has used. Timers
/// for which the budget has no time only cost.
const MORE_IN_BURST: usize = 32;

thread_local! {
    /// When the slices of this turn of the event loop must end, on the monotonic clock. 0: none has
    /// run in this turn.
    static TURN_ENDS: Cell<u64> = const { Cell::new(0) };
    /// Whether the next turn continues with slices at once.
    static GOES_ON: Cell<bool> = const { Cell::new(false) };
    /// Whether the last slice of a queue with missed fire times was one of a bulk operation.
    static TURN_OF_BULK: Cell<bool> = const { Cell::new(false) };
    /// The number of timers in this turn that left work to another one though they had time.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Handles the timer.
pub fn fire(ctx: &mut Context) {
    wakeups::fired();
    wakeups::end_waits(ctx);
    run(ctx);
    slots::follow(ctx);
}

/// Handles a timer of a burst: it does the rest of the work of this turn.
pub fn fire_of_burst(ctx: &mut Context) {
    run(ctx);
}

/// Begins a new turn of the event loop. If work was left in the last one, sets a timer for it, or a
/// burst of them where one cannot replicate for all queues. Called before the server sleeps.
pub fn before_sleep(ctx: &mut Context) {
    TURN_ENDS.set(0);
    let left = LEFT.take();
    if GOES_ON.take() {
        let now = redis_clock::now_ms();
        let most = MAX_BURST.min(left + MORE_IN_BURST);
        let due = || wakeups::with_index(|index| index.count_due(now, most));
        let count = match left {
            0 => 1,
            _ => (due() + bound_leases::count_released())
                .max(2 * left)
                .min(most),
        };
        wakeups::burst(ctx, count);
    }
}

/// Does the due work, until the budget of this turn is used. The log entries for several queues
/// are replicated as one command, because the server would wrap two of one context in a
/// transaction. The next timer of the burst, in a context of its own, goes on where a second
/// command is needed. All timers of a turn of the event loop share `dq.tick-budget-us`.
fn run(ctx: &mut Context) {
    if !ctx.may_act() {
        if ctx.is_primary() {
            wakeups::ensure(ctx, redis_clock::now_ms() + wakeups::RETRY_MS);
        }
        return;
    }
    let budget = config::TICK_BUDGET_US.unsigned();
    let start = redis_clock::monotonic_us();
    let deadline = match TURN_ENDS.get() {
        0 => start + budget,
        deadline => deadline,
    };
    TURN_ENDS.set(deadline);
    // The last timer that had time decides how the next turn begins.
    if start < deadline {
        ctx.collect_log_entries();
        slots::check(ctx);
        end_released_leases(ctx, deadline);
        let longest = run_due_slices(ctx, deadline);
        let is_left = is_work_due();
        if is_left && redis_clock::monotonic_us() < deadline {
            LEFT.set(LEFT.get() + 1);
        }
        // A long slice is followed by a pause of a millisecond, in which clients are served.
        GOES_ON.set(is_left && longest < budget / 2);
    }
    match bound_leases::any_released() {
        true => wakeups::ensure(ctx, 0),
        false => wakeups::set_to_next(ctx),
    }
}

/// Whether a queue needs a slice now, or leases of closed connections are to be ended.
fn is_work_due() -> bool {
    bound_leases::any_released() || wakeups::is_due(redis_clock::now_ms())
}

/// Ends leases that closed connections have released, queue by queue, until `deadline` on the
/// monotonic clock.
fn end_released_leases(ctx: &mut Context, deadline: u64) {
    while redis_clock::monotonic_us() < deadline {
        let may_be = |(db, key): &QueueAddress| ctx.can_collect(*db, key);
        let Some(((db, key), receipts, grace)) = bound_leases::next_released(may_be) else {
            return;
        };
        let name = OwnedName::new(&key);
        let op = match grace {
            0 => Op::EndLeases { receipts },
            ms => Op::Grace { ms, receipts },
        };
        if ctx.select_db(db) {
            end_leases(ctx, name.name(), &op);
        }
    }
}

/// Runs slices of due queues until `deadline` on the monotonic clock. After a slice, the queue's
/// blocked clients are served. Returns how long the longest took, in microseconds.
fn run_due_slices(ctx: &mut Context, deadline: u64) -> u64 {
    let mut longest = 0;
    loop {
        let began = redis_clock::monotonic_us();
        let now = redis_clock::now_ms();
        let next = wakeups::next_due(now).filter(|(_, (db, key))| ctx.can_collect(*db, key));
        let Some((due, (db, key))) = next.filter(|_| began < deadline) else {
            return longest;
        };
        if !ctx.select_db(db) {
            wakeups::with_index(|index| index.forget(db, &key));
            continue;
        }
        let name = OwnedName::new(&key);
        if !ctx.owns(name.name()) || waits_for_slot(ctx, name.name(), due) {
            wakeups::with_index(|index| {
                index.schedule(db, &key, now + wakeups::NOT_OWNED_RETRY_MS)
            });
            continue;
        }
        let lag = match due {
            Due::Loaded | Due::Arrived => 0,
            Due::At(due) | Due::Behind(due) => now.saturating_sub(due),
        };
        run_slice(ctx, name.name(), db, deadline, due);
        serve::after_slice(ctx, name.name(), db, deadline);
        let is_behind = wakeups::with_index(|index| index.slice_ended(&(db, key), now));
        let took = redis_clock::monotonic_us() - began;
        longest = longest.max(took);
        metrics::count_slice(took);
        metrics::count_lag(lag);
        ctx.latency_sample(c"dq-tick", took / 1000);
        if is_behind {
            // Its next slice is a separate command in the log, like a fire of a schedule or a step
            // of a bulk operation.
            return longest;
        }
    }
}

/// Whether the slice of a queue waits for other keys of its slot. Notes the arrival of one that
/// does.
fn waits_for_slot(ctx: &mut Context, key: Name<'_>, due: Due) -> bool {
    let waits = moving_slots::waits(ctx, key);
    if let (true, Ok(mut opened)) = (waits, ctx.open_write(key)) {
        if let Some(queue) = opened.get_mut() {
            note_arrival(key, queue, clock::now(), due);
        }
    }
    waits
}

/// Notes that a queue was not in this key before, if it was not: its schedules could not fire.
fn note_arrival(key: Name<'_>, queue: &mut Value, server: Moment, due: Due) {
    if matches!(due, Due::Loaded | Due::Arrived) {
        queue.notes.arrival = queue.follow(server).ms();
        arrivals::arrived(key, queue.lead(server));
    }
}

/// Runs one slice of a queue, until `deadline` on the monotonic clock: due events, then a part of a
/// bulk operation. `due` is when the slice was due.
fn run_slice(ctx: &mut Context, key: Name<'_>, db: i32, deadline: u64, due: Due) {
    loop {
        let ran = change(ctx, key, |slot| run_slice_in(slot, key, db, deadline, due));
        let Ok(Some(ran)) = ran else {
            wakeups::with_index(|index| index.forget(db, key.bytes()));
            return;
        };
        if let Some(taken) = ran.bulk {
            bulk_ops::step_taken(db, key.bytes(), taken);
        }
        if ran.is_over || redis_clock::monotonic_us() >= deadline {
            break;
        }
    }
    if bulk_ops::any(db, key.bytes()) {
        // This schedules the next slice also for a queue with CLOCK MANUAL, which does not wake the
        // timer itself.
        wakeups::schedule(ctx, db, key.bytes(), clock::now().ms());
    }
}

/// The work that a part of a slice has done.
struct Ran {
    /// The step of a bulk operation in it, if there was one.
    bulk: Option<bulk_ops::Taken>,
    /// Whether the slice is over. Otherwise the last event owes something to other keys, and the
    /// slice goes on when that is settled.
    is_over: bool,
}

/// Runs a slice, as [`run_slice`] describes, on the open key, up to an event that owes something to
/// other keys. Returns `None` if the key holds no queue.
fn run_slice_in(
    slot: &mut Slot<'_>,
    key: Name<'_>,
    db: i32,
    deadline: u64,
    due: Due,
) -> Option<Ran> {
    let queue = slot.split().1?;
    let server = clock::now();
    let mut begun = begin_without_events(queue, server);
    let moment = begun.moment;
    note_arrival(key, queue, server, due);
    // While schedules make up for missed fires, all other work continues.
    let missed = wakeups::missed_before(queue, moment.ms());
    // A bulk operation gets half of the time, or every second slice.
    let half = deadline.saturating_sub(redis_clock::monotonic_us()) / 2;
    let skips = commit::has_fire_without_memory(queue, queue.now(moment));
    let fires_wait = skips || missed.is_some();
    let has_bulk = bulk_ops::any(db, key.bytes()) && (!fires_wait || is_turn_of_bulk());
    let until = if has_bulk { deadline - half } else { deadline };
    advance(queue, &mut begun, until, fires_wait);
    let advanced = redis_clock::monotonic_us();
    let mut step = None;
    let is_over = !queue.owes();
    if has_bulk && is_over {
        let now = queue.now(moment);
        step = bulk_ops::next_step(db, key.bytes(), queue, now);
    }
    let is_last = step == Some(Step::Done);
    let op = match step {
        Some(Step::Do(op)) => *op,
        _ if fires_wait && is_over => Op::CatchUp {
            since: missed.unwrap_or(0),
            skip: skips,
        },
        _ => Op::Tick,
    };
    let ran = slot.apply(begun, &op, |_, queue, done| {
        let taken = bulk_ops::Taken {
            count: match done {
                Done::Count(count) => *count,
                _ => 0,
            },
            is_last,
            took_us: redis_clock::monotonic_us() - advanced,
            aim_us: half,
        };
        while queue.has_garbage() && redis_clock::monotonic_us() < deadline {
            queue.free_garbage(FREED);
        }
        // The scheduled time has passed, so `commit` must schedule the next one.
        queue.notes.wake = None;
        (has_bulk && is_over).then_some(taken)
    });
    let bulk = ran.ok().flatten().flatten();
    Some(Ran { bulk, is_over })
}

/// Processes due events until `deadline`, without fires of schedules if these must wait.
fn advance(queue: &mut Queue, begun: &mut Begun, deadline: u64, fires_wait: bool) {
    loop {
        let progress = begun.advance(queue, STEPS, fires_wait);
        // Each firing of a schedule is replicated in a separate log entry.
        let ends = progress.caught_up || progress.ticked.fired > 0 || progress.steps == 0;
        let is_full = begun.before.steps + STEPS > MAX_STEPS;
        if ends || is_full || queue.tells_many() || redis_clock::monotonic_us() >= deadline {
            return;
        }
    }
}

/// Whether it is the turn of bulk operations, which take turns with missed fire times.
fn is_turn_of_bulk() -> bool {
    let turn = !TURN_OF_BULK.get();
    TURN_OF_BULK.set(turn);
    turn
}

/// Ends leases whose connection is closed, at once or after a grace, if the key still has a queue.
/// While a slot is on its way they may have to run until their own end.
fn end_leases(ctx: &mut Context, key: Name<'_>, op: &Op<'_>) {
    let now = clock::now();
    let _ = change_up_to_date(
        ctx,
        key,
        Some(op),
        |_| now,
        |slot, begun| slot.apply(begun?, op, |_, _, _| ()).ok()?,
    );
}
