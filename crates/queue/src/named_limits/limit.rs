//! One name with the usage of its limit, and the groups that wait for it.

// Clients choose what is summed here: by the types of `sums`, or saturating.
#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;

use smallvec::SmallVec;

use super::rule::LimitRule;
use crate::collections::footprint::{allocated, array};
use crate::collections::ordered::OrderedSet;
use crate::collections::rate_window::RateWindow;
use crate::index::ready_line::Position;
use crate::message::limited::Limited;
use crate::sums::Sum;
use crate::Millis;

/// A name that a limit is counted for, or a pattern.
#[derive(Debug, Clone, Default)]
pub struct Limit {
    /// The name, or the pattern.
    pub name: Box<[u8]>,
    /// The rule that DQ.LIMIT gave exactly this name.
    pub own: Option<Arc<LimitRule>>,
    /// The rule in force: its own, or that of the pattern that suits it best. Always
    /// `None` for a pattern.
    pub rule: Option<Arc<LimitRule>>,
    /// The name of the pattern whose rule is in force.
    pub pattern: Option<Box<[u8]>>,
    /// The deliveries that began within each window of the rule.
    pub(super) windows: SmallVec<[RateWindow; 1]>,
    /// The messages that run.
    pub running: u64,
    /// The sum of the costs of the messages that run.
    pub running_cost: Sum,
    /// The groups in the ready line that wait for the limit, in the order of the ready line.
    pub(crate) line: OrderedSet<Position>,
    /// Groups whose next message costs more than the limit ever allows.
    pub(crate) too_large: OrderedSet<Position>,
    /// The first group of the line, if the limit has room for it. Only this group can
    /// deliver.
    pub(crate) open: Option<Position>,
    /// The time of the next check of the limit.
    pub(super) time: Option<Millis>,
}

/// The use of a limit by the messages that a FETCH has already chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// How many messages.
    pub messages: u64,
    /// The sum of the costs of these messages.
    pub cost: u64,
}

impl Limit {
    /// Creates a name without any usage.
    pub(super) fn new(name: &[u8]) -> Limit {
        Limit {
            name: name.into(),
            ..Limit::default()
        }
    }

