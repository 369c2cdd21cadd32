//! The clock of operations: the time, and the receipts that an operation may use.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::redis::clock as server_clock;
use dq_queue::{Moment, Receipt, MAX_EXACT};

/// Only the server's main thread uses it; an atomic costs less to reach than a
/// thread's own.
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);

/// A receipt further ahead of the clock than this, in microseconds, came out of
/// a made-up snapshot and is not followed.
const BELIEVED_AHEAD: u64 = 3600 * 1_000_000;

/// The present moment. Its receipts are above all that this server has given
/// out or seen, in whatever queue: a key that is deleted and made again
/// cannot use one twice.
pub fn now() -> Moment {
    at(server_clock::now_us())
}

/// The present moment, or one that is some microseconds ago (see [`server_clock::recent_us`]):
/// for commands of which many come in each.
#[inline]
pub fn recent() -> Moment {
    at(server_clock::recent_us())
}

#[inline]
fn at(us: u64) -> Moment {
    Moment {
        us,
        receipt: us.max(last_receipt() + 1).min(MAX_EXACT),
    }
}

/// The last receipt that this server has given out or seen.
pub fn last_receipt() -> Receipt {
    LAST_RECEIPT.load(Relaxed)
}

/// Notes the last receipt of a queue, at a time of the server in microseconds.
pub fn saw_receipt(receipt: Receipt, us: u64) {
    if receipt > last_receipt() && receipt <= us.saturating_add(BELIEVED_AHEAD) {
        LAST_RECEIPT.store(receipt, Relaxed);
    }
}

/// Notes that another server has acted at this time, so that this one does not
/// act at an earlier one.
pub fn saw_time(us: u64) {
    server_clock::observe_us(us);
}

/// A random number. Not secret; it spreads things.
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    thread_local! {
        static SEED: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
    }
    let next = SEED.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    SEED.set(next);
    dq_queue::message::retry::mix(next, 0)
}
