//! The lists that LIST and GROUPS show, in the model.

use super::line::in_order;
use super::{Listed, Model, Msg};
use crate::message::state::{State, StoredState};
use crate::queue::inspect::groups::GroupState;
use crate::settings::OnRetry;
use crate::Seq;

impl Model {
    /// The messages of a state, in the order of LIST.
    pub fn list(&self, state: State) -> Vec<Seq> {
        let is_it = |m: &&Msg| self.state_of(m) == state;
        let mut listed: Vec<&Msg> = self.msgs.iter().filter(is_it).collect();
        listed.sort_by_key(|m| match m.stored {
            StoredState::Delayed | StoredState::Due | StoredState::Retry => (m.due, m.seq),
            StoredState::Held => (m.parked_at.unwrap_or(m.sent_at), m.seq),
            StoredState::Running => (m.lease_until, m.receipt),
            _ => (m.ended_at, m.seq),
        });
        listed.iter().map(|m| m.seq).collect()
    }

    /// The groups that GROUPS lists.
    pub fn groups_listed(&self) -> Vec<Listed> {
        let listed = (0..self.groups.len()).filter_map(|number| {
            let group = &self.groups[number];
            let mine = || self.msgs.iter().filter(move |m| m.group == Some(number));
            let waiting = mine().filter(|m| m.stored.is_pending()).count() as u64;
            let running = mine().filter(|m| m.stored == StoredState::Running).count() as u64;
            let next = self.next_of_group(number);
            let failed = mine().any(|m| m.has_failed());
            let is_set = group.weight != 1 || group.concurrency != 0 || group.rate.is_some();
            let is_listed = waiting + running > 0
                || is_set
                || group.paused_until.is_some()
                || !self.breaker(Some(number)).is_closed()
                || !group.held_by.is_empty();
            let state = if group.paused_until.is_some() {
                GroupState::Paused
            } else if self.head(Some(number)).is_some() {
                GroupState::Ready
            } else if running > 0 {
                GroupState::Running
            } else if self.is_held(group)
                || failed && self.settings.on_retry != OnRetry::Skip && next.is_none()
                || mine().any(|m| m.stored == StoredState::Due)
            {
                GroupState::Blocked
            } else {
                GroupState::Waiting
            };
            let order =
                |a: &&Msg, b: &&Msg| b.has_failed().cmp(&a.has_failed()).then(in_order(a, b));
            let is_free = |m: &&Msg| m.stored.is_pending() && m.stored != StoredState::Held;
            let head = next.or_else(|| mine().filter(is_free).min_by(order));
            let counts = (waiting, running);
            is_listed.then(|| (group.name.clone(), state, counts, head.map(|m| m.seq)))
        });
        listed.collect()
    }
}
