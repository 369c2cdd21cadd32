//! The settings of the module: the defaults of queues, and the limits of the server.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::redis::{Setting, TextSetting};
use dq_queue::args::{self, Words};
use dq_queue::settings::DefaultBackoff;

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

/// No lease ends for this long after the server has started, in ms.
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

/// The BACKOFF, MAXBACKOFF and JITTER of queues that say nothing of BACKOFF.
pub static BACKOFF: TextSetting = TextSetting::new(
    "backoff",
    "EXP 1000 MAXBACKOFF 3600000 JITTER 20",
    take_backoff,
);

/// Whether a queue that a client brings by RESTORE or COPY keeps its ties to other keys.
pub static RESTORE_TIES: TextSetting = TextSetting::new("restore-ties", "auto", take_restore_ties);

/// The default COMPRESS of a queue.
pub static COMPRESS: TextSetting = TextSetting::new("compress", "off", take_compress);

/// All settings that are texts.
pub static TEXTS: [&TextSetting; 3] = [&BACKOFF, &RESTORE_TIES, &COMPRESS];

static CURRENT_COMPRESS: AtomicBool = AtomicBool::new(false);

/// Whether a queue that is created now without COMPRESS keeps payloads packed.
pub fn compress() -> bool {
    CURRENT_COMPRESS.load(Relaxed)
}

fn take_compress(text: &str) -> Result<(), String> {
    let is_on = match text.to_ascii_lowercase().as_str() {
        "on" => true,
        "off" => false,
        _ => return Err("must be on or off".to_owned()),
    };
    CURRENT_COMPRESS.store(is_on, Relaxed);
    Ok(())
}

/// The values of `restore-ties`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreTies {
    /// They are kept where every user that may bring queues may also write to every key.
    Auto,
    Keep,
    Cut,
}

static CURRENT_RESTORE_TIES: Mutex<RestoreTies> = Mutex::new(RestoreTies::Auto);

/// Whether a queue that comes now by RESTORE or COPY keeps its ties to other keys.
pub fn restore_ties() -> RestoreTies {
    *CURRENT_RESTORE_TIES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn take_restore_ties(text: &str) -> Result<(), String> {
    let read = match text.to_ascii_lowercase().as_str() {
        "auto" => RestoreTies::Auto,
        "keep" => RestoreTies::Keep,
        "cut" => RestoreTies::Cut,
        _ => return Err("must be auto, keep or cut".to_owned()),
    };
    *CURRENT_RESTORE_TIES
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = read;
    Ok(())
}

static CURRENT_BACKOFF: Mutex<DefaultBackoff> = Mutex::new(DefaultBackoff::NONE);

/// The backoff of a queue that is created now without a BACKOFF.
pub fn default_backoff() -> DefaultBackoff {
    *CURRENT_BACKOFF
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn take_backoff(text: &str) -> Result<(), String> {
    let words: Vec<&[u8]> = text.split_ascii_whitespace().map(str::as_bytes).collect();
    let read = args::default_backoff(Words::new(&words)).map_err(|error| {
        let why = error.0.trim_start_matches("ERR ");
        format!("must be NONE or 'kind ms [MAXBACKOFF ms] [JITTER percent]': {why}")
    })?;
    *CURRENT_BACKOFF
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = read;
    Ok(())
}
