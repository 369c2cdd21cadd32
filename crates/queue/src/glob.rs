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
///
/// It goes over a text once and keeps a bit for each position of the part: whether
/// the part matches up to there the bytes that were read last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finder {
    /// For each byte value, so many words: at which positions it may be.
    positions: Vec<u64>,
    /// The words of one byte value.
    words: usize,
    /// The last position, in the last word.
    last: u64,
}

impl Finder {
    /// For a part that is not empty.
    fn new(part: &Part) -> Finder {
        let words = part.len().div_ceil(64);
        let mut positions = vec![0; 256 * words];
        for (byte, of_byte) in (0..=u8::MAX).zip(positions.chunks_mut(words)) {
            for (at, set) in part.iter().enumerate() {
                if let Some(word) = of_byte.get_mut(at / 64).filter(|_| set.contains(byte)) {
                    *word |= 1 << (at % 64);
                }
            }
        }
        Finder {
            positions,
            words,
            last: 1 << ((part.len() - 1) % 64),
        }
    }

    /// Where the first place in `text` that the part matches ends.
    fn end_in(&self, text: &[u8]) -> Option<usize> {
        let mut matched = vec![0u64; self.words];
        for (at, byte) in text.iter().enumerate() {
            let from = usize::from(*byte) * self.words;
            let of_byte = self.positions.get(from..from + self.words)?;
            let mut carry = 1;
            for (word, positions) in matched.iter_mut().zip(of_byte) {
                let shifted = *word << 1 | carry;
                carry = *word >> 63;
                *word = shifted & positions;
            }
            if matched.last().is_some_and(|word| word & self.last != 0) {
                return Some(at + 1);
            }
        }
        None
    }
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
        fn long_parts_are_found_where_they_are(
            part in vec(0..2u8, 1..200),
            before in vec(0..2u8, 0..300),
            behind in vec(0..2u8, 0..300),
        ) {
            let text = [before, part.clone(), behind].concat();
            let sets: Part = part.iter().map(|byte| ByteSet::of(*byte)).collect();
            let end = text.windows(part.len()).position(|window| window == part);
            let end = end.map(|at| at + part.len());
            prop_assert_eq!(Finder::new(&sets).end_in(&text), end);
        }
    }
}
