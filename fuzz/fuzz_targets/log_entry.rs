//! Reads log entries of arbitrary bytes. Each must be refused, or be the same entry
//! after it was written and read again.

#![no_main]

use dq_fuzz::bug::{self, Bug};
use dq_fuzz::{loaded, saved};
use dq_queue::codec::log_entry::{Chunk, Creation, LogEntry};
use dq_queue::codec::restore::Restoring;
use dq_queue::limits::MAX_STEPS;
use dq_queue::settings::{Clock, Settings};
use libfuzzer_sys::fuzz_target;

/// Steps of time before an operation that are processed here. Up to the limit would take seconds.
const MOST_STEPS: u64 = 4096;

fn encoded(entry: &LogEntry<'_, '_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry.encode_into(&mut bytes);
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let creation = Creation {
        settings: Settings::default(),
        clock: Clock::Server,
        salt: 7,
    };
    let mut queue = creation.queue();
    let mut restoring = Restoring::default();
    // One entry follows the other, each of them after its length.
    let mut rest = bytes;
    while let Some((&len, after)) = rest.split_first() {
        let (one, later) = after.split_at(after.len().min(len.into()));
        rest = later;
        if let Ok(Some(chunk)) = Chunk::of(one) {
            if let Ok(Some(whole)) = restoring.take(0, b"key", chunk) {
                queue = whole;
            }
            continue;
        }
        let Ok(entry) = LogEntry::decode(one) else {
            continue;
        };
        let written = encoded(&entry);
        let again = LogEntry::decode(&written).expect("what was written can be read");
        assert_eq!(written, encoded(&again));
        // A log entry of a client is refused if it has more steps than a slice can take.
        let is_taken = bug::seeded() == Some(Bug::AnySteps) || entry.check_steps().is_ok();
        assert_eq!(is_taken, entry.before.steps <= MAX_STEPS);
        if entry.before.steps > MOST_STEPS {
            continue;
        }
        if let Some(created) = &entry.created {
            queue = created.queue();
        }
        entry.replay(&mut queue).ok();
        queue.take_effects();
    }
    let kept = saved(&queue);
    let again = loaded(&kept, 1000).expect("the queue can be saved and loaded");
    assert!(kept == saved(&again), "the queue that was loaded differs");
});
