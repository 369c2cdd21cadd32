//! The slots that this node serves, for commands that find their queues themselves. The server
//! tells modules of no change, so the cluster is asked now and then.

use std::cell::RefCell;

use crate::redis::{clock, Context, Name, OwnSlots};

use super::wakeups;

/// The slots are read again after this time, in ms. Waiting clients learn of changes as often.
const READ_MS: u64 = 250;

/// The slots are read again after this time, in ms, while a slot is expected.
const HURRY_MS: u64 = 10;

/// A slot is expected for this long after one of its queues has come, in ms.
const EXPECTED_MS: u64 = 2_000;

/// Reading takes at most 1/100 of the time.
const PART: u64 = 100;

#[derive(Default)]
struct Known {
    /// The slots; `None` before they were read.
    slots: Option<OwnSlots>,
    /// When the slots were last read, in ms of the monotonic clock.
    read_at: u64,
    /// How long the last reading of the slots took, in us.
    took: u64,
    /// Until when a slot is expected, in ms of the monotonic clock.
    expected_until: u64,
    /// Whether waiting clients must learn of a change.
    has_changed: bool,
    /// When clients last learnt of a change, in ms of the monotonic clock.
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

/// Whether clients that wait must learn of a change now: some time after it, and at most four times a
/// second. Notes that they do.
pub fn must_tell() -> bool {
    KNOWN.with_borrow_mut(|known| known.must_tell(now_ms()))
}

/// Reads the slots of this node, if that was not done lately. Returns whether they have changed.
/// O(nodes).
pub fn refresh(ctx: &Context) -> bool {
    let now = now_ms();
    let is_due = KNOWN
        .with_borrow(|known| known.slots.is_none() || known.read_at + known.interval(now) <= now);
    is_due && read(ctx, now)
}

fn read(ctx: &Context, now: u64) -> bool {
    let began = clock::monotonic_us();
    let slots = ctx.own_slots();
    KNOWN.with_borrow_mut(|known| {
        known.read_at = now;
        known.took = clock::monotonic_us() - began;
        let before = std::mem::replace(&mut known.slots, slots);
        let has_changed = before.is_some() && before != known.slots;
        if has_changed {
            known.has_changed = true;
            // First, the queues that have come may give their messages to waiting clients.
            known.told_at = known.told_at.max((now + HURRY_MS).saturating_sub(READ_MS));
        }
        has_changed
    })
}

/// Notes that a queue has come whose slot is not this node's: the slot will probably come, too.
pub fn expect(ctx: &Context) {
    KNOWN.with_borrow_mut(|known| known.expected_until = now_ms() + EXPECTED_MS);
    wakeups::ensure(ctx, clock::now_ms() + HURRY_MS);
}

/// While a slot is expected: after how many ms the slots are read again.
pub fn expected_within() -> Option<u64> {
    let now = now_ms();
    KNOWN.with_borrow(|known| (now < known.expected_until).then(|| known.interval(now)))
}

fn now_ms() -> u64 {
    clock::monotonic_us() / 1000
}

/// Whether this node serves the slot of a queue, as far as this node knows.
pub fn is_ours(ctx: &Context, name: Name<'_>, slot: impl FnOnce() -> u32) -> bool {
    if !ctx.is_in_cluster() {
        return true;
    }
    let is_known = KNOWN.with_borrow(|known| {
        let slots = known.slots.as_ref();
        slots.is_none_or(|slots| slots.contains(slot()))
    });
    is_known && ctx.owns(name)
}
