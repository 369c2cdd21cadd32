//! Finding a part of a pattern in texts.

use super::Part;
use memchr::{memchr, memchr2, memchr3, memmem};

/// Finds a part of a pattern in texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finder {
    Literal(Literal),
    Sets(Sets),
}

impl Finder {
    /// Creates the finder of a part that is not empty.
    pub(super) fn new(part: &Part) -> Finder {
        let bytes: Option<Vec<u8>> = part.iter().map(|set| set.only()).collect();
        match bytes {
            Some(bytes) => {
                Finder::Literal(Literal(Box::new(memmem::Finder::new(&bytes).into_owned())))
            }
            None => Finder::Sets(Sets::new(part)),
        }
    }

    /// The end of the first place in `text` that the part matches.
    pub(super) fn end_in(&self, text: &[u8]) -> Option<usize> {
        match self {
            Finder::Literal(Literal(finder)) => {
                finder.find(text).map(|at| at + finder.needle().len())
            }
            Finder::Sets(sets) => sets.end_in(text),
        }
    }
}

/// A part in which each position may be one byte only.
#[derive(Debug, Clone)]
pub(super) struct Literal(Box<memmem::Finder<'static>>);

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.0.needle() == other.0.needle()
    }
}

impl Eq for Literal {}

/// After this many bytes without a match it is faster to search for the next beginning.
const IDLE: u32 = 16;

/// A part in which a position may be one of several bytes.
///
/// It goes over a text once and keeps a bit for each position of the part: whether
/// the part matches up to there the bytes that were read last. When no bit has been
/// set for some bytes, it goes on to the next byte with which the part may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sets {
    /// For each byte value, words of bits for the positions at which it may be.
    positions: Vec<u64>,
    /// The words of one byte value.
    words: usize,
    /// The last position, in the last word.
    last: u64,
    /// The bytes with which the part may begin, if they are three at most.
    first: Vec<u8>,
}

impl Sets {
    /// Creates the sets of a part that is not empty.
    fn new(part: &Part) -> Sets {
        let words = part.len().div_ceil(64);
        let mut positions = vec![0; 256 * words];
        for (byte, of_byte) in (0..=u8::MAX).zip(positions.chunks_mut(words)) {
            for (at, set) in part.iter().enumerate() {
                if let Some(word) = of_byte.get_mut(at / 64).filter(|_| set.contains(byte)) {
                    *word |= 1 << (at % 64);
                }
            }
        }
        let begins = |byte: &u8| part.first().is_some_and(|set| set.contains(*byte));
        let first: Vec<u8> = (0..=u8::MAX).filter(begins).collect();
        Sets {
            positions,
            words,
            last: 1 << ((part.len() - 1) % 64),
            first: if first.len() <= 3 { first } else { Vec::new() },
        }
    }

    /// The end of the first place in `text` that the part matches.
    fn end_in(&self, text: &[u8]) -> Option<usize> {
        let mut begin = 0;
        loop {
            let rest = text.get(begin..)?;
            begin += self.next_begin(rest)?;
            let rest = text.get(begin..)?;
            match self.run(rest) {
                Run::Matched(end) => return Some(begin + end),
                Run::Nothing(read) => begin += read,
            }
        }
    }

    /// The last place at which the part may begin next.
    fn next_begin(&self, text: &[u8]) -> Option<usize> {
        match *self.first {
            [a] => memchr(a, text),
            [a, b] => memchr2(a, b, text),
            [a, b, c] => memchr3(a, b, c, text),
            _ => (!text.is_empty()).then_some(0),
        }
    }

    /// Reads a text until the part has matched, or until no prefix of the part matches
    /// the last bytes, so that the next beginning can be searched.
    fn run(&self, text: &[u8]) -> Run {
        let skips = !self.first.is_empty();
        match <&[u64; 256]>::try_from(self.positions.as_slice()) {
            Ok(positions) => self.run_narrow(positions, text, skips),
            Err(_) => self.run_wide(text, skips),
        }
    }

    /// `run` for a part of 64 bytes at most.
    fn run_narrow(&self, positions: &[u64; 256], text: &[u8], skips: bool) -> Run {
        let (mut matched, mut idle) = (0u64, 0);
        for (at, byte) in text.iter().enumerate() {
            let of_byte = positions.get(usize::from(*byte)).copied();
            matched = (matched << 1 | 1) & of_byte.unwrap_or_default();
            if matched & self.last != 0 {
                return Run::Matched(at + 1);
            }
            idle = if matched == 0 { idle + 1 } else { 0 };
            if idle == IDLE && skips {
                return Run::Nothing(at + 1);
            }
        }
        Run::Nothing(text.len())
    }

    /// `run` for a longer part.
    fn run_wide(&self, text: &[u8], skips: bool) -> Run {
        let (mut matched, mut idle) = (vec![0u64; self.words], 0);
        for (at, byte) in text.iter().enumerate() {
            let of_byte = self.positions.chunks(self.words).nth(usize::from(*byte));
            let mut carry = 1;
            for (word, positions) in matched.iter_mut().zip(of_byte.unwrap_or_default()) {
                let shifted = *word << 1 | carry;
                carry = *word >> 63;
                *word = shifted & positions;
            }
            if matched.last().is_some_and(|word| word & self.last != 0) {
                return Run::Matched(at + 1);
            }
            let is_idle = matched.iter().all(|word| *word == 0);
            idle = if is_idle { idle + 1 } else { 0 };
            if idle == IDLE && skips {
                return Run::Nothing(at + 1);
            }
        }
        Run::Nothing(text.len())
    }
}

/// The result of reading a text.
enum Run {
    /// The part matched, and its match ends here.
    Matched(usize),
    /// No match ends or begins in this many bytes, which were read.
    Nothing(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::{equals, ByteSet};
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_found_where_they_are(
            part in vec(vec(0..4u8, 1..5), 1..200),
            before in vec(0..4u8, 0..300),
            behind in vec(0..4u8, 0..300),
        ) {
            let sets: Part = part.iter().map(|bytes| {
                let mut set = ByteSet::NONE;
                bytes.iter().for_each(|byte| set.insert(*byte));
                set
            }).collect();
            let matching = part.iter().filter_map(|bytes| bytes.first().copied()).collect();
            let text = [before, matching, behind].concat();
            let end = text.windows(part.len()).position(|window| equals(&sets, window));
            let end = end.map(|at| at + part.len());
            prop_assert_eq!(Finder::new(&sets).end_in(&text), end);
            prop_assert_eq!(Sets::new(&sets).end_in(&text), end);
            let literal: Part = text.iter().skip(7).take(9).map(|byte| ByteSet::of(*byte)).collect();
            prop_assume!(!literal.is_empty());
            prop_assert_eq!(Finder::new(&literal).end_in(&text), Sets::new(&literal).end_in(&text));
        }
    }
}
