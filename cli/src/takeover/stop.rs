//! Ctrl-C and SIGTERM, which end an import between two batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// How long a sleep takes to notice a signal.
const NOTICE: Duration = Duration::from_millis(20);

/// Whether a signal has asked for the end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Begins to listen. A second signal ends the program at once, which loses nothing.
    pub fn listen() -> Result<Stop, Failure> {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, stop.0.clone())?;
            signal_hook::flag::register(signal, stop.0.clone())?;
        }
        Ok(stop)
    }

    /// Returns whether a signal has come.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, but not behind a signal.
    pub fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_asked() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(NOTICE));
        }
    }
}
