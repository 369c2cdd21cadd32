//! The moments of operations: the time, and the first receipt that an operation may give out.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::LazyLock;

use crate::redis::clock as server_clock;
use dq_queue::{Moment, Receipt, MAX_EXACT};

/// The last receipt that this server has given out or seen. Only the main thread uses it; an atomic
/// is cheaper to access than a thread-local.
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);

/// The last random number before mixing. The first is drawn at first use.
static SEED: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(RandomState::new().build_hasher().finish()));

/// How far a receipt may be ahead of the clock, in microseconds. A receipt further ahead comes from
/// a forged or damaged snapshot and is ignored.
const MAX_RECEIPT_LEAD_US: u64 = 3600 * 1_000_000;

/// The present moment. Its receipt is above all receipts that this server has given out or seen in
/// any queue. So a queue that is deleted and created again cannot use a receipt twice.
pub fn now() -> Moment {
    at(server_clock::now_us())
}

/// The present moment, or one that is some microseconds old (see [`server_clock::recent_us`]). It
/// is cheaper than [`now`], for commands that are called very often.
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

/// Remembers the last receipt of a queue. `us` is the time of the server in microseconds since
/// 1970.
pub fn saw_receipt(receipt: Receipt, us: u64) {
    if receipt > last_receipt() && receipt <= us.saturating_add(MAX_RECEIPT_LEAD_US) {
        LAST_RECEIPT.store(receipt, Relaxed);
    }
}

/// A random number, for jitter and hash salts. It is not fit for secrets.
pub fn random() -> u64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let last = SEED.fetch_add(STEP, Relaxed);
    dq_queue::message::retry::mix(last.wrapping_add(STEP), 0)
}
