//! Trains a dictionary from payloads.

use super::hex::{common, Parts};
use super::{pays, Dictionary, DICTIONARY};

/// Payloads from which a dictionary is trained.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    all: Vec<Sample>,
    /// Bytes of the payloads and ids.
    bytes: usize,
}

/// A payload, and the id that the sender gave its message.
#[derive(Debug, Clone)]
struct Sample {
    own: Option<Box<[u8]>>,
    payload: Box<[u8]>,
}

/// One of so many samples is a judge, by which a dictionary is judged that was trained from the others.
const JUDGES: usize = 8;

/// The bytes of a payload that are looked at.
const OF_ONE: usize = 8 << 10;

impl Samples {
    /// Adds a payload, and the id that the sender gave its message.
    pub fn add(&mut self, own: Option<&[u8]>, payload: &[u8]) {
        let payload = payload.get(..OF_ONE).unwrap_or(payload);
        self.bytes += own.map_or(0, <[u8]>::len) + payload.len();
        self.all.push(Sample {
            own: own.map(Into::into),
            payload: payload.into(),
        });
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Sample>() + self.bytes
    }
}

/// The text of a dictionary for payloads like these; `None` if it would save others like them too little. Takes some ten milliseconds, so it is for a thread of its own.
pub fn train(samples: &Samples) -> Option<Vec<u8>> {
    let all = || samples.all.iter().zip(1..);
    let teachers = || all().filter(|(_, number)| number % JUDGES != 0);
    let payloads: Vec<&[u8]> = teachers().map(|(one, _)| &*one.payload).collect();
    let common = common(payloads.into_iter());
    let (mut parts, mut bytes, mut lengths) = (Parts::default(), Vec::new(), Vec::new());
    for (sample, _) in teachers() {
        let text = match parts.take_out(&sample.payload, sample.own.as_deref(), &common) {
            true => &*parts.text,
            false => &sample.payload,
        };
        bytes.extend_from_slice(text);
        lengths.push(text.len());
    }
    let mut text = Vec::with_capacity(DICTIONARY);
    zstd_safe::train_from_buffer(&mut text, &bytes, &lengths).ok()?;
    let dictionary = Dictionary::of(&text)?;
    let (mut before, mut after, mut packed) = (0, 0, Vec::new());
    for (judge, _) in all().filter(|(_, number)| number % JUDGES == 0) {
        before += judge.payload.len();
        after += match dictionary.pack(&judge.payload, judge.own.as_deref(), &mut packed) {
            true => packed.len(),
            false => judge.payload.len(),
        };
    }
    (before > 0 && pays(after, before)).then_some(text)
}
