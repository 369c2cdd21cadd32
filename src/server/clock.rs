//! The moments of operations: the time, and the first receipt that an operation may give out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use lazy_static::lazy_static;

use super::address::QueueAddress;
use crate::redis::{clock as redis_clock, Context, Name};
use dq_queue::{Moment, Receipt, MAX_EXACT};

/// The last receipt that this server has given out by its clock. Only the main thread uses it; an
/// atomic is cheaper to access than a thread-local.
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last receipts of the queues that gave out receipts ahead of this server's clock, by
    /// their keys. Leads that the clock has passed are dropped when the next one comes.
    static AHEAD: RefCell<HashMap<QueueAddress, Receipt>> = RefCell::default();
}
/// Whether there are any in `AHEAD`.
static ARE_AHEAD: AtomicBool = AtomicBool::new(false);

lazy_static! {
    /// The last random number before mixing. The first is drawn at first use.
    static ref SEED: AtomicU64 = AtomicU64::new(RandomState::new().build_hasher().finish());
}

/// The maximum number of receipts that one operation can give out.
const MAX_GIVEN: u64 = 10_000;

/// The present moment. Its receipt is above all receipts that this server has given out by its clock
/// in any queue. So a queue that is deleted and created again cannot use a receipt twice. A queue
/// that came from a server whose clock was ahead has receipts of its own, above its last one, until
/// the clock has caught up.
pub fn now() -> Moment {
    at(redis_clock::now_us())
}

/// The present moment, or one that is some microseconds old (see [`redis_clock::recent_us`]). It
/// is cheaper than [`now`], for commands that are called very often.
#[inline]
pub fn recent() -> Moment {
    at(redis_clock::recent_us())
}

/// Whether the clock of the server was set back since the last call, by more than it compensates
/// itself.
#[inline]
pub fn was_set_back() -> bool {
    redis_clock::take_set_back()
}

#[inline]
fn at(us: u64) -> Moment {
    Moment {
        us,
        receipt: us.max(last_receipt() + 1).min(MAX_EXACT),
    }
}

/// The last receipt that this server has given out by its clock.
pub fn last_receipt() -> Receipt {
    LAST_RECEIPT.load(Relaxed)
}

/// Remembers the last receipt of a queue, after an operation whose receipts began at `lowest`. If
/// the receipts of the queue are far above, the queue came from a server whose clock was ahead.
/// Then they are remembered for its key only, so that other queues need not follow.
#[inline]
pub fn gave_receipt(ctx: &Context, key: Name<'_>, receipt: Receipt, lowest: Receipt) {
    if receipt <= last_receipt() {
        return;
    }
    let lowest = match ARE_AHEAD.load(Relaxed) {
        false => lowest,
        // The number may have been raised for this key.
        true => recent().receipt,
    };
    match receipt < lowest.saturating_add(MAX_GIVEN) {
        true => LAST_RECEIPT.store(receipt, Relaxed),
        false => gave_ahead(ctx, key, receipt, lowest),
    }
}

#[cold]
fn gave_ahead(ctx: &Context, key: Name<'_>, receipt: Receipt, lowest: Receipt) {
    AHEAD.with_borrow_mut(|ahead| {
        ahead.retain(|_, last| *last >= lowest);
        ahead.insert((ctx.db(), key.bytes().into()), receipt);
        ARE_AHEAD.store(true, Relaxed);
    });
}

/// The moment at which the queue in a key may act. If a queue whose receipts were ahead was there
/// before, which was deleted or replaced since, its receipts are not given out again.
#[inline]
pub fn of_key(moment: Moment, ctx: &Context, key: Name<'_>) -> Moment {
    match ARE_AHEAD.load(Relaxed) {
        false => moment,
        true => of_key_ahead(moment, ctx, key),
    }
}

#[cold]
fn of_key_ahead(moment: Moment, ctx: &Context, key: Name<'_>) -> Moment {
    let address = (ctx.db(), key.bytes().into());
    let last = AHEAD.with_borrow(|ahead| ahead.get(&address).copied());
    Moment {
        receipt: moment.receipt.max(last.map_or(0, |last| last + 1)),
        ..moment
    }
}

/// A random number, for jitter and hash salts. It is not fit for secrets.
pub fn random() -> u64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let last = SEED.fetch_add(STEP, Relaxed);
    dq_queue::message::retry::mix(last.wrapping_add(STEP), 0)
}
