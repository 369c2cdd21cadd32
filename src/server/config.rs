//! The settings of the module: defaults of queues and limits of the server.

use crate::redis::Setting;

/// The largest value of a time or a count: what every client language can
/// hold exactly (2^53 - 1).
const MAX_EXACT: i64 = (1 << 53) - 1;

/// LEASE of queues that set none, in ms.
pub static LEASE: Setting = Setting::new("lease", 30_000, 1, MAX_EXACT);
/// RETRIES of queues that set none; -1 for all.
pub static RETRIES: Setting = Setting::new("retries", 3, -1, MAX_EXACT);
/// RETAIN of queues that set none, in ms.
pub static RETAIN: Setting = Setting::new("retain", 0, 0, MAX_EXACT);
/// RETAINCOUNT of queues that set none; 0 for no limit.
pub static RETAIN_COUNT: Setting = Setting::new("retain-count", 10_000, 0, MAX_EXACT);
/// The longest payload that is accepted, in bytes. A record holds it whole,
/// with ids and options beside it, and lengths are 32 bits wide.
pub static MAX_PAYLOAD: Setting =
    Setting::new("max-payload", 512 << 20, 1, u32::MAX as i64).in_bytes();
/// The longest that one slice of timer work, or of serving those who wait, may
/// hold the server, in microseconds.
pub static TICK_BUDGET_US: Setting = Setting::new("tick-budget-us", 500, 10, 1_000_000);

/// All of them.
pub static ALL: [&Setting; 6] = [
    &LEASE,
    &RETRIES,
    &RETAIN,
    &RETAIN_COUNT,
    &MAX_PAYLOAD,
    &TICK_BUDGET_US,
];
