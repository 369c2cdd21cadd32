//! The patterns of a queue, and which of them holds for a name.
//!
//! A pattern is the text before its first `*` (its head), the text behind the last one (its tail),
//! and what stands between these two, if there are several. The heads that a name begins with
//! are found by one search, since each of them begins the next longer one, and so are the tails
//! that it has with each of these heads. So patterns that do not suit the name at both ends cost
//! nothing. Of those of one `*` that do, the longest of each head is found at once. What stands
//! between the stars of the others is searched for in the name once, for all of them.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::between::{Candidate, Parts};
use super::texts::{Forest, Texts};
use crate::collections::footprint::allocated;
use crate::LimitIx;

/// The patterns of a queue, in the order in which they hold: longer ones first, then by their
/// bytes.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    /// The patterns, in their order.
    limits: Vec<LimitIx>,
    heads: Texts,
    /// Tails, from their last byte to the first.
    tails: Texts,
    /// The patterns with each head that have one `*`.
    with_one: Vec<Tailed>,
    /// The patterns with each head that have several.
    with_several: Vec<Tailed>,
    /// The texts between the stars of those.
    parts: Parts,
    /// The last names for which those were searched, and what was found: one SEND asks several
    /// times for each of its names, and DQ.MSEND for each message.
    last: RefCell<VecDeque<Found>>,
}

/// A name, and the place in the order of the pattern that was found for it.
type Found = (Box<[u8]>, Option<usize>);

/// The most names that are remembered: as many as a message has, and as many again.
const REMEMBERED: usize = 16;

/// The patterns with one head.
#[derive(Debug, Clone, Default)]
struct Tailed {
    /// In the order of the numbers of their tails.
    patterns: Vec<Pattern>,
    /// Each pattern below one whose tail is the end of its own, or is the same.
    forest: Forest,
}

#[derive(Debug, Clone, Copy)]
struct Pattern {
    /// The number of its tail.
    tail: usize,
    /// Its place in the order of all.
    order: usize,
    /// The number of its parts between stars, if there are any.
    sequence: Option<usize>,
}

impl Tailed {
    /// Puts the patterns in the order of their tails. O(n log n).
    fn link(&mut self, tails: &Texts) {
        self.patterns.sort_unstable_by_key(|pattern| pattern.tail);
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (number, pattern) in self.patterns.iter().enumerate() {
            while open
                .pop_if(|(_, tail)| !tails.begins(*tail, pattern.tail))
                .is_some()
            {}
            self.forest.push(open.last().map(|(above, _)| *above));
            open.push((number, pattern.tail));
        }
    }

    /// The patterns whose tails a name has with at most this length, the longest first. `tail` is
    /// the longest tail of all that the name has. O(log n) for the first one.
    fn suiting<'a>(
        &'a self,
        tails: &'a Texts,
        tail: usize,
        most: usize,
    ) -> impl Iterator<Item = Pattern> + 'a {
        let before = self
            .patterns
            .partition_point(|pattern| pattern.tail <= tail);
        let suits = move |number: usize| {
            let pattern = self.patterns.get(number);
            pattern
                .is_some_and(|one| tails.begins(one.tail, tail) && tails.len_of(one.tail) <= most)
        };
        let first = before.checked_sub(1);
        let first = first.and_then(|before| self.forest.nearest(before, suits));
        let numbers = std::iter::successors(first, |number| self.forest.parent(*number));
        numbers.filter_map(|number| self.patterns.get(number).copied())
    }

    fn memory_bytes(&self) -> usize {
        allocated(self.patterns.capacity() * size_of::<Pattern>()) + self.forest.memory_bytes()
    }
}

