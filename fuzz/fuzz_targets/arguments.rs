//! Runs commands of arbitrary words. Each must be refused, or do the same on a queue
//! and its replica.
//!
//! The first byte chooses the clock. Then each line is a command: one byte for the
//! time that passes before it, and the verb, the key and more words with a unit
//! separator between them. The word `~` stands for the receipt that was given out last.

#![no_main]

use dq_fuzz::twin::Twins;
use libfuzzer_sys::fuzz_target;

const BETWEEN_WORDS: u8 = 0x1f;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else {
        return;
    };
    let mut twins = Twins::new(first == b'm');
    for line in rest.split(|byte| *byte == b'\n').take(40) {
        let Some((&wait, words)) = line.split_first() else {
            continue;
        };
        let words: Vec<&[u8]> = words.split(|byte| *byte == BETWEEN_WORDS).collect();
        let passed = match wait {
            0..=127 => u64::from(wait) / 4,
            _ => u64::from(wait - 127) * 977,
        };
        twins.command(passed, &words);
    }
    twins.compare();
});
