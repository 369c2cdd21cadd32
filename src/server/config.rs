//! The settings of the module: the defaults of queues, and the limits of the server.

use crate::redis::Setting;

/// The largest value of a time or a count: 2^53 - 1, which every client language can represent
/// exactly.
const MAX_EXACT: i64 = (1 << 53) - 1;

/// The default LEASE of a queue, in ms.
pub static LEASE: Setting = Setting::new("lease", 30_000, 1, MAX_EXACT);
/// The default RETRIES of a queue. -1: no limit.
pub static RETRIES: Setting = Setting::new("retries", 3, -1, MAX_EXACT);
/// The default RETAIN of a queue, in ms.
pub static RETAIN: Setting = Setting::new("retain", 0, 0, MAX_EXACT);
/// The default RETAINCOUNT of a queue. 0: no limit.
pub static RETAIN_COUNT: Setting = Setting::new("retain-count", 10_000, 0, MAX_EXACT);
/// The maximum size of a payload, in bytes. It must leave room in a log entry, which holds the
/// whole payload with ids and options and uses lengths of 32 bits.
pub static MAX_PAYLOAD: Setting =
    Setting::new("max-payload", 512 << 20, 1, u32::MAX as i64).in_bytes();
/// The maximum time that one slice may block the server, in microseconds. A slice is work of the
/// timer or serving blocked clients.
pub static TICK_BUDGET_US: Setting = Setting::new("tick-budget-us", 500, 10, 1_000_000);

/// For how long no lease ends after the server has started, in ms.
pub static START_GRACE: Setting = Setting::new("start-grace", 5_000, 0, 86_400_000);

/// All settings.
pub static ALL: [&Setting; 7] = [
    &LEASE,
    &RETRIES,
    &RETAIN,
    &RETAIN_COUNT,
    &MAX_PAYLOAD,
    &TICK_BUDGET_US,
    &START_GRACE,
];
