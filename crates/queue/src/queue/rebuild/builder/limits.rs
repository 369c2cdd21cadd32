//! The limits with names of a queue that is built from its parts.

use super::{at_mut, Builder};
use crate::collections::rate_window::RateWindow;
use crate::groups::group::Home;
use crate::index::fair_line::{Usage, MAX_TAG};
use crate::index::ready_line::Position;
use crate::limits::{ensure, exact, name, Invalid};
use crate::message::Message;
use crate::named_limits::LimitRule;
use crate::queue::rebuild::{check, Checked};
use crate::{GroupIx, MAX_EXACT};

/// A limit of a snapshot.
#[derive(Debug, Clone, Default)]
pub struct LimitPart {
    /// The rule that DQ.LIMIT gave this name.
    pub rule: Option<LimitRule>,
    /// The deliveries that began within each window of the rule in force.
    pub windows: Vec<RateWindow>,
    /// Whether the first group that waits for it is in the ready line.
    pub is_open: bool,
}

impl Builder {
    /// Adds a limit, or a pattern.
    ///
    /// Errors: its rule is out of range, or there are two of this name.
    pub fn limit(&mut self, limit: &[u8], part: LimitPart) -> Checked {
        name(limit)?;
        let limits = self.queue.state.seldom.limits.get_or_insert_default();
        ensure(
            limits.find(limit).is_none(),
            "two limits have the same name",
        )?;
        if let Some(rule) = &part.rule {
            rule.check(limit)?;
            ensure(!rule.is_open(), "a limit allows everything")?;
        }
        limits.restore_rule(limit, part.rule.clone());
        for window in &part.windows {
            check::window(window, self.queue.state.last)?;
        }
        self.limits.push((limit.into(), part));
        Ok(())
    }

    /// Adds the usage of a group, or of the ungrouped messages (`None`), and with the latter the
    /// state that is common to all: the clock and the mean. It comes after its group.
    ///
    /// Errors: groups do not take turns by that, or the group is missing.
    pub fn usage(
        &mut self,
        group: Option<u64>,
        usage: Usage,
        common: Option<(u64, u64)>,
    ) -> Checked {
        let usage = usage.checked();
        let fair = self.queue.state.seldom.fair_mut();
        let fair = fair.ok_or(Invalid("something was used, but FAIR is COUNT"))?;
        if let Some((clock, mean)) = common {
            fair.plain = usage;
            (fair.clock, fair.mean) = (clock.min(MAX_TAG), mean.min(MAX_EXACT));
        }
        if let Some(number) = group {
            let group = at_mut(&mut self.groups, number).map(|group| group.ix);
            let group = group.and_then(|ix| self.queue.state.groups.get_mut(ix));
            let group = group.ok_or(Invalid("what is used is of a group that is missing"))?;
            let is_some = usage != Usage::default();
            group.ext_mut().usage = is_some.then(|| Box::new(usage));
        }
        Ok(())
    }

    /// Checks that a message is in the group that its limits demand, and counts it in the
    /// limits if it runs.
    pub(super) fn limits_of(&mut self, message: &Message, is_running: bool) -> Checked {
        let limited = message.limited();
        let hidden = self.queue.state.groups.get(message.group);
        let hidden = hidden.filter(|group| group.is_hidden());
        match (limited, hidden) {
            (None, None) => return Ok(()),
            (Some(limited), Some(hidden)) => ensure(
                *hidden.name == *limited.key(),
                "a message stands among those with other limits",
            )?,
            (Some(_), None) => ensure(
                message.group != GroupIx::NONE,
                "a message with limits stands among those without",
            )?,
            (None, Some(_)) => {
                return Err(Invalid("a message without limits stands among those with"))
            }
        }
        let limits = self.queue.state.seldom.limits.get_or_insert_default();
        if let Some(limited) = limited.filter(|_| is_running) {
            limits.count_running(limited);
        }
        Ok(())
    }

    /// Restores the deliveries within the windows of the limits, and the groups that wait for each.
    pub(super) fn enter_limits(&mut self, homes: Vec<(Position, Box<[u8]>, u64)>) -> Checked {
        let queue = &mut self.queue;
        if let Some(limits) = queue.state.seldom.limits_mut() {
            limits.restore_rules()?;
        }
        for (key, name, cost) in homes {
            exact(cost)?;
            let limits = queue.state.seldom.limits_mut();
            let known = limits.and_then(|limits| Some((limits.find(&name)?, limits)));
            let (limit, limits) = known.ok_or(Invalid("a group waits for a missing limit"))?;
            if let Some(limit) = limits.get_mut(limit) {
                ensure(!limit.is_pattern(), "a group waits for a pattern")?;
                limit.line.insert(key, ());
            }
            if let Some(group) = queue.state.groups.get_mut(key.group) {
                group.set_home(Some(Home { limit, cost }));
            }
        }
        for (name, part) in std::mem::take(&mut self.limits) {
            let Some(limits) = queue.state.seldom.limits_mut() else {
                continue;
            };
            let Some(ix) = limits.find(&name) else {
                continue;
            };
            ensure(
                limits.restore(ix, part.windows),
                "a limit counts in other windows than its rule has",
            )?;
            queue.restore_limit(ix, part.is_open);
        }
        queue.index_usage();
        Ok(())
    }
}
