//! The lists that a bulk operation goes through, a few messages at a time, from wherever it
//! stopped.

use std::ops::Bound;

use crate::collections::merge::merged;
use crate::groups::group::Group;
use crate::index::order_key::OrderKey;
use crate::message::state::{State, StoredState};
use crate::queue::inspect::cursor::Cursor;
use crate::queue::inspect::walk::Range;
use crate::queue::Queue;
use crate::{Millis, Receipt, Seq};

/// Messages that are visited in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::queue) enum Source {
    /// All messages that may be in a state, by time. A due message counts as due, whether
    /// it was promoted or not.
    State(State),
    /// The messages that a group has in a pending state, in its own order.
    Pending(StoredState),
    /// The messages that a group has leased, by receipt.
    Leased,
    /// The records that a group has in a stored state, in its own order.
    Ended(StoredState),
    /// The held messages of a group, in the order of sending.
    Held,
}

/// The place at which a walk through a source has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::queue) enum Mark {
    /// In the order of a state.
    State(Cursor),
    /// By the order of a group.
    Key(OrderKey),
    /// By receipt.
    Receipt(Receipt),
}

pub(in crate::queue) type Marks<'a> = Box<dyn Iterator<Item = (Mark, Seq)> + 'a>;

impl Source {
    /// The lists that a purge of a state, or of all states, goes through: in the whole
    /// queue or in one group.
    pub fn of_purge(state: Option<State>, of_group: bool) -> Vec<Source> {
        // Blocked messages are among those that may be ready.
        const STATES: [State; 8] = [
            State::Delayed,
            State::Retry,
            State::Ready,
            State::Running,
            State::Finished,
            State::Dead,
            State::Cancelled,
            State::Held,
        ];
        let states = match &state {
            Some(state) => std::slice::from_ref(state),
            None => &STATES[..],
        };
        let of = |state: &State| match state {
            state if !of_group => Source::State(*state),
            State::Delayed => Source::Pending(StoredState::Delayed),
            State::Retry => Source::Pending(StoredState::Retry),
            State::Ready | State::Blocked => Source::Pending(StoredState::Due),
            State::Running => Source::Leased,
            State::Finished => Source::Ended(StoredState::Finished),
            State::Dead => Source::Ended(StoredState::Dead),
            State::Cancelled => Source::Ended(StoredState::Cancelled),
            State::Held => Source::Held,
        };
        states.iter().map(of).collect()
    }
}

/// Examines up to `most` messages, until `count` of them match. Returns the mark to go on
/// behind, `None` at the end, and the wanted ones.
pub(in crate::queue) fn pick(
    all: Marks,
    most: usize,
    count: usize,
    is_wanted: impl Fn(Seq) -> bool,
) -> (Option<Mark>, Vec<Seq>) {
    let mut all = all.peekable();
    let (mut last, mut found) = (None, Vec::new());
    for (position, seq) in all.by_ref().take(most) {
        last = Some(position);
        if is_wanted(seq) {
            found.push(seq);
            if found.len() == count {
                break;
            }
        }
    }
    (last.filter(|_| all.peek().is_some()), found)
}

