//! Glob patterns, as the KEYS command of the server has them.
//!
//! | pattern | what it matches |
//! |---|---|
//! | `*` | any bytes, or none |
//! | `?` | any one byte |
//! | `[abc]`, `[a-z]`, `[^a]` | one byte of a set, of a range, or outside a set |
//! | `\x` | the byte `x` itself |
//!
//! Matching takes time linear in the length of the text, whatever the pattern is.

use memchr::{memchr, memchr2, memchr3, memmem};

/// A set of byte values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByteSet([u64; 4]);

impl ByteSet {
    const NONE: ByteSet = ByteSet([0; 4]);
    const ANY: ByteSet = ByteSet([u64::MAX; 4]);

    fn of(byte: u8) -> ByteSet {
        let mut set = ByteSet::NONE;
        set.insert(byte);
        set
    }

    fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6)).copied();
        word.unwrap_or_default() >> (byte & 63) & 1 == 1
    }

    /// Its only member, if it has no other.
    fn only(&self) -> Option<u8> {
        let mut members = (0..=u8::MAX).filter(|byte| self.contains(*byte));
        members.next().filter(|_| members.next().is_none())
    }

    fn complement(self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }
}

/// A part of a pattern between two stars: one set for each byte that it matches.
type Part = Vec<ByteSet>;

/// A pattern that texts are matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The part before the first star, or the whole pattern where there is none.
    head: Part,
    /// The part after the last star; `None` where there is no star.
    tail: Option<Part>,
    /// The other parts, which may be anywhere in between, in this order.
    middle: Vec<Finder>,
}

impl Glob {
    /// Reads a pattern. Any bytes are one. O(length).
    pub fn new(pattern: &[u8]) -> Glob {
        let mut parts = vec![Part::new()];
        let mut rest = pattern;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            let set = match byte {
                b'*' => {
                    parts.push(Part::new());
                    continue;
                }
                b'?' => ByteSet::ANY,
                b'[' => class(&mut rest),
                b'\\' => match rest.split_first() {
                    Some((escaped, after)) => {
                        rest = after;
                        ByteSet::of(*escaped)
                    }
                    None => ByteSet::of(b'\\'),
                },
                byte => ByteSet::of(*byte),
            };
            if let Some(part) = parts.last_mut() {
                part.push(set);
            }
        }
        let mut parts = parts.into_iter();
        Glob {
            head: parts.next().unwrap_or_default(),
            tail: parts.next_back(),
            middle: parts
                .filter(|part| !part.is_empty())
                .map(|part| Finder::new(&part))
                .collect(),
        }
    }

    /// Whether the pattern matches the whole of `text`. O(length of the text), times
    /// one more for every 64 bytes that a part of the pattern between stars has.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some(mut rest) = text.get(self.head.len()..) else {
            return false;
        };
        if !equals(&self.head, text) {
            return false;
        }
        let Some(tail) = &self.tail else {
            return rest.is_empty();
        };
        // The leftmost place of each part leaves the most room for those behind it.
        for part in &self.middle {
            match part.end_in(rest).and_then(|end| rest.get(end..)) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        let at = rest.len().checked_sub(tail.len());
        at.and_then(|at| rest.get(at..))
            .is_some_and(|end| equals(tail, end))
    }
}

/// Whether a part matches the beginning of a text that is at least as long.
fn equals(part: &Part, text: &[u8]) -> bool {
    part.iter().zip(text).all(|(set, byte)| set.contains(*byte))
}

/// Reads a set of bytes after its `[`, up to its `]` or to the end of the pattern.
fn class(rest: &mut &[u8]) -> ByteSet {
    let is_negated = rest.first() == Some(&b'^');
    if is_negated {
        *rest = rest.get(1..).unwrap_or_default();
    }
    let mut set = ByteSet::NONE;
    loop {
        let len = match **rest {
            [] => break,
            [b'\\', byte, ..] => {
                set.insert(byte);
                2
            }
            [b']', ..] => {
                *rest = rest.get(1..).unwrap_or_default();
                break;
            }
            [from, b'-', to, ..] => {
                (from.min(to)..=from.max(to)).for_each(|byte| set.insert(byte));
                3
            }
            [byte, ..] => {
                set.insert(byte);
                1
            }
        };
        *rest = rest.get(len..).unwrap_or_default();
    }
    match is_negated {
        true => set.complement(),
        false => set,
    }
}

/// Finds a part of a pattern in texts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finder {
    Literal(Literal),
    Sets(Sets),
}

