//! FAIR: the measure by which groups take turns. With COUNT it is the number of messages,
//! which needs nothing of this. With TIME it is the time for which workers held their
//! messages, and with COST it is their COST.
//!
//! A delivery is charged at once: by its COST, or by the time that messages of the group
//! took lately. The end of a lease puts the real time in place of that.

// Clients choose what is summed here: by the types of `sums`, or saturating.
#![warn(clippy::arithmetic_side_effects)]

use crate::groups::group::Group;
use crate::index::fair_line::{plus, FairKey, Usage, MAX_TAG};
use crate::index::ready_line::{Kind, Position};
use crate::message::Message;
use crate::queue::Queue;
use crate::settings::Fair;
use crate::{GroupIx, Seq};

/// The units of a tag in one millisecond, or in a cost of 1.
const SCALE: u64 = 1000;
/// The most that one message adds to a tag, so that no message takes its group out of the range
/// of tags: a cost of 281,474,976,710.
const MOST_CHARGED: u64 = 1 << 48;
/// When the clock has come here, all tags are counted anew from it on. That is after at least
/// 8,192 deliveries.
const LATEST_CLOCK: u64 = MAX_TAG / 2;

impl Queue {
    /// The usage of a group, or of the ungrouped messages.
    fn usage(&self, ix: GroupIx) -> Usage {
        match self.state.groups.get(ix) {
            Some(group) => group.ext().usage.as_deref().copied().unwrap_or_default(),
            None => self
                .state
                .seldom
                .fair
                .as_ref()
                .map_or(Usage::default(), |fair| fair.plain),
        }
    }

    fn set_usage(&mut self, ix: GroupIx, usage: Usage) {
        if let Some(group) = self.state.groups.get_mut(ix) {
            let usage = (usage != Usage::default()).then(|| Box::new(usage));
            if usage.is_some() || group.ext().usage.is_some() {
                group.ext_mut().usage = usage;
            }
        } else if let Some(fair) = self.state.seldom.fair_mut() {
            fair.plain = usage;
        }
    }

    /// The key of a position in the order of usage.
    pub(in crate::queue) fn fair_key(&self, position: Position) -> FairKey {
        FairKey::new(self.usage(position.group).tag, position)
    }

    /// The key of the ungrouped messages in the order of usage.
    pub(in crate::queue) fn fair_key_of_plain(&self, position: Position) -> FairKey {
        let fair = self.state.seldom.fair.as_deref();
        let tag = fair.map_or(0, |fair| fair.plain.tag.max(fair.clock));
        FairKey::new(tag, position)
    }

    /// Adds a position to the ready line.
    #[inline(always)]
    pub(in crate::queue) fn line_insert(&mut self, key: Position, kind: Kind) {
        self.indexes.ready_line.insert(key, kind);
        if self.state.seldom.has_fair() {
            self.fair_line_insert(key, kind);
        }
    }

    #[cold]
    fn fair_line_insert(&mut self, key: Position, kind: Kind) {
        self.start_fairly(key.group);
        let key = self.fair_key(key);
        if let Some(fair) = self.state.seldom.fair_mut() {
            fair.insert(key, kind);
        }
    }

    /// Removes a position from the ready line.
    #[inline(always)]
    pub(in crate::queue) fn line_remove(&mut self, key: &Position) {
        self.indexes.ready_line.remove(key);
        if self.state.seldom.has_fair() {
            self.fair_line_remove(key);
        }
    }

    #[cold]
    fn fair_line_remove(&mut self, key: &Position) {
        let key = self.fair_key(*key);
        if let Some(fair) = self.state.seldom.fair_mut() {
            fair.remove(&key);
        }
    }

    /// A group that comes to the line has at least the tag of the group that delivered last.
    pub(in crate::queue) fn start_fairly(&mut self, ix: GroupIx) {
        let clock = self.state.seldom.fair.as_ref().map_or(0, |fair| fair.clock);
        let usage = self.usage(ix);
        if usage.tag < clock {
            self.set_usage(
                ix,
                Usage {
                    tag: clock,
                    ..usage
                },
            );
        }
    }

    /// Changes the usage of a group, and with it its place in the order.
    fn change_usage(&mut self, ix: GroupIx, change: impl FnOnce(&mut Usage)) {
        let stands = self
            .state
            .groups
            .get(ix)
            .and_then(|group| group.position(ix));
        let limits = self.state.seldom.limits.as_ref();
        let home = self.state.groups.get(ix).and_then(Group::home);
        let is_open = match home {
            None => true,
            Some(home) => {
                let limit = limits.and_then(|limits| limits.get(home.limit));
                limit.is_some_and(|limit| limit.open == stands)
            }
        };
        let stands = stands.filter(|_| is_open);
        if let Some(key) = stands {
            self.line_remove(&key);
        }
        let mut usage = self.usage(ix);
        change(&mut usage);
        self.set_usage(ix, usage);
        if let Some(key) = stands {
            let kind = self.kind_of(ix, self.state.last);
            self.line_insert(key, kind);
        }
    }

    fn weight_of(&self, ix: GroupIx) -> u64 {
        self.state.groups.get(ix).map_or(1, Group::weight)
    }