impl Queue {
    /// Goes through a source behind a position, or from its beginning. The group is that
    /// of the sources of a group. O(log n) to start, then O(1) for each message, but
    /// O(leases of the group passed) for [`Source::Leased`], and O(held messages of all groups
    /// passed) for [`Source::Held`] if the group has any.
    pub(in crate::queue) fn walk_source(
        &self,
        source: Source,
        group: Option<&[u8]>,
        behind: Option<Mark>,
        now: Millis,
    ) -> Marks<'_> {
        if let Source::State(state) = source {
            return self.walk_state(state, behind, now);
        }
        let ix = group.and_then(|name| self.state.groups.find(name));
        if source == Source::Held {
            // They are among those of all groups, but how many they are is known.
            let count = self.len_of(source, group);
            if count == 0 {
                return Box::new(std::iter::empty());
            }
            let all = self.walk_state(State::Held, behind, now);
            let is_of_group = move |(_, seq): &(Mark, Seq)| {
                let message = self.state.store.get(*seq);
                message.map(|message| message.group) == ix
            };
            return Box::new(all.filter(is_of_group).take(count));
        }
        match ix.and_then(|ix| self.state.groups.get(ix)) {
            None => Box::new(std::iter::empty()),
            Some(group) => self.walk_group(source, group, behind),
        }
    }

    /// How many messages a source has. O(lanes).
    pub(in crate::queue) fn len_of(&self, source: Source, group: Option<&[u8]>) -> usize {
        let ix = group.and_then(|name| self.state.groups.find(name));
        let group = ix.and_then(|ix| self.state.groups.get(ix));
        match source {
            Source::State(State::Delayed) => self.count_stored(StoredState::Delayed),
            Source::State(State::Retry) => self.count_stored(StoredState::Retry),
            Source::State(State::Ready | State::Blocked) => self.count_stored(StoredState::Due),
            Source::State(State::Running) => self.count_stored(StoredState::Running),
            Source::State(State::Finished) => self.count_stored(StoredState::Finished),
            Source::State(State::Dead) => self.count_stored(StoredState::Dead),
            Source::State(State::Cancelled) => self.count_stored(StoredState::Cancelled),
            Source::State(State::Held) => self.count_stored(StoredState::Held),
            Source::Held => group.map_or(0, |group| group.ext().held as usize),
            Source::Pending(stored) => {
                group.map_or(0, |group| group.pending().count_at(stored) as usize)
            }
            Source::Leased => group.map_or(0, |group| group.running as usize),
            Source::Ended(stored) => {
                let records = group.and_then(|group| group.records_at(stored));
                records.map_or(0, |records| records.len())
            }
        }
    }

    /// Whether a message is in this state, or exists in any state.
    pub(in crate::queue) fn is_in_state(
        &self,
        seq: Seq,
        state: Option<State>,
        now: Millis,
    ) -> bool {
        let message = self.state.store.get(seq);
        message
            .is_some_and(|message| state.is_none_or(|state| self.state_of(message, now) == state))
    }

    fn walk_group<'a>(
        &'a self,
        source: Source,
        group: &'a Group,
        behind: Option<Mark>,
    ) -> Marks<'a> {
        let key = match behind {
            Some(Mark::Key(key)) => Bound::Excluded(key),
            _ => Bound::Unbounded,
        };
        let at_key = |key: OrderKey| (Mark::Key(key), key.seq());
        let pending = group.pending();
        match source {
            Source::State(_) | Source::Held => Box::new(std::iter::empty()),
            Source::Pending(StoredState::Delayed) => {
                Box::new(pending.fresh.ahead.keys(key).map(at_key))
            }
            Source::Pending(StoredState::Retry) => {
                Box::new(pending.failed.ahead.keys(key).map(at_key))
            }
            Source::Pending(_) => {
                let (fresh, failed) = (pending.fresh.due, pending.failed.due);
                Box::new(merged(fresh.keys(key), failed.keys(key)).map(at_key))
            }
            Source::Leased => {
                let after = match behind {
                    Some(Mark::Receipt(receipt)) => receipt,
                    _ => 0,
                };
                let leases = self.leased_of(group);
                let leases = leases.filter(move |lease| lease.receipt > after);
                Box::new(leases.map(|lease| (Mark::Receipt(lease.receipt), lease.seq)))
            }
            Source::Ended(stored) => {
                let records = group.records_at(stored).into_iter();
                let records = records.flat_map(move |records| records.range_from(key));
                Box::new(records.map(move |(key, ())| at_key(key)))
            }
        }
    }

    fn walk_state(&self, state: State, behind: Option<Mark>, now: Millis) -> Marks<'_> {
        let cursor = match behind {
            Some(Mark::State(cursor)) => Some(cursor),
            _ => None,
        };
        let walk = self.walk(state, Range::new(None, None, cursor, false), now);
        Box::new(walk.map(|(cursor, seq)| (Mark::State(cursor), seq)))
    }
}
