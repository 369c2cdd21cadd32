//! Loads snapshots of arbitrary bytes. Each must be refused, or be a queue that can be
//! used and saved again.

#![no_main]

use dq_fuzz::{loaded, saved};
use dq_queue::op::Op;
use dq_queue::Moment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut queue) = loaded(bytes, 37) else {
        return;
    };
    let kept = saved(&queue);
    let again = loaded(&kept, 65536).expect("a queue that was accepted can be saved and loaded");
    assert!(
        kept == saved(&again),
        "the queue that was loaded again differs"
    );
    let moment = Moment {
        us: 1_800_000_000_000_000,
        receipt: 1_800_000_000_000_000,
    };
    queue.advance(moment.ms(), 200);
    queue.apply(&Op::Tick, moment).ok();
    queue.take_effects();
    loaded(&saved(&queue), 4096).expect("a queue that was used can be saved and loaded");
});
