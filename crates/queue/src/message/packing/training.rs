//! Trains a dictionary from payloads.

use super::{pays, Dictionary, DICTIONARY};

/// Payloads from which a dictionary is trained.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Payloads by which a dictionary is judged that was trained from the others.
    judges: Vec<Box<[u8]>>,
}

/// One of so many samples is a judge.
const JUDGES: usize = 8;

/// The bytes of a payload that are looked at.
const OF_ONE: usize = 8 << 10;

impl Samples {
    /// Adds a payload.
    pub fn add(&mut self, payload: &[u8]) {
        let sample = payload.get(..OF_ONE).unwrap_or(payload);
        if self.lengths.len() / (JUDGES - 1) > self.judges.len() {
            self.judges.push(sample.into());
        } else {
            self.bytes.extend_from_slice(sample);
            self.lengths.push(sample.len());
        }
    }
}

/// The text of a dictionary for payloads like these; `None` if it would save others like them too little. Takes some ten milliseconds, so it is for a thread of its own.
pub fn train(samples: &Samples) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(DICTIONARY);
    zstd_safe::train_from_buffer(&mut text, &samples.bytes, &samples.lengths).ok()?;
    let dictionary = Dictionary::of(&text)?;
    let (mut before, mut after, mut packed) = (0, 0, Vec::new());
    for judge in &samples.judges {
        before += judge.len();
        after += match dictionary.pack(judge, &mut packed) {
            true => packed.len(),
            false => judge.len(),
        };
    }
    (before > 0 && pays(after, before)).then_some(text)
}
