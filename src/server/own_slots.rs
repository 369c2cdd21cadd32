//! Which slots this node serves, for commands that find their queues themselves. The server tells
//! modules of no change, so the cluster is asked now and then.

use std::cell::RefCell;

use crate::redis::{clock, Context, OwnSlots};

use super::blocked_fetch::{self, wait_list};
use super::families::{self, QueueName};
use super::wakeups;

/// The slots are read again after this time, in ms. Waiting clients learn of changes as often.
const READ_MS: u64 = 250;

/// The slots are read again after this time, in ms, while a slot is expected.
const HURRY_MS: u64 = 10;

/// For how long a slot is expected after one of its queues has come, in ms.
const EXPECTED_MS: u64 = 2_000;

/// Reading takes at most one part of the time in so many.
const PART: u64 = 100;

#[derive(Default)]
struct Known {
    /// `None` before they were read.
    slots: Option<OwnSlots>,
    /// When they were last read, in ms of the monotonic clock.
    read_at: u64,
    /// How long it took to read them, in us.
    took: u64,
    /// Until when a slot is expected, in ms of the monotonic clock.
    expected_until: u64,
    /// Whether waiting clients must learn of a change.
    has_changed: bool,
    /// When they last did, in ms of the monotonic clock.
    told_at: u64,
}

impl Known {
    /// After how many ms the slots are read again.
    fn interval(&self, now: u64) -> u64 {
        match now < self.expected_until {
            true => HURRY_MS.max(self.took * PART / 1000),
            false => READ_MS,
        }
    }

    /// Whether waiting clients must learn of a change now. Notes that they do.
    fn must_tell(&mut self, now: u64) -> bool {
        let must_tell = self.has_changed && self.told_at + READ_MS <= now;
        if must_tell {
            self.has_changed = false;
            self.told_at = now;
        }
        must_tell
    }
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Reads the slots of this node, if that was not done lately. Some time after they have changed, the
/// clients that are blocked in NFETCH get their reply, at most four times a second, so that they can
/// look at the cluster anew. O(nodes).
pub fn check(ctx: &Context) {
    if !ctx.is_in_cluster() {
        return;
    }
    let now = now_ms();
    // First, so that clients that wait get messages of queues that have come with the change.
    if KNOWN.with_borrow_mut(|known| known.must_tell(now)) {
        blocked_fetch::answer_families();
    }
    let is_due = KNOWN
        .with_borrow(|known| known.slots.is_none() || known.read_at + known.interval(now) <= now);
    if is_due {
        read(ctx, now);
    }
}

fn read(ctx: &Context, now: u64) {
    let began = clock::monotonic_us();
    let slots = ctx.own_slots();
    let has_changed = KNOWN.with_borrow_mut(|known| {
        known.read_at = now;
        known.took = clock::monotonic_us() - began;
        let before = std::mem::replace(&mut known.slots, slots);
        let has_changed = before.is_some() && before != known.slots;
        known.has_changed |= has_changed;
        has_changed
    });
    if has_changed {
        // Clients that wait here get messages of queues that have come, without a call of theirs.
        for (db, key) in families::slots_changed() {
            wait_list::schedule(db, &key);
        }
    }
}

/// A queue has come whose slot is not this node's: the slot is probably about to come, too.
pub fn expect(ctx: &Context) {
    KNOWN.with_borrow_mut(|known| known.expected_until = now_ms() + EXPECTED_MS);
    wakeups::ensure(ctx, clock::now_ms() + HURRY_MS);
}

/// Checks often while a slot is expected. Called by the timer.
pub fn follow(ctx: &Context) {
    let now = now_ms();
    if KNOWN.with_borrow(|known| now < known.expected_until) {
        check(ctx);
        let interval = KNOWN.with_borrow(|known| known.interval(now));
        wakeups::ensure(ctx, clock::now_ms() + interval);
    }
}

fn now_ms() -> u64 {
    clock::monotonic_us() / 1000
}

/// Whether this node serves the slot of a queue of a family, as far as is known.
pub fn is_ours(ctx: &Context, queue: &QueueName) -> bool {
    if !ctx.is_in_cluster() {
        return true;
    }
    let is_known = KNOWN.with_borrow(|known| {
        let slots = known.slots.as_ref();
        slots.is_none_or(|slots| slots.contains(queue.slot()))
    });
    is_known && ctx.owns(queue.name())
}
