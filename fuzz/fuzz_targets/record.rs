//! Records that come from anyone: refused, or an operation that means the
//! same when it is written and read again.

#![no_main]

use dq_fuzz::{loaded, saved};
use dq_queue::codec::log_entry::{Chunk, Creation, LogEntry};
use dq_queue::codec::restore::Restoring;
use dq_queue::settings::{Clock, Settings};
use libfuzzer_sys::fuzz_target;

/// No server takes more steps before one operation.
const MAX_STEPS: u64 = 4096;

fn encoded(record: &LogEntry<'_, '_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode_into(&mut bytes);
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
    // Records one after the other, each after its length.
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
        let Ok(record) = LogEntry::decode(one) else {
            continue;
        };
        let written = encoded(&record);
        let again = LogEntry::decode(&written).expect("what was written can be read");
        assert_eq!(written, encoded(&again));
        if record.steps > MAX_STEPS {
            continue;
        }
        if let Some(created) = &record.created {
            queue = created.queue();
        }
        record.replay(&mut queue).ok();
        queue.take_effects();
    }
    let kept = saved(&queue);
    let again = loaded(&kept, 1000).expect("what was done can be saved and loaded");
    assert!(kept == saved(&again), "what was loaded differs");
});
