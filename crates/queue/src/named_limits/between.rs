//! The texts between the stars of patterns with several: the parts of all of them are searched
//! for in a name at once.
//!
//! The automaton of Aho and Corasick knows at each byte of the name which parts end there. So it
//! tries no part by itself, however many there are. A pattern waits for one part at a time, and
//! its leftmost place leaves the most room for the parts behind it.

use std::collections::VecDeque;

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::Anchored;

use super::patterns::backwards;
use super::texts::Texts;
use crate::collections::footprint::allocated;

/// The parts of patterns.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The parts, from their last byte to the first.
    texts: Texts,
    /// The search for them, each by its number. `None` without parts.
    automaton: Option<NFA>,
    /// The numbers of the parts of each pattern, in their order.
    sequences: Vec<Box<[u32]>>,
}

/// A pattern whose text before the first star and behind the last one a name has.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Its place in the order in which patterns hold.
    pub order: usize,
    /// The number of its sequence of parts.
    pub sequence: usize,
    /// How many of its parts are found.
    pub found: usize,
    /// Where in the name its next part may begin.
    pub from: usize,
    /// Where in the name its parts must have ended.
    pub until: usize,
}

/// The parts of the text between the first star of a pattern and its last.
pub fn parts(between: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = between.split(|byte| *byte == b'*');
    parts.filter(|part| !part.is_empty())
}

/// The parts of many texts between stars, from their last byte to the first.
pub fn texts<'a>(between: impl Iterator<Item = &'a [u8]>) -> Texts {
    Texts::new(between.flat_map(parts).map(backwards))
}

impl Parts {
    /// The parts of these texts between stars, without a sequence. O(n log n).
    pub fn new<'a>(between: impl Iterator<Item = &'a [u8]>) -> Parts {
        let texts = texts(between);
        let forwards = (0..texts.len()).map(|number| backwards(texts.text(number)));
        let mut builder = NFA::builder();
        // The search is for all parts, so a search for where one may begin only takes time.
        builder.prefilter(false);
        let automaton = (texts.len() > 0).then(|| builder.build(forwards).ok());
        Parts {
            automaton: automaton.flatten(),
            texts,
            sequences: Vec::new(),
        }
    }

    /// Adds the parts of one of these texts, and returns the number of their sequence. `None` if
    /// there are none. O(length of the text, log n).
    pub fn add(&mut self, between: &[u8]) -> Option<usize> {
        let numbers = parts(between).map(|part| self.texts.number(&backwards(part)));
        let sequence: Option<Box<[u32]>> = numbers.map(|number| Some(number? as u32)).collect();
        sequence.filter(|parts| !parts.is_empty()).map(|sequence| {
            self.sequences.push(sequence);
            self.sequences.len() - 1
        })
    }

    /// The first candidate in the order of patterns whose parts are in the name: the parts in
    /// their order, and none over another. The candidates come in the order of `from`. Adds the
    /// number of its steps to `steps`. O(candidates + length of the name, times the number of parts
    /// that end in each other, + parts that are found).
    pub fn first(
        &self,
        name: &[u8],
        candidates: impl Iterator<Item = Candidate>,
        steps: &mut usize,
    ) -> Option<usize> {
        let automaton = self.automaton.as_ref()?;
        let mut candidates = candidates.peekable();
        // Those that wait for each part, in the order of `from`.
        let mut waiting = vec![VecDeque::new(); self.texts.len()];
        let mut best = None;
        let mut at = automaton.start_state(Anchored::No).ok()?;
        for (begin, byte) in name.iter().enumerate() {
            while let Some(candidate) = candidates.next_if(|next| next.from <= begin) {
                *steps += 1;
                self.wait(&mut waiting, candidate);
            }
            *steps += 1;
            at = automaton.next_state(Anchored::No, at, *byte);
            if !automaton.is_match(at) {
                continue;
            }
            let end = begin + 1;
            for ending in 0..automaton.match_len(at) {
                *steps += 1;
                let part = automaton.match_pattern(at, ending);
                let begins = end - automaton.pattern_len(part);
                while let Some(mut one) = first_waiting(&mut waiting, part.as_usize(), begins) {
                    *steps += 1;
                    (one.from, one.found) = (end, one.found + 1);
                    if !self.wait(&mut waiting, one) && end <= one.until {
                        best = best.into_iter().chain([one.order]).min();
                    }
                }
            }
        }
        best
    }

    /// Lets a candidate wait for its next part. Returns false if there is none.
    fn wait(&self, waiting: &mut [VecDeque<Candidate>], one: Candidate) -> bool {
        let sequence = self.sequences.get(one.sequence);
        let part = sequence.and_then(|sequence| sequence.get(one.found));
        let waits = part.and_then(|part| waiting.get_mut(*part as usize));
        waits.map(|waits| waits.push_back(one)).is_some()
    }

    /// Bytes allocated, an estimate. O(patterns).
    pub fn memory_bytes(&self) -> usize {
        let sequences = self.sequences.iter();
        self.texts.memory_bytes()
            + self.automaton.as_ref().map_or(0, Automaton::memory_usage)
            + allocated(self.sequences.capacity() * size_of::<Box<[u32]>>())
            + sequences
                .map(|parts| allocated(size_of_val(&**parts)))
                .sum::<usize>()
    }
}

/// Takes the first candidate that waits for a part, if the part may begin here.
fn first_waiting(
    waiting: &mut [VecDeque<Candidate>],
    part: usize,
    begins: usize,
) -> Option<Candidate> {
    let waits = waiting.get_mut(part)?;
    match waits.front()?.from <= begins {
        true => waits.pop_front(),
        false => None,
    }
}
