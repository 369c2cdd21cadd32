//! Model of the ready line: the groups that can deliver, their next messages, and their
//! order.

use std::cmp::Ordering;

use super::{Group, Model, Msg, Position};
use crate::message::score::Number;
use crate::message::state::StoredState;
use crate::settings::{OnDead, OnRetry, Rate};
use crate::{Millis, Receipt};

impl Model {
    /// The message that a group, or the ungrouped messages (`None`), would give
    /// now, if any.
    pub fn head(&self, who: Option<usize>) -> Option<&Msg> {
        let mine = || self.msgs.iter().filter(move |m| m.group == who);
        let due = mine().filter(|m| self.is_due(m));
        let Some(number) = who else {
            return due.min_by_key(|m| (m.priority, m.due, m.seq));
        };
        let group = &self.groups[number];
        if group.paused_until.is_some()
            || !self.lets_out(who, false)
            || self.is_held(group)
            || self.group_allowance(group) == 0
            || self.batches(number) >= self.concurrency(number) && !self.returns_first(number)
        {
            return None;
        }
        self.next_of_group(number)
    }

    /// How many batches of a group may be leased at once.
    pub fn concurrency(&self, number: usize) -> u64 {
        match self.groups[number].concurrency {
            0 => self.settings.group_concurrency,
            own => own,
        }
    }

    /// The message that comes next in a group, regardless of pauses, holds and limits.
    pub fn next_of_group(&self, number: usize) -> Option<&Msg> {
        let mine = || self.msgs.iter().filter(move |m| m.group == Some(number));
        let block = self.settings.on_retry != OnRetry::Skip;
        if block && mine().any(|m| m.stored == StoredState::Retry) {
            return None;
        }
        let before = |a: &&Msg, b: &&Msg| {
            let failed = |m: &Msg| block && m.has_failed();
            failed(b).cmp(&failed(a)).then(in_order(a, b))
        };
        mine().filter(|m| self.is_due(m)).min_by(before)
    }

    /// With ONRETRY ALONE, the first of the leased messages of a group.
    pub fn first_leased(&self, number: usize) -> Option<&Msg> {
        let mine = self.msgs.iter().filter(|m| m.group == Some(number));
        let leased = mine.filter(|m| m.stored == StoredState::Running);
        let is_alone = self.settings.on_retry == OnRetry::Alone;
        leased.filter(|_| is_alone).min_by(|a, b| in_order(a, b))
    }

    /// Whether a failed message of a group stands before all leased ones.
    fn returns_first(&self, number: usize) -> bool {
        let mine = self.msgs.iter().filter(|m| m.group == Some(number));
        let mut failed = mine.filter(|m| m.has_failed() && m.stored != StoredState::Held);
        self.first_leased(number)
            .is_some_and(|leased| failed.any(|m| in_order(m, leased).is_lt()))
    }

    /// Whether a message is due. All messages of a millisecond are due from its
    /// beginning, before anything else happens in it.
    fn is_due(&self, m: &Msg) -> bool {
        let is_held = m.stored == StoredState::Held;
        m.stored.is_pending() && !is_held && m.due <= self.now
    }

    pub fn is_held(&self, group: &Group) -> bool {
        self.settings.on_dead == OnDead::Block && !group.held_by.is_empty()
    }

    pub fn group_allowance(&self, group: &Group) -> u64 {
        match group.rate {
            None => u64::MAX,
            Some(rate) => free(rate, &group.given, self.now),
        }
    }

    /// The number of batches of a group that are leased.
    pub fn batches(&self, number: usize) -> u64 {
        let mine = self.msgs.iter().filter(|m| m.group == Some(number));
        let running = mine.filter(|m| m.stored == StoredState::Running);
        let mut batches: Vec<Receipt> = running.map(|m| m.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        batches.len() as u64
    }

    /// Removes entries that can no longer give or would now give a message of
    /// another priority, and adds those that can give to the end.
    pub fn line_up(&mut self, ticket: u64) {
        let groups = (0..self.groups.len()).map(Some);
        for who in std::iter::once(None).chain(groups) {
            let head = self.head(who).map(|m| (m.priority, m.seq));
            let priority = head.map(|(priority, _)| priority);
            self.line
                .retain(|s| s.who != who || Some(s.priority) == priority);
            let Some((priority, head)) = head else {
                continue;
            };
            let now = self.now;
            match self.line.iter_mut().find(|s| s.who == who) {
                // Another event of the same moment may change the head.
                Some(stand) if (stand.time, stand.ticket) == (now, ticket) => stand.head = head,
                Some(_) => {}
                None => self.line.push(Position {
                    who,
                    priority,
                    time: now,
                    ticket,
                    head,
                    turn: 0,
                }),
            }
        }
    }
}

/// How many deliveries a RATE still allows.
pub fn free(rate: Rate, given: &[Millis], now: Millis) -> u64 {
    let counted = given.iter().filter(|at| **at + rate.per > now).count();
    rate.count.saturating_sub(counted as u64)
}

/// The order of two messages in their group, both failed or both not.
pub fn in_order(a: &Msg, b: &Msg) -> Ordering {
    (a.priority.cmp(&b.priority))
        .then(compare_scores(a, b))
        .then(a.seq.cmp(&b.seq))
}

/// Compares two scores as numbers.
pub fn compare_scores(a: &Msg, b: &Msg) -> Ordering {
    // An integer is beyond all doubles that have a fraction, and a cast ends at the limits.
    let whole = |number| match number {
        Number::Double(number) => number as i128,
        Number::Integer(number) => number.into(),
        Number::Large(number) => number.into(),
    };
    match (a.score().number(), b.score().number()) {
        (Number::Double(a), Number::Double(b)) => a.total_cmp(&b),
        (a, b) => whole(a).cmp(&whole(b)),
    }
}
