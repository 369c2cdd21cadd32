//! Which slots this node serves, for commands that find their queues themselves. The server tells
//! modules of no change, so the cluster is asked now and then.

use std::cell::RefCell;

use crate::redis::{clock, Context, Name, OwnSlots};
use dq_queue::family;

use super::blocked_fetch;
use super::families;

/// The slots are read again after this time, in ms.
const READ_MS: u64 = 250;

#[derive(Default)]
struct Known {
    /// `None` before they were read.
    slots: Option<OwnSlots>,
    /// When they were last read, in ms of the monotonic clock.
    read_at: u64,
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Reads the slots of this node, if that was not done lately. If they have changed, the clients that
/// are blocked in NFETCH get their reply, so that they can look at the cluster anew. O(nodes).
pub fn check(ctx: &Context) {
    if !ctx.is_in_cluster() {
        return;
    }
    let now = clock::monotonic_us() / 1000;
    let is_due = KNOWN.with_borrow(|known| known.slots.is_none() || known.read_at + READ_MS <= now);
    if !is_due {
        return;
    }
    let slots = ctx.own_slots();
    let has_changed = KNOWN.with_borrow_mut(|known| {
        known.read_at = now;
        let before = std::mem::replace(&mut known.slots, slots);
        before.is_some() && before != known.slots
    });
    if has_changed {
        families::slots_changed();
        blocked_fetch::answer_families();
    }
}

/// Whether this node serves the slot of a queue of a family, as far as is known.
pub fn is_ours(ctx: &Context, key: Name<'_>) -> bool {
    if !ctx.is_in_cluster() {
        return true;
    }
    let slot = family::slot_of_queue(key.bytes());
    let is_known = KNOWN.with_borrow(|known| {
        let slots = known.slots.as_ref();
        slots.is_none_or(|slots| slots.contains(slot))
    });
    is_known && ctx.owns(key)
}