impl Patterns {
    /// The patterns with these names. O(n log n).
    pub fn new(mut named: Vec<(&[u8], LimitIx)>) -> Patterns {
        named.sort_unstable_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        let split: Vec<_> = named.iter().map(|(name, _)| split(name)).collect();
        let mut patterns = Patterns {
            limits: named.iter().map(|(_, limit)| *limit).collect(),
            parts: Parts::new(split.iter().filter_map(|(_, between, _)| *between)),
            heads: Texts::new(split.iter().map(|(head, ..)| (*head).into())),
            tails: Texts::new(split.iter().map(|(.., tail)| backwards(tail))),
            ..Patterns::default()
        };
        let Patterns {
            heads,
            tails,
            with_one,
            with_several,
            parts,
            ..
        } = &mut patterns;
        with_one.resize_with(heads.len(), Tailed::default);
        with_several.resize_with(heads.len(), Tailed::default);
        for (order, (head, between, tail)) in split.into_iter().enumerate() {
            let with_head = match between {
                Some(_) => &mut *with_several,
                None => &mut *with_one,
            };
            let with_head = heads.number(head).and_then(|at| with_head.get_mut(at));
            let (Some(with_head), Some(tail)) = (with_head, tails.number(&backwards(tail))) else {
                continue;
            };
            with_head.patterns.push(Pattern {
                tail,
                order,
                sequence: between.and_then(|between| parts.add(between)),
            });
        }
        for with_head in with_one.iter_mut().chain(with_several) {
            with_head.link(tails);
        }
        patterns
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.limits.len()
    }

    /// All patterns, in their order.
    pub fn limits(&self) -> impl Iterator<Item = LimitIx> + '_ {
        self.limits.iter().copied()
    }

    /// The first pattern that the name matches. O(length of the name, log n), and for patterns of
    /// several `*` whose head and tail the name has, what [`Parts::first`] says.
    pub fn find(&self, name: &[u8]) -> Option<LimitIx> {
        self.search(name, &mut 0)
    }

    /// The same, and adds to `steps` what it has read of the name, of patterns and of parts.
    fn search(&self, name: &[u8], steps: &mut usize) -> Option<LimitIx> {
        *steps += name.len();
        if let Some(found) = self.remembered(name) {
            return found.and_then(|order| self.limits.get(order).copied());
        }
        *steps += name.len();
        let tail = self.tails.longest_in(&backwards(name))?;
        let mut best: Option<usize> = None;
        let mut candidates = Vec::new();
        let head = self.heads.longest_in(name);
        for head in std::iter::successors(head, |head| self.heads.shorter(*head)) {
            *steps += 1;
            let from = self.heads.len_of(head);
            let most = name.len() - from;
            let one = self.with_one.get(head);
            let one = one.and_then(|of| of.suiting(&self.tails, tail, most).next());
            best = best.into_iter().chain(one.map(|one| one.order)).min();
            let several = self.with_several.get(head).into_iter();
            for one in several.flat_map(|of| of.suiting(&self.tails, tail, most)) {
                *steps += 1;
                let Some(sequence) = one.sequence else {
                    best = best.into_iter().chain([one.order]).min();
                    continue;
                };
                candidates.push(Candidate {
                    order: one.order,
                    sequence,
                    found: 0,
                    from,
                    until: name.len() - self.tails.len_of(one.tail),
                });
            }
        }
        candidates.retain(|one| best.is_none_or(|best| one.order < best));
        if !candidates.is_empty() {
            // The shortest heads come last.
            let candidates = candidates.into_iter().rev();
            best = self.parts.first(name, candidates, steps).or(best);
            let mut last = self.last.borrow_mut();
            last.truncate(REMEMBERED - 1);
            last.push_front((name.into(), best));
        }
        best.and_then(|order| self.limits.get(order).copied())
    }

    /// What was found for a name, if it is one of the last ones.
    fn remembered(&self, name: &[u8]) -> Option<Option<usize>> {
        let last = self.last.borrow();
        let mut last = last.iter().filter(|(other, _)| **other == *name);
        last.next().map(|(_, found)| *found)
    }

    /// Bytes allocated, an estimate. O(n).
    pub fn memory_bytes(&self) -> usize {
        let with_head = self.with_one.iter().chain(&self.with_several);
        let last = self.last.borrow();
        let last = last.iter().map(|(name, _)| allocated(name.len()));
        last.sum::<usize>()
            + self.heads.memory_bytes()
            + self.tails.memory_bytes()
            + allocated(self.with_one.capacity() * size_of::<Tailed>())
            + allocated(self.with_several.capacity() * size_of::<Tailed>())
            + allocated(self.limits.capacity() * size_of::<LimitIx>())
            + self.parts.memory_bytes()
            + with_head.map(Tailed::memory_bytes).sum::<usize>()
    }
}

