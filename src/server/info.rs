//! `INFO dq`: statistics over all queues of the server.

use crate::redis::info::InfoWriter;
use crate::redis::{calls, faults, OwnedName};
use dq_queue::message::state::State;
use dq_queue::stats::Lateness;
use dq_queue::sums::Count;
use dq_queue::Queue;

use super::waiting::wait_list;
use super::{metrics, wakeups};

/// The version in Cargo.toml.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that the module was built from, or another text that `build.rs` explains.
const REVISION: &str = env!("DQ_REVISION");

/// Sums over all queues.
#[derive(Default)]
struct Sums {
    queues: u64,
    by_state: [u64; State::ALL.len()],
    memory: u64,
    skipped_fires: Count,
    lateness: Lateness,
}

impl Sums {
    /// Adds up all known queues. O(queues).
    fn of_all(info: &InfoWriter<'_>) -> Sums {
        let mut sums = Sums::default();
        info.with_context(|ctx| {
            let known: Vec<_> = wakeups::with_index(|index| index.addresses().cloned().collect());
            for (db, key) in known {
                if !ctx.select_db(db) {
                    continue;
                }
                let name = OwnedName::new(&key);
                let opened = ctx.open_read(name.name());
                if let Some(queue) = opened.as_ref().ok().and_then(|key| key.get()) {
                    sums.add(queue);
                };
            }
        });
        sums
    }

    fn add(&mut self, queue: &Queue) {
        self.queues += 1;
        for (sum, state) in self.by_state.iter_mut().zip(State::ALL) {
            *sum += queue.count(state);
        }
        self.memory += queue.memory_bytes() as u64;
        for (late, n) in queue.lateness().counts() {
            self.lateness.add(late, n);
        }
        self.skipped_fires += queue.totals().skipped_fires.get();
    }
}

/// Writes the sections that the client asks for. O(queues) with the sums over queues, which some
/// monitors ask for every second, and O(1) without them.
pub fn write(info: &mut InfoWriter<'_>) {
    let mut summed = None;
    if info.section(c"module") {
        info.text("version", VERSION);
        info.text("revision", REVISION);
        info.count("unapplied_entries", faults::unapplied_entries());
        info.count("internal_errors", faults::internal_errors());
    }
    if info.section(c"queues") {
        let sums = summed.get_or_insert_with(|| Sums::of_all(info));
        info.count("queues", sums.queues);
        for (state, sum) in State::ALL.iter().zip(sums.by_state) {
            info.count(state.name(), sum);
        }
        info.count("memory", sums.memory);
        info.count("blocked_clients", wait_list::total() as u64);
        info.count("skipped_fires", sums.skipped_fires.get());
    }
    if info.section(c"timer") {
        let metrics = metrics::with(|metrics| metrics.clone());
        info.count("slices", metrics.slices);
        info.count("longest_slice_us", metrics.longest_slice_us);
        info.count("timer_lag_ms", metrics.timer_lag);
        info.count("timer_lag_max_ms", metrics.timer_lag_max);
    }
    if info.section(c"lateness") {
        let sums = summed.get_or_insert_with(|| Sums::of_all(info));
        let lateness = &sums.lateness;
        info.count("lateness_p50_ms", lateness.percentile(50).unwrap_or(0));
        info.count("lateness_p99_ms", lateness.percentile(99).unwrap_or(0));
        info.count("lateness_max_ms", lateness.max().unwrap_or(0));
    }
    if info.section(c"calls") {
        for (command, calls) in calls() {
            let verb = command.trim_start_matches("DQ.").to_ascii_lowercase();
            info.count(&format!("calls_{verb}"), calls);
        }
    }
}
