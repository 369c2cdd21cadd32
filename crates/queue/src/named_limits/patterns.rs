//! The patterns of a queue, and which of them holds for a name.
//!
//! A pattern is the text before its first `*` (its head), the text behind the last one (its tail),
//! and what stands between these two, if there are several. The heads that a name begins with
//! are found by one search, since each of them begins the next longer one, and so are the tails.
//! So patterns that do not suit the name cost nothing, whatever is in them, and each that suits
//! it at both ends is one comparison of numbers.

use memchr::memmem;

use crate::collections::footprint::allocated;
use crate::LimitIx;

/// The patterns of a queue, in the order in which they hold: longer ones first, then by their
/// bytes.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    len: usize,
    heads: Texts,
    /// Tails, from their last byte to the first.
    tails: Texts,
    /// The patterns with each head, in their order.
    with_head: Vec<Vec<Pattern>>,
}

#[derive(Debug, Clone)]
struct Pattern {
    limit: LimitIx,
    /// Its place in the order of all.
    order: usize,
    /// The number of its tail.
    tail: usize,
    /// The bytes of its tail.
    tail_len: usize,
    /// What stands between the first `*` and the last; empty where there is one.
    middle: Box<[u8]>,
}

impl Patterns {
    /// The patterns with these names. O(n log n).
    pub fn new(mut named: Vec<(&[u8], LimitIx)>) -> Patterns {
        named.sort_unstable_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        let parts: Vec<_> = named.iter().map(|(name, _)| parts(name)).collect();
        let heads = Texts::new(parts.iter().map(|(head, ..)| (*head).into()));
        let tails = Texts::new(parts.iter().map(|(.., tail)| backwards(tail)));
        let mut with_head = vec![Vec::new(); heads.texts.len()];
        for (order, ((_, limit), (head, middle, tail))) in named.iter().zip(parts).enumerate() {
            let of_head = heads.number(head).and_then(|at| with_head.get_mut(at));
            let (Some(of_head), Some(number)) = (of_head, tails.number(&backwards(tail))) else {
                continue;
            };
            of_head.push(Pattern {
                limit: *limit,
                order,
                tail: number,
                tail_len: tail.len(),
                middle: middle.into(),
            });
        }
        Patterns {
            len: named.len(),
            heads,
            tails,
            with_head,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// All patterns, in no order.
    pub fn limits(&self) -> impl Iterator<Item = LimitIx> + '_ {
        self.with_head.iter().flatten().map(|pattern| pattern.limit)
    }

    /// The first pattern that the name matches. O(length of the name), and as much for each
    /// pattern of several `*` whose head and tail the name has.
    pub fn find(&self, name: &[u8]) -> Option<LimitIx> {
        let tail = self.tails.longest_in(&backwards(name))?;
        let mut head = self.heads.longest_in(name);
        let mut best: Option<&Pattern> = None;
        while let Some(number) = head {
            let begins = self.heads.texts.get(number).map_or(0, |head| head.len());
            let suits = |pattern: &&Pattern| {
                let ends = name.len().checked_sub(pattern.tail_len);
                self.tails.begins(pattern.tail, tail)
                    && ends
                        .and_then(|ends| name.get(begins..ends))
                        .is_some_and(|between| has_parts(&pattern.middle, between))
            };
            let all = self.with_head.get(number).into_iter().flatten();
            let before = best.map_or(usize::MAX, |best| best.order);
            let mut better = all.take_while(|pattern| pattern.order < before);
            best = better.find(suits).or(best);
            head = self.heads.shorter(number);
        }
        best.map(|pattern| pattern.limit)
    }

    /// Bytes allocated, an estimate. O(n).
    pub fn memory_bytes(&self) -> usize {
        let patterns = self.with_head.iter().map(|patterns| {
            let middles = patterns.iter().map(|pattern| match pattern.middle.len() {
                0 => 0,
                len => allocated(len),
            });
            patterns.capacity() * size_of::<Pattern>() + middles.sum::<usize>()
        });
        self.heads.memory_bytes()
            + self.tails.memory_bytes()
            + self.with_head.capacity() * size_of::<Vec<Pattern>>()
            + patterns.sum::<usize>()
    }
}

/// The head of a pattern, what stands between its first `*` and its last, and its tail.
fn parts(pattern: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let is_star = |byte: &u8| *byte == b'*';
    let first = pattern.iter().position(is_star).unwrap_or(pattern.len());
    let last = pattern.iter().rposition(is_star).unwrap_or(first);
    let part = |range: std::ops::Range<usize>| pattern.get(range).unwrap_or_default();
    (
        part(0..first),
        part(first + 1..last),
        part(last + 1..pattern.len()),
    )
}

fn backwards(text: &[u8]) -> Box<[u8]> {
    text.iter().rev().copied().collect()
}

/// Whether the parts between stars come in a text in their order, none over another. O(length of
/// both): the leftmost place of each part leaves the most room for those behind it.
fn has_parts(middle: &[u8], text: &[u8]) -> bool {
    let mut rest = text;
    let mut parts = middle.split(|byte| *byte == b'*');
    parts.all(|part| {
        let behind = memmem::find(rest, part).and_then(|at| rest.get(at + part.len()..));
        rest = behind.unwrap_or_default();
        behind.is_some()
    })
}

/// Different texts in their order. The texts with which another one begins stand before it, and
/// all that begin with a text stand directly behind it.
#[derive(Debug, Clone, Default)]
struct Texts {
    texts: Vec<Box<[u8]>>,
    /// For each text, the longest other one with which it begins.
    shorter: Vec<Option<usize>>,
    /// For each text, the first one behind it that does not begin with it.
    ends: Vec<usize>,
}

impl Texts {
    fn new(texts: impl Iterator<Item = Box<[u8]>>) -> Texts {
        let mut texts: Vec<Box<[u8]>> = texts.collect();
        texts.sort_unstable();
        texts.dedup();
        let mut shorter = Vec::with_capacity(texts.len());
        let mut ends = vec![texts.len(); texts.len()];
        // The texts with which the one before begins, the shortest first.
        let mut open: Vec<(usize, &[u8])> = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            while let Some((over, _)) = open.pop_if(|(_, before)| !text.starts_with(before)) {
                if let Some(end) = ends.get_mut(over) {
                    *end = number;
                }
            }
            shorter.push(open.last().map(|(before, _)| *before));
            open.push((number, text));
        }
        Texts {
            texts,
            shorter,
            ends,
        }
    }

