//! The delay that other clients feel: the time of a PING on both servers while an import runs, and the size of a batch that follows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::server::{Endpoint, Server};

/// The time between two measurements.
const BEAT: Duration = Duration::from_millis(20);

/// The longest PING that is aimed at, ms, and that with `--fast`. By the next measurement a batch has often become too large,
/// so the aim is well below the 5 ms that others are promised for 99 of 100.
const AIM: f64 = 2.0;
const FAST: f64 = 40.0;

/// The jobs of a batch: at first, at least and at most. Where the machine itself is busy, smaller ones shorten no PING.
const SIZES: (usize, usize, usize) = (100, 25, 2000);

/// Measures while it lives.
pub struct Pulse {
    times: Arc<Mutex<Vec<f64>>>,
    ends: Arc<AtomicBool>,
    aim: f64,
    size: usize,
    seen: usize,
}

impl Pulse {
    /// Begins to measure, over connections of its own.
    pub fn start(ends: [&Endpoint; 2], is_fast: bool) -> Result<Pulse, Failure> {
        let [mut source, mut target] = [ends[0].connect_peer()?, ends[1].connect()?];
        let pulse = Pulse {
            times: Arc::default(),
            ends: Arc::default(),
            aim: if is_fast { FAST } else { AIM },
            size: SIZES.0,
            seen: 0,
        };
        let (times, is_over) = (pulse.times.clone(), pulse.ends.clone());
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                // The import itself reports a server that is gone.
                let Some(time) = longest(&mut source, &mut target) else {
                    return;
                };
                times
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(time);
                thread::sleep(BEAT);
            }
        });
        Ok(pulse)
    }

    /// Returns how many jobs the next batch has.
    pub fn size(&mut self) -> usize {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() >= self.seen + 3 {
            let fresh = times.get(self.seen..).unwrap_or_default();
            let longest = fresh.iter().copied().fold(0.0, f64::max);
            self.seen = times.len();
            let size = match longest > self.aim {
                true => self.size * 7 / 10,
                false => self.size * 9 / 8,
            };
            self.size = size.clamp(SIZES.1, SIZES.2);
        }
        self.size
    }

    /// Returns the PING, ms, that 99 of 100 did not exceed.
    pub fn p99(&self) -> f64 {
        let mut times = self
            .times
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        times.sort_by(f64::total_cmp);
        let at = times.len().saturating_sub(1) * 99 / 100;
        times.get(at).copied().unwrap_or(0.0)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Returns the longer PING of both, ms.
fn longest(source: &mut Server, target: &mut Server) -> Option<f64> {
    let mut longest = 0.0;
    for server in [source, target] {
        let start = Instant::now();
        server.call(&redis::cmd("PING")).ok()?;
        longest = f64::max(longest, start.elapsed().as_secs_f64() * 1e3);
    }
    Some(longest)
}
