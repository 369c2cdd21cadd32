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

mod bytes;
mod find;

use bytes::{class, ByteSet};
use find::Finder;

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The matcher of the server, written in the most direct way.
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
    }
}