    fn number(&self, text: &[u8]) -> Option<usize> {
        self.texts
            .binary_search_by(|other| (**other).cmp(text))
            .ok()
    }

    /// The longest text with which `whole` begins.
    fn longest_in(&self, whole: &[u8]) -> Option<usize> {
        let behind = self.texts.partition_point(|text| **text <= *whole);
        let before = behind.checked_sub(1)?;
        let common = |text: &[u8]| text.iter().zip(whole).take_while(|(a, b)| a == b).count();
        let common = common(self.texts.get(before)?);
        let mut next = Some(before);
        // The text before begins with each of these, so the length tells whether `whole` does.
        while let Some(number) = next {
            if self.texts.get(number)?.len() <= common {
                return Some(number);
            }
            next = self.shorter(number);
        }
        None
    }

    /// The longest other text with which this one begins.
    fn shorter(&self, number: usize) -> Option<usize> {
        self.shorter.get(number).copied().flatten()
    }

    /// Whether the other text is this one or begins with it.
    fn begins(&self, number: usize, other: usize) -> bool {
        let end = self.ends.get(number).copied().unwrap_or(0);
        (number..end).contains(&other)
    }

    fn memory_bytes(&self) -> usize {
        let each = size_of::<Box<[u8]>>() + size_of::<Option<usize>>() + size_of::<usize>();
        let texts = self.texts.iter().map(|text| allocated(text.len()));
        self.texts.capacity() * each + texts.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The matcher written in the most direct way.
    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, _) => name.is_empty(),
            (Some((b'*', more)), None) => matches(more, name),
            (Some((b'*', more)), Some((_, left))) => matches(more, name) || matches(pattern, left),
            (Some((byte, more)), Some((other, left))) => byte == other && matches(more, left),
            (Some(_), None) => false,
        }
    }

    fn of(patterns: &[&[u8]]) -> Patterns {
        let named = patterns.iter().enumerate();
        Patterns::new(
            named
                .map(|(slot, name)| (*name, LimitIx::in_slot(slot)))
                .collect(),
        )
    }

    #[test]
    fn a_star_stands_for_any_bytes() {
        for (pattern, name, is) in [
            ("user-*", "user-", true),
            ("user-*", "user-7", true),
            ("user-*", "user", false),
            ("*", "", true),
            ("*-eu", "a-eu-eu", true),
            ("*-eu", "a-eu-us", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
        ] {
            let found = of(&[pattern.as_bytes()]).find(name.as_bytes());
            assert_eq!(found.is_some(), is, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_that_nearly_matches_a_thousand_patterns_takes_no_time() {
        let a = |n: usize| "a".repeat(n);
        for kind in 0..4 {
            let hostile = |n: usize| match kind {
                0 => format!("*{}b", a(n)),
                1 => format!("{}*b", a(n)),
                2 => format!("{}*{}b", a(n / 2), a(n / 2)),
                _ => format!("{}b", "*a".repeat(n / 2 + 1)),
            };
            let patterns: Vec<String> = (0..1000).map(hostile).collect();
            let patterns: Vec<&[u8]> = patterns.iter().map(|p| p.as_bytes()).collect();
            let patterns = of(&patterns);
            let name = a(1024);
            let begun = std::time::Instant::now();
            for _ in 0..1000 {
                assert_eq!(patterns.find(name.as_bytes()), None);
            }
            let took = begun.elapsed();
            assert!(took.as_millis() < 1000, "1,000 names took {took:?}");
        }
    }

    proptest! {
        #[test]
        fn the_first_pattern_that_matches_is_found(
            patterns in vec("[ab]{0,3}\\*[ab*]{0,5}", 0..20),
            names in vec("[ab]{0,8}", 1..20),
        ) {
            let mut patterns = patterns;
            patterns.sort();
            patterns.dedup();
            let named: Vec<&[u8]> = patterns.iter().map(|p| p.as_bytes()).collect();
            let index = of(&named);
            prop_assert_eq!(index.len(), named.len());
            for name in &names {
                let name = name.as_bytes();
                let fitting = named.iter().enumerate().filter(|(_, p)| matches(p, name));
                let best = fitting.min_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then(a.cmp(b)));
                let best = best.map(|(slot, _)| LimitIx::in_slot(slot));
                prop_assert_eq!(index.find(name), best);
            }
        }
    }
}
