//! Warns in the log of a server that does not keep its queues as one may expect: a policy that
//! evicts, no append-only file, fewer replicas than a write needs.
//!
//! Each is said once, after the module and the data were loaded. Replicas get a while to connect
//! first: a primary that has started a moment ago never has any.

use std::cell::Cell;

use crate::redis::{clock, warn, Context, Keeping};
use dq_queue::Millis;

/// Replicas may be missing for this long after a start or a failover, in ms.
const PATIENCE: Millis = 5000;

/// The check that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Disk,
    /// The check of the replicas, if this server is a primary by then, at this time of the
    /// monotonic clock in ms.
    Replicas(Millis),
    Nothing,
}

thread_local! {
    static NEXT: Cell<Next> = const { Cell::new(Next::Disk) };
}

/// Writes the lines that are due. Called by the server's cron, which does not run while data is
/// loaded.
pub fn write_lines(ctx: &Context) {
    let now = clock::monotonic_us() / 1000;
    match NEXT.get() {
        Next::Disk => {
            NEXT.set(Next::Replicas(now + PATIENCE));
            of_disk(&ctx.keeping()).for_each(|line| warn(&line));
        }
        Next::Replicas(at) if at <= now && ctx.is_primary() => {
            NEXT.set(Next::Nothing);
            let keeping = ctx.keeping();
            let words = dq_warnings::replicas(keeping.good_replicas, keeping.replicas_needed);
            words.iter().for_each(|line| warn(line));
        }
        Next::Replicas(_) | Next::Nothing => {}
    }
}

/// This server has become a primary or a replica. The replicas of a new primary are still to come.
pub fn role_changed() {
    if let Next::Replicas(_) = NEXT.get() {
        NEXT.set(Next::Replicas(clock::monotonic_us() / 1000 + PATIENCE));
    }
}

fn of_disk(keeping: &Keeping) -> impl Iterator<Item = String> {
    let policy = keeping.policy.as_deref();
    let appendonly = keeping.appendonly;
    let evicted = policy.and_then(dq_warnings::eviction);
    let lost = appendonly.and_then(|on| dq_warnings::persistence(on, keeping.saves));
    evicted.into_iter().chain(lost)
}