/// The head of a pattern, what stands between its first `*` and its last if it has several, and
/// its tail.
fn split(pattern: &[u8]) -> (&[u8], Option<&[u8]>, &[u8]) {
    let is_star = |byte: &u8| *byte == b'*';
    let first = pattern.iter().position(is_star).unwrap_or(pattern.len());
    let last = pattern.iter().rposition(is_star).unwrap_or(first);
    let part = |range: std::ops::Range<usize>| pattern.get(range).unwrap_or_default();
    (
        part(0..first),
        (first < last).then(|| part(first + 1..last)),
        part(last + 1..pattern.len()),
    )
}

/// What stands between the first star of a pattern and its last.
pub fn between(pattern: &[u8]) -> &[u8] {
    split(pattern).1.unwrap_or_default()
}

/// A text from its last byte to the first.
pub fn backwards(text: &[u8]) -> Box<[u8]> {
    text.iter().rev().copied().collect()
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

    /// Makes a pattern of a number.
    type Pattern = fn(usize) -> String;

    /// Patterns of about this length that a name of many `a` nearly matches, and whether their
    /// parts end in each other.
    const HOSTILE: [(bool, Pattern); 9] = [
        (false, |n| format!("*{}c", "a".repeat(n))),
        (false, |n| format!("{}*", "a".repeat(n))),
        (false, |n| format!("{}*c", "a".repeat(n))),
        (false, |n| {
            format!("{}*{}c", "a".repeat(n / 2), "a".repeat(n / 2))
        }),
        (false, |n| format!("{}*c*", "*a".repeat(n / 2))),
        (false, |n| {
            format!("{}*{}*c*", "a".repeat(n / 2), "a*b".repeat(n / 6))
        }),
        (true, |n| format!("*{}*c*", "a".repeat(n))),
        (true, |n| format!("*b*{}*ab*c*", "a".repeat(n))),
        (true, |n| {
            format!("*{}b{}*c*", "a".repeat(n / 2), "ab".repeat(n / 4))
        }),
    ];

    #[test]
    fn a_name_costs_as_many_steps_as_its_length_and_the_patterns_that_suit_it() {
        for (kind, (nested, hostile)) in HOSTILE.iter().enumerate() {
            for (many, len) in [(100, 500), (300, 500), (300, 1000)] {
                let patterns: Vec<String> = (1..many + 1).map(hostile).collect();
                let parts: usize = patterns.iter().map(|p| p.split('*').count()).sum();
                let patterns: Vec<&[u8]> = patterns.iter().map(|p| p.as_bytes()).collect();
                let name = ["a".repeat(len / 2), "b".into(), "a".repeat(len / 2)].concat();
                let mut steps = 0;
                of(&patterns).search(name.as_bytes(), &mut steps);
                let ends = if *nested { many } else { 2 };
                let most = name.len() * (3 + ends) + parts;
                assert!(
                    steps <= most,
                    "{kind}: {many} patterns, {len} bytes: {steps} of {most}"
                );
            }
        }
    }

    #[test]
    fn the_last_names_are_not_searched_again() {
        let index = of(&[b"*a*b*c*"]);
        let names: Vec<String> = (0..8).map(|i| format!("{}{i}", "a".repeat(900))).collect();
        let steps = |name: &String| {
            let mut steps = 0;
            index.search(name.as_bytes(), &mut steps);
            steps
        };
        let first: usize = names.iter().map(steps).sum();
        let again: usize = names.iter().map(steps).sum();
        assert!(again < first - 8 * 900, "{again} of {first}");
    }

    proptest! {
        #[test]
        fn the_first_pattern_that_matches_is_found(
            patterns in vec("[ab]{0,3}\\*[ab*]{0,7}", 0..20),
            names in vec("[ab]{0,10}", 1..20),
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