    /// Whether this is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.name.contains(&b'*')
    }

    /// The windows of the rule in force, each with the deliveries that began within it.
    pub fn windows(&self) -> impl Iterator<Item = (crate::settings::Rate, &RateWindow)> {
        let rates = self.rule.iter().flat_map(|rule| rule.rates.iter().copied());
        rates.zip(&self.windows)
    }

    /// Whether a message of this cost can begin at `now`.
    pub fn has_room(&self, cost: u64, now: Millis) -> bool {
        self.has_room_behind(cost, now, Taken::default())
    }

    /// Whether a message of this cost can begin at `now`, behind others that are taken then.
    pub(crate) fn has_room_behind(&self, cost: u64, now: Millis, taken: Taken) -> bool {
        let taken = match self.is_weighted() {
            true => taken.cost,
            false => taken.messages,
        };
        let all = self.amount(cost).saturating_add(taken);
        let mut windows = self.windows();
        self.may_run(all) && windows.all(|(rate, window)| window.free(rate, now) >= all)
    }

    /// Whether the rule in force counts costs.
    fn is_weighted(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.weighted)
    }

    /// The amount that one message of this cost takes of the limit.
    fn amount(&self, cost: u64) -> u64 {
        self.rule.as_ref().map_or(cost, |rule| rule.amount(cost))
    }

    /// Whether CONCURRENCY allows this amount in addition to what runs.
    fn may_run(&self, amount: u64) -> bool {
        self.rule.as_ref().is_none_or(|rule| match rule.weighted {
            _ if rule.concurrency == 0 => true,
            false => self.running.saturating_add(amount) <= rule.concurrency,
            true => {
                let room = self.running_cost.room_to(rule.concurrency);
                self.running_cost.is_within(rule.concurrency) && amount <= room
            }
        })
    }

    /// Whether the rule allows a message of this cost at some time.
    pub fn ever_has_room(&self, cost: u64) -> bool {
        self.rule.as_ref().is_none_or(|rule| cost <= rule.most())
    }

    /// The time at which its windows have room for a message of this cost; `None` if
    /// there is room only after the end of another message.
    pub fn room_at(&self, cost: u64) -> Option<Millis> {
        let amount = self.amount(cost);
        if !self.may_run(amount) || !self.ever_has_room(cost) {
            return None;
        }
        let times = self
            .windows()
            .map(|(rate, window)| window.room_at(rate, amount));
        times.max()
    }

    /// Whether the first group that waits can never go, because its next message costs more
    /// than the rule ever allows.
    pub fn is_stuck(&self) -> bool {
        let first = |of: &OrderedSet<Position>| of.first().map(|(key, ())| key);
        let next = first(&self.line);
        first(&self.too_large).is_some_and(|key| next.is_none_or(|next| key < next))
    }

    /// Whether the group at this position can deliver a message of this cost: the limit
    /// has room, and no group before it waits for more room.
    pub(crate) fn lets(&self, cost: u64, key: Position, now: Millis) -> bool {
        let first = self.line.first().map(|(first, ())| first);
        let is_behind = first.is_some_and(|first| first < key) && self.open.is_none();
        !is_behind && self.has_room(cost, now)
    }

    /// Applies another rule. Deliveries within the windows of the previous rule continue
    /// to count, as far as they are known, unless only one of the two counts costs.
    pub(super) fn govern(&mut self, rule: Option<Arc<LimitRule>>, pattern: Option<&[u8]>) {
        if self.rule == rule {
            self.pattern = pattern.map(Into::into);
            return;
        }
        let longest = self.windows().max_by_key(|(rate, _)| rate.per);
        let counts_alike = rule.as_ref().is_some_and(|rule| rule.weighted) == self.is_weighted();
        let known = longest.filter(|_| counts_alike);
        let known = known.map(|(_, window)| window.clone());
        let rates = rule.iter().flat_map(|rule| rule.rates.iter());
        self.windows = rates.map(|_| known.clone().unwrap_or_default()).collect();
        self.rule = rule;
        self.pattern = pattern.map(Into::into);
        // A group whose message is too large for the rule now is found when it comes to be first.
        for (key, ()) in std::mem::take(&mut self.too_large).iter() {
            self.line.insert(key, ());
        }
    }

    /// Counts a message that runs.
    pub(super) fn run(&mut self, cost: u64) {
        self.running = self.running.saturating_add(1);
        self.running_cost += cost;
    }

    /// Counts a delivery.
    pub(super) fn count(&mut self, cost: u64, now: Millis, is_leased: bool) {
        if is_leased {
            self.run(cost);
        }
        let amount = self.amount(cost);
        if amount > 0 {
            let rates = self.rule.iter().flat_map(|rule| rule.rates.iter());
            for (rate, window) in rates.zip(&mut self.windows) {
                window.count(*rate, now, amount);
            }
        }
    }

    /// Corrects the cost of a delivery that began at `at`, if the windows still count it, and
    /// count costs.
    pub(super) fn correct(&mut self, at: Millis, before: u64, after: u64) {
        if !self.is_weighted() {
            return;
        }
        for window in &mut self.windows {
            window.correct(at, before, after);
        }
    }

    /// A message runs no longer.
    pub(super) fn release(&mut self, limited: &Limited) {
        debug_assert!(self.running > 0, "what runs of a limit is miscounted");
        self.running = self.running.saturating_sub(1);
        self.running_cost -= limited.cost;
    }

    /// The time from which on no past delivery counts any longer; `None` if none counts now.
    pub(crate) fn over_at(&self) -> Option<Millis> {
        let ends = self.windows().filter_map(|(rate, window)| {
            let (last, _) = window.given().next_back()?;
            Some(last.saturating_add(rate.per))
        });
        ends.max()
    }

    /// The number of groups that wait for the limit.
    pub fn waiting(&self) -> usize {
        self.line.len().saturating_add(self.too_large.len())
    }

    /// Whether the limit must be kept for more than its windows.
    pub(crate) fn is_kept(&self) -> bool {
        self.own.is_some()
            || self.running > 0
            || !self.line.is_empty()
            || !self.too_large.is_empty()
    }

    /// Whether the limit need not be kept at `now`.
    pub(super) fn is_idle(&self, now: Millis) -> bool {
        !self.is_kept() && self.over_at().is_none_or(|at| at <= now)
    }

    /// The state of the limit, without the groups. For tests.
    #[cfg(any(test, feature = "validate"))]
    pub fn told(&self) -> String {
        let waiting = self.line.iter().chain(self.too_large.iter());
        let mut waiting: Vec<_> = waiting.map(|(key, ())| (key.priority, key.seq)).collect();
        waiting.sort_unstable();
        let windows: Vec<_> = self.windows().collect();
        let running = (self.running, self.running_cost);
        let open = self.open.map(|key| key.seq);
        let rules = (&self.own, &self.rule, &self.pattern);
        format!(
            "{:?}",
            (&self.name, rules, windows, running, waiting, open, self.time)
        )
    }

    /// Bytes allocated, an estimate.
    pub(super) fn memory_bytes(&self) -> usize {
        let spilled = match self.windows.spilled() {
            true => array::<RateWindow>(self.windows.capacity()),
            false => 0,
        };
        let pattern = self.pattern.as_ref();
        let windows = self.windows.iter().map(RateWindow::heap_bytes);
        let others = [
            allocated(self.name.len()),
            self.own.as_ref().map_or(0, |rule| rule.memory_bytes()),
            pattern.map_or(0, |name| allocated(name.len())),
            spilled,
            self.line.memory_bytes(),
            self.too_large.memory_bytes(),
        ];
        windows.chain(others).sum()
    }
}
