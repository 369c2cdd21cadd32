//! The moment of an operation: the queue clock, and the receipts it may use.

use std::cell::Cell;

use crate::core::{Moment, Receipt, MAX_EXACT};
use crate::ffi::clock;

thread_local! {
    static LAST_RECEIPT: Cell<Receipt> = const { Cell::new(0) };
}

/// The present moment. Its receipts are above all that this server has given
/// out or seen, in whatever queue: a key that is deleted and made again
/// cannot use one twice.
pub fn now() -> Moment {
    let us = clock::now_us();
    Moment {
        us,
        receipt: us.max(LAST_RECEIPT.get() + 1).min(MAX_EXACT),
    }
}

/// Notes the last receipt of a queue.
pub fn saw_receipt(receipt: Receipt) {
    if receipt > LAST_RECEIPT.get() {
        LAST_RECEIPT.set(receipt);
    }
}

/// Notes that another server has acted at this time, so that this one does not
/// act at an earlier one.
pub fn saw_time(us: u64) {
    clock::observe_us(us);
}

/// A random number. Not secret; it spreads things.
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    thread_local! {
        static SEED: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
    }
    let next = SEED.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    SEED.set(next);
    crate::core::retry::mix(next, 0)
}
