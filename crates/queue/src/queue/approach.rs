//! What is to be done before a purge or redrive, so that it takes no longer
//! than a command may.
//!
//! They cut off what they take as a whole. In some states of the queue they
//! cannot: then they would look at very many messages or groups one by one.
//! Whoever can wait lets that be done in slices first.

use super::remains::AT_ONCE;
use super::Queue;
use crate::groups::group::Group;
use crate::message::state::{State, StoredState};
use crate::op::{Done, Op, Piecemeal, Redrive};
use crate::{GroupIx, Millis, Seq};

/// What comes before an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Approach<'a> {
    /// Nothing: it is done in a moment.
    AtOnce,
    /// What time brings is to be worked off, and what was purged before is to be
    /// freed.
    Later,
    /// Some of this, by `PurgeSome`, whose count is part of what the whole one
    /// counts; then ask again.
    First(Piecemeal<'a>),
    /// The operation itself in parts, which are of so many in all.
    Parts(u64),
}

impl Queue {
    /// What is to be done before this operation, should it not hold the server.
    /// What it does is the same in any case. O(log n).
    pub fn approach<'a>(&mut self, op: &Op<'a>, now: Millis) -> Approach<'a> {
        let waits = match op {
            Op::Redrive(Redrive::Oldest(most)) => return self.approach_redrive(*most),
            Op::Purge { state, group: None } => {
                // All that there is goes state by state only then.
                if state.is_none() && !self.keeps_many_groups() {
                    return Approach::AtOnce;
                }
                // It ends what holds groups as a whole.
                let of_all = |state: &State| *state != State::Dead;
                let concerns = |of: &&State| state.map_or(of_all(of), |state| state == **of);
                let mut states = State::ALL.iter().filter(concerns);
                if states.any(|state| self.meets_many(*state, now)) {
                    return Approach::Later;
                }
                let dead = *state == Some(State::Dead);
                if dead && self.groups.held_count() > AT_ONCE && self.count(State::Dead) > 0 {
                    return Approach::First(Piecemeal::Dead);
                }
                false
            }
            Op::Purge {
                state,
                group: Some(name),
            } => {
                let ix = self.groups.find(name);
                let group = ix.and_then(|ix| self.groups.get(ix));
                let leased = group.map_or(0, |group| group.running as usize);
                let ends_leases = state.is_none_or(|state| state == State::Running);
                if ends_leases && leased > AT_ONCE && self.remains.is_empty() {
                    return Approach::First(Piecemeal::Leased(name.clone()));
                }
                let waits = |ix: GroupIx| self.meets_many_of(ix, *state);
                ends_leases && leased > AT_ONCE || ix.is_some_and(waits)
            }
            _ => false,
        };
        match waits {
            true => Approach::Later,
            false => Approach::AtOnce,
        }
    }

    fn approach_redrive<'a>(&self, most: u64) -> Approach<'a> {
        let dead = self.records.dead.len() as u64;
        if self.ghosts_at(StoredState::Dead) > AT_ONCE {
            Approach::Later
        } else if most.min(dead) <= AT_ONCE as u64 {
            Approach::AtOnce
        } else if most < dead {
            Approach::Parts(most)
        } else if self.redriving.left.is_empty() {
            // All of them are moved afterwards.
            Approach::AtOnce
        } else {
            Approach::Later
        }
    }

    /// Whether a purge of a state would meet very many groups or messages that it
    /// cannot leave to others, or such that time has not put into their state yet.
    fn meets_many(&mut self, state: State, now: Millis) -> bool {
        match state {
            State::Delayed => !self.is_worked_off(now),
            State::Ready | State::Blocked => {
                !self.is_worked_off(now) || self.redriving.left.grouped.len() > AT_ONCE
            }
            State::Retry => {
                let retry = self.waiting.grouped.count(StoredState::Retry);
                !self.is_worked_off(now) || retry > AT_ONCE && self.remains.retry.len() > AT_ONCE
            }
            State::Running => self.leases.len() > AT_ONCE && self.remains.leases.len() > AT_ONCE,
            State::Dead => {
                let held = self.groups.held_count();
                held > AT_ONCE && self.ghosts_at(StoredState::Dead) > AT_ONCE
                    || held > 0 && self.redriving.left.grouped.len() > AT_ONCE
            }
            State::Finished | State::Cancelled => false,
        }
    }

    /// The same for the purge of a group; what it has running not included.
    fn meets_many_of(&self, ix: GroupIx, state: Option<State>) -> bool {
        let Some(group) = self.groups.get(ix) else {
            return false;
        };
        let concerns = |of: State| state.is_none_or(|state| state == of);
        let has_many = |stored| group.records_at(stored).is_some_and(|r| r.len() > AT_ONCE);
        let redriven = !self.redriving.left.grouped.is_empty() && has_many(StoredState::Dead);
        let failed = concerns(State::Retry)
            && self.remains.failed > 0
            && group.backlog.all().failed.ahead.len() > AT_ONCE;
        let records = self.discarded.has_messages()
            && [
                (State::Finished, StoredState::Finished),
                (State::Dead, StoredState::Dead),
                (State::Cancelled, StoredState::Cancelled),
            ]
            .into_iter()
            .any(|(state, stored)| concerns(state) && has_many(stored));
        redriven || failed || records
    }

    /// Removes the first of some that a purge takes one by one.
    pub(super) fn purge_some(&mut self, of: &Piecemeal, most: u64, now: Millis) -> Done {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let doomed: Vec<Seq> = match of {
            Piecemeal::Leased(name) => {
                let group = self.groups.find(name).and_then(|ix| self.groups.get(ix));
                let leased = |group: &Group| {
                    let leases = self.leased_of(group).take(most);
                    leases.map(|lease| lease.seq).collect()
                };
                group.map_or(Vec::new(), leased)
            }
            Piecemeal::Dead => {
                let dead = self.records.dead.iter().map(|((_, seq), ())| seq);
                dead.filter(|seq| !self.is_purged(*seq))
                    .take(most)
                    .collect()
            }
        };
        for seq in &doomed {
            self.publish_removed(*seq);
        }
        let removed = self.remove_each(&doomed, now);
        if removed > 0 {
            self.changed();
        }
        Done::Count(removed)
    }
}