    /// Charges a delivery.
    #[cold]
    pub(in crate::queue) fn charge(&mut self, seq: Seq, is_leased: bool) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let (ix, cost) = (message.group, message.cost());
        let weight = self.weight_of(ix);
        let usage = self.usage(ix);
        let Some(fair) = self.state.seldom.fair_mut() else {
            return;
        };
        let clock = fair.clock;
        fair.clock = clock.max(usage.tag);
        let used = match (self.state.settings.fair, is_leased, usage.mean) {
            (Fair::Cost, ..) => cost,
            (_, false, _) => 0,
            (_, true, 0) => fair.mean,
            (_, true, mean) => mean,
        };
        // Each message costs something, so that groups take turns even if no usage is known.
        let charged = plus(charge_of(used, weight), 1);
        let is_estimate = is_leased && self.state.settings.fair == Fair::Time;
        self.change_usage(ix, |usage| {
            usage.tag = plus(usage.tag.max(clock), charged);
            if is_estimate {
                usage.estimated = plus(usage.estimated, charged);
            }
        });
        self.rewind_clock(ix);
    }

    /// Counts all tags from the clock on, once that is late. The order of the groups stays:
    /// whose tag is below the clock gets that of the clock when it comes to the line. O(groups log
    /// n). The group `giving`, whose message is on its way out, is looked at later.
    fn rewind_clock(&mut self, giving: GroupIx) {
        let Some(fair) = self.state.seldom.fair_mut() else {
            return;
        };
        let clock = fair.clock;
        if clock < LATEST_CLOCK {
            return;
        }
        fair.clock = 0;
        fair.plain = fair.plain.since(clock);
        fair.clear();
        for ix in self.state.groups.all() {
            let usage = self.usage(ix).since(clock);
            self.set_usage(ix, usage);
            if ix != giving {
                self.state.groups.settle(ix);
            }
        }
        self.index_usage();
    }

    /// Replaces the estimate by the time for which a message was held. The group still
    /// counts it as running.
    #[cold]
    pub(in crate::queue) fn settle_time(&mut self, seq: Seq) {
        if self.state.settings.fair != Fair::Time {
            return;
        }
        let message = self.state.store.get(seq);
        let Some((ix, started_at)) = message.map(|m: &Message| (m.group, m.started_at())) else {
            return;
        };
        let held = self.state.last.saturating_sub(started_at);
        let running = match self.state.groups.get(ix) {
            Some(group) => u64::from(group.running),
            // The message's lease is no longer in the index.
            None => (self.state.leases.len() as u64)
                .saturating_add(1)
                .saturating_sub(self.indexes.grouped_running),
        };
        let weight = self.weight_of(ix);
        if let Some(fair) = self.state.seldom.fair_mut() {
            fair.mean = later_mean(fair.mean, held);
        }
        self.change_usage(ix, |usage| {
            let share = usage
                .estimated
                .checked_div(running)
                .unwrap_or(usage.estimated);
            let used = plus(charge_of(held, weight), 1);
            usage.estimated = usage.estimated.saturating_sub(share);
            usage.tag = plus(usage.tag.saturating_sub(share), used);
            usage.mean = later_mean(usage.mean, held);
        });
    }

    /// Corrects the usage of the group for a message, whose own cost was charged before.
    pub(in crate::queue) fn settle_cost(&mut self, seq: Seq, cost: u64) {
        if self.state.settings.fair != Fair::Cost {
            return;
        }
        let Some((ix, before)) = self
            .state
            .store
            .get(seq)
            .map(|m: &Message| (m.group, m.cost()))
        else {
            return;
        };
        let weight = self.weight_of(ix);
        self.change_usage(ix, |usage| {
            let before = charge_of(before, weight);
            let after = charge_of(cost, weight);
            usage.tag = plus(usage.tag.saturating_sub(before), after);
        });
    }

    /// Begins or ends to take turns by usage, after FAIR was changed. O(groups log n).
    pub(in crate::queue) fn alter_fair(&mut self, before: Fair) {
        if before == self.state.settings.fair {
            return;
        }
        self.state.seldom.fair = None;
        for ix in self.state.groups.all() {
            self.set_usage(ix, Usage::default());
            self.state.groups.settle(ix);
        }
        if self.state.settings.fair != Fair::Count {
            self.state.seldom.fair = Some(Box::default());
            self.index_usage();
        }
    }

    /// Orders the groups in the ready line by their tags.
    pub(in crate::queue) fn index_usage(&mut self) {
        let keys: Vec<Position> = self.indexes.ready_line.iter().collect();
        for key in keys {
            let kind = self.kind_of(key.group, self.state.last);
            let key = self.fair_key(key);
            if let Some(fair) = self.state.seldom.fair_mut() {
                fair.insert(key, kind);
            }
        }
    }
}

/// The amount that a message adds to the tag of a group with this weight that has used `used`.
fn charge_of(used: u64, weight: u64) -> u64 {
    used.saturating_mul(SCALE)
        .min(MOST_CHARGED)
        .checked_div(weight)
        .unwrap_or(MOST_CHARGED)
}

/// The mean usage of messages, in which the last ones count most.
fn later_mean(mean: u64, used: u64) -> u64 {
    match mean {
        0 => used,
        mean => (mean.saturating_mul(7).saturating_add(used)) / 8,
    }
}
