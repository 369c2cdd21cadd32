//! Whether the server refuses the writes of its clients: a primary with too few good replicas
//! (min-replicas-to-write), and a server whose last save or append has failed
//! (stop-writes-on-bgsave-error).
//!
//! Such a server must not deliver messages either. A consumer could not settle what it gets, and
//! the server that takes over would deliver it once more.

use super::facts::{number, setting, with_info};
use super::{clock, Context};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// An answer is used for this long while the server takes writes, in microseconds. Asking costs
/// some 30 microseconds.
const VALID_US: u64 = 50_000;

static IS_REFUSING: AtomicBool = AtomicBool::new(false);
/// Until when the last answer is used, on the monotonic clock.
static VALID_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Whether the server refuses writes. An answer is up to [`VALID_US`] old while it does not; while
/// it does, each call asks anew, so the end is seen at once.
pub(super) fn is_refusing(ctx: &Context) -> bool {
    let now = clock::monotonic_us();
    if now < VALID_UNTIL.load(Relaxed) && !IS_REFUSING.load(Relaxed) {
        return false;
    }
    let refuses = lacks_replicas(ctx) || has_disk_error(ctx);
    IS_REFUSING.store(refuses, Relaxed);
    VALID_UNTIL.store(now + VALID_US, Relaxed);
    refuses
}

/// Whether there are fewer good replicas than min-replicas-to-write asks for.
fn lacks_replicas(ctx: &Context) -> bool {
    let good = with_info(ctx, c"replication", |info| {
        // The server has this field only where both settings of replicas are set.
        info.number(c"min_slaves_good_slaves")
    });
    let needed = |good| {
        setting(ctx, c"min-replicas-to-write", |text| {
            number(text) > Some(good)
        }) == Some(true)
    };
    good.flatten().is_some_and(needed)
}

/// Whether the last save or append has failed, and the server refuses writes for it (server.c,
/// writeCommandsDeniedByDiskError).
fn has_disk_error(ctx: &Context) -> bool {
    let failed = with_info(ctx, c"persistence", |info| {
        let is_bad = |field| info.text(field, |text| text == b"err") == Some(true);
        (
            is_bad(c"rdb_last_bgsave_status"),
            is_bad(c"aof_last_write_status"),
        )
    });
    match failed {
        Some((_, true)) => true,
        Some((true, false)) => {
            let is_met = |name, met: fn(&[u8]) -> bool| setting(ctx, name, met) == Some(true);
            is_met(c"stop-writes-on-bgsave-error", |text| text == b"yes")
                && is_met(c"save", |text| !text.is_empty())
        }
        _ => false,
    }
}

/// Whether a FAILOVER of this primary is under way.
pub(super) fn is_failing_over(ctx: &Context) -> bool {
    let is_none = with_info(ctx, c"replication", |info| {
        info.text(c"master_failover_state", |text| text == b"no-failover")
    });
    is_none.flatten() == Some(false)
}