impl Finder {
    /// For a part that is not empty.
    fn new(part: &Part) -> Finder {
        let bytes: Option<Vec<u8>> = part.iter().map(|set| set.only()).collect();
        match bytes {
            Some(bytes) => {
                Finder::Literal(Literal(Box::new(memmem::Finder::new(&bytes).into_owned())))
            }
            None => Finder::Sets(Sets::new(part)),
        }
    }

    /// Where the first place in `text` that the part matches ends.
    fn end_in(&self, text: &[u8]) -> Option<usize> {
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
struct Literal(Box<memmem::Finder<'static>>);

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.0.needle() == other.0.needle()
    }
}

impl Eq for Literal {}

/// After so many bytes without a match it pays to look for the next beginning.
const IDLE: u32 = 16;

/// A part in which a position may be one of several bytes.
///
/// It goes over a text once and keeps a bit for each position of the part: whether
/// the part matches up to there the bytes that were read last. When no bit has been
/// set for some bytes, it goes on to the next byte with which the part may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sets {
    /// For each byte value, so many words: at which positions it may be.
    positions: Vec<u64>,
    /// The words of one byte value.
    words: usize,
    /// The last position, in the last word.
    last: u64,
    /// The bytes with which the part may begin, if they are three at most.
    first: Vec<u8>,
}

impl Sets {
    /// For a part that is not empty.
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

    /// Where the first place in `text` that the part matches ends.
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

    /// Where the part may begin next, at the latest.
    fn next_begin(&self, text: &[u8]) -> Option<usize> {
        match *self.first {
            [a] => memchr(a, text),
            [a, b] => memchr2(a, b, text),
            [a, b, c] => memchr3(a, b, c, text),
            _ => (!text.is_empty()).then_some(0),
        }
    }

    /// Reads a text until the part has matched, or until it has matched nothing of
    /// the bytes read last and the next byte to begin with can be looked for.
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

/// What came of reading a text.
enum Run {
    /// The part matched, up to here.
    Matched(usize),
    /// No match ends or begins in this many bytes, which were read.
    Nothing(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The matcher of the server, as directly as it can be written.
    fn expected(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, _) => text.is_empty(),
            (Some((b'*', more)), None) => expected(more, text),
            (Some((b'*', more)), Some((_, left))) => {
                expected(more, text) || expected(pattern, left)
            }
            (_, None) => false,
            (Some((b'?', more)), Some((_, left))) => expected(more, left),
            (Some((b'[', more)), Some((byte, left))) => {
                let mut rest = more;
                class(&mut rest).contains(*byte) && expected(rest, left)
            }
            (Some((b'\\', [escaped, more @ ..])), Some((byte, left))) => {
                escaped == byte && expected(more, left)
            }
            (Some((literal, more)), Some((byte, left))) => literal == byte && expected(more, left),
        }
    }

    #[test]
    fn patterns_match_as_those_of_keys_do() {
        for (pattern, text, matches) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", "ab", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hbllo", true),
            ("h[a-c]llo", "hcllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("h\\[llo", "h[llo", true),
            ("[\\]]", "]", true),
            ("[a\\-c]", "-", true),
            ("[a\\-c]", "b", false),
            ("[ab", "b", true),
            ("a[", "a", false),
            ("a\\", "a\\", true),
            ("*b*", "abc", true),
            ("*bc*bc", "abcxbc", true),
            ("*bc*bc", "abc", false),
            ("a*a", "a", false),
            ("A", "a", false),
        ] {
            let found = Glob::new(pattern.as_bytes()).matches(text.as_bytes());
            assert_eq!(found, matches, "{pattern} and {text}");
        }
        assert!(Glob::new(b"\xff?\x00").matches(b"\xff\n\x00"));
    }

    #[test]
    fn a_pattern_that_backtracks_takes_linear_time() {
        let text = vec![b'a'; 64 * 1024];
        let pattern = [b"*a".repeat(300), b"b".to_vec()].concat();
        assert!(!Glob::new(&pattern).matches(&text));
        // With parts of hundreds of bytes, which nearly match everywhere.
        let part = [b"*".to_vec(), b"a".repeat(300), b"b*".to_vec()].concat();
        assert!(!Glob::new(&part).matches(&text));
        let text = [text, b"bab".to_vec()].concat();
        assert!(Glob::new(&part).matches(&text));
        assert!(Glob::new(&pattern).matches(&text));
    }

    proptest! {
        #[test]
        fn any_pattern_matches_what_the_matcher_of_the_server_does(
            pattern in "[ab?*\\[\\]^\\\\-]{0,9}",
            text in "[ab\\[\\]-]{0,9}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            let matches = Glob::new(pattern).matches(text);
            prop_assert_eq!(matches, expected(pattern, text));
        }

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
