//! Which rule holds for which name: its own, or that of a pattern.

use std::sync::Arc;

use super::between::{parts, texts};
use super::patterns::{self, Patterns};
use super::{Limit, LimitRule, NamedLimits};
use crate::error::Error;
use crate::limits::{ensure, Invalid};
use crate::LimitIx;

/// The most patterns of a queue.
pub const MAX_PATTERNS: usize = 1000;
/// The most bytes that all patterns of a queue together have between their first stars and their
/// last. It bounds the memory of the search for them.
pub const MAX_BETWEEN: usize = 64 * 1024;
/// The most parts between stars that all patterns of a queue have together, since a name may have
/// all of them.
pub const MAX_PARTS: usize = 4096;
/// The most parts that end in each other, since all of them may end at each byte of a name.
pub const MAX_NESTED: usize = 16;

/// What these patterns have too much of between their stars, and how much they may have.
fn excess(names: &[&[u8]]) -> Option<(&'static str, usize)> {
    let between = || names.iter().map(|name| patterns::between(name));
    if between().map(<[u8]>::len).sum::<usize>() > MAX_BETWEEN {
        return Some(("bytes", MAX_BETWEEN));
    }
    if between().flat_map(parts).count() > MAX_PARTS {
        return Some(("parts", MAX_PARTS));
    }
    (texts(between()).deepest() > MAX_NESTED)
        .then_some(("parts that end in each other", MAX_NESTED))
}

impl NamedLimits {
    /// Checks that another pattern would not be too much, unless the name has one already.
    ///
    /// Errors: there would be too many, or too much between their stars.
    pub(crate) fn check_pattern(&self, name: &[u8]) -> Result<(), Error> {
        let known = self.find(name).and_then(|ix| self.get(ix));
        if known.is_some_and(|limit| limit.own.is_some()) {
            return Ok(());
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(Error::TooManyPatterns {
                limit: MAX_PATTERNS,
            });
        }
        let others = self.patterns.limits().filter_map(|ix| self.get(ix));
        let names: Vec<&[u8]> = others.map(|limit| &*limit.name).chain([name]).collect();
        match excess(&names) {
            Some((what, limit)) => Err(Error::PatternsTooLong { what, limit }),
            None => Ok(()),
        }
    }

    /// The limit or the pattern whose rule holds for a name: the name itself, or the longest
    /// pattern that it matches, the first in the order of their bytes. A name that is known
    /// already knows it. O(length of the name), however many patterns there are.
    pub(super) fn rule_for(&self, name: &[u8]) -> Option<&Limit> {
        let Some(limit) = self.find(name).and_then(|ix| self.get(ix)) else {
            return self.patterns.find(name).and_then(|ix| self.get(ix));
        };
        match &limit.pattern {
            _ if limit.own.is_some() => Some(limit),
            Some(pattern) => self.find(pattern).and_then(|ix| self.get(ix)),
            None => None,
        }
    }

    /// Applies the right rule to a limit.
    pub(super) fn govern(&mut self, ix: LimitIx) {
        let Some(limit) = self.get(ix) else {
            return;
        };
        if limit.is_pattern() {
            return;
        }
        let of = match limit.own {
            Some(_) => Some(limit),
            None => self.patterns.find(&limit.name).and_then(|ix| self.get(ix)),
        };
        let rule = of.and_then(|of| of.own.clone());
        let pattern = of.filter(|of| of.is_pattern());
        let pattern = pattern.map(|pattern| pattern.name.clone());
        if let Some(limit) = self.get_mut(ix) {
            limit.govern(rule, pattern.as_deref());
        }
    }

    /// Sets the rule of a name or a pattern, or removes it. Returns the limits whose rule
    /// may be another now: the one with the name, or all. O(limits) for a pattern.
    pub(crate) fn set_rule(&mut self, name: &[u8], rule: Option<LimitRule>) -> Vec<LimitIx> {
        let ix = self.set_own(name, rule);
        if !name.contains(&b'*') {
            self.govern(ix);
            return vec![ix];
        }
        let was_there = self.patterns.limits().any(|other| other == ix);
        let is_there = self.get(ix).is_some_and(|limit| limit.own.is_some());
        // Another rule of a pattern leaves the patterns as they are.
        if was_there != is_there {
            let others = self.patterns.limits().filter(|other| *other != ix);
            let patterns = others.chain(is_there.then_some(ix)).collect();
            self.arrange(patterns);
        }
        self.govern_all()
    }

    /// Sets the rule that a name or a pattern has of its own, and applies it nowhere yet.
    fn set_own(&mut self, name: &[u8], rule: Option<LimitRule>) -> LimitIx {
        let ix = self.find_or_add(name);
        if let Some(limit) = self.get_mut(ix) {
            limit.own = rule.map(Arc::new);
        }
        ix
    }

    /// Makes these the patterns. O(their text * log).
    fn arrange(&mut self, patterns: Vec<LimitIx>) {
        let named = patterns.iter().filter_map(|ix| {
            let limit = self.get(*ix)?;
            Some((&*limit.name, *ix))
        });
        self.patterns = Patterns::new(named.collect());
    }

    /// Applies the right rules to all limits. Returns the limits. O(limits).
    fn govern_all(&mut self) -> Vec<LimitIx> {
        let all: Vec<LimitIx> = self.starting_at(0).map(|(ix, _)| ix).collect();
        for ix in &all {
            self.govern(*ix);
        }
        all
    }

    /// Adds a limit or a pattern of a snapshot. It holds after [`NamedLimits::restore_rules`].
    pub(crate) fn restore_rule(&mut self, name: &[u8], rule: Option<LimitRule>) {
        self.set_own(name, rule);
    }

    /// Applies the rules that were restored, each to its names.
    ///
    /// Errors: there are more patterns than there may be, or there is more between their stars.
    pub(crate) fn restore_rules(&mut self) -> Result<(), Invalid> {
        let all = self.starting_at(0);
        let patterns = all.filter(|(_, limit)| limit.is_pattern() && limit.own.is_some());
        let patterns: Vec<LimitIx> = patterns.map(|(ix, _)| ix).collect();
        ensure(
            patterns.len() <= MAX_PATTERNS,
            "a queue has too many patterns",
        )?;
        let limits = patterns.iter().filter_map(|ix| self.get(*ix));
        let names: Vec<&[u8]> = limits.map(|limit| &*limit.name).collect();
        ensure(
            excess(&names).is_none(),
            "the patterns of a queue have too much between their stars",
        )?;
        self.arrange(patterns);
        self.govern_all();
        Ok(())
    }
}
