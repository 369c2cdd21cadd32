//! The plan of a bulk operation that is done in slices: PURGE of many messages, and
//! REDRIVE of many.
//!
//! A plan knows how far the operation has come, and names what its next slice does as an
//! operation of its own. Only the slices change the queue and are replicated; the plan
//! itself is a note of the server whose client waits. A plan continues with the present
//! state of the queue, regardless of the commands between two slices.

use std::borrow::Cow;

use hashbrown::HashSet;

use super::sources::{pick, Mark, Source};
use crate::index::siblings::AllSiblings;
use crate::limits::MAX_COUNT;
use crate::message::id::NameHasher;
use crate::message::state::State;
use crate::op::{Op, Redrive, Removal};
use crate::queue::Queue;
use crate::GroupIx;
use crate::{Millis, Seq, IS_SMALL};

/// Messages that are removed or revived at once at most, without a plan.
const AT_ONCE: usize = if IS_SMALL { 2 } else { 256 };
/// Maximum number of messages that a slice examines for each one that it may remove.
/// Looking at one takes less than a tenth of the time.
const LOOKED_AT: usize = 16;

/// The work that a bulk operation has still to do.
#[derive(Debug, Clone)]
pub struct Plan(Work);

#[derive(Debug, Clone)]
enum Work {
    /// The redrive of this number of dead messages, oldest death first. Messages that die
    /// meanwhile come behind them.
    Redrive(u64),
    Purge(Purge),
}

#[derive(Debug, Clone)]
struct Purge {
    state: Option<State>,
    group: Option<Box<[u8]>>,
    /// The last message sent before the purge began: later ones stay, or the purge might
    /// never end.
    until: Seq,
    /// Messages that were held when the purge began, unless they are purged too: messages
    /// that the purge releases stay.
    held: HashSet<Seq, NameHasher>,
    sources: Vec<Source>,
    part: Part,
    /// The place in the source at which the operation goes on, `None` at its beginning.
    behind: Option<Mark>,
    /// Whether it has removed anything since it began with the first source. If so, it
    /// goes through all once more: a message may have moved to where it had been already.
    has_removed: bool,
}

/// The stage of a purge.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The messages of the source with this number.
    Messages(usize),
    /// The dead messages that hold the groups from this number on.
    Holds(u64),
    TakenIds,
    Over,
}

/// The next step of a bulk operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// This slice; then there may be more.
    Do(Box<Op<'static>>),
    /// The slice removes nothing: it has only searched for messages.
    Look,
    /// There is no next step: the operation is done.
    Done,
}

impl Queue {
    /// The plan of a bulk operation in slices; `None` if it is short enough to be done at
    /// once, or is none. O(lanes).
    pub fn plan(&self, op: &Op, now: Millis) -> Option<Plan> {
        let work = match op {
            Op::Redrive(Redrive::Oldest(most)) => {
                let count = self.count(State::Dead).min(*most);
                (count > AT_ONCE as u64).then_some(Work::Redrive(count))
            }
            Op::Purge { state, group } => self
                .purge_in_slices(*state, group.as_deref(), now)
                .map(Work::Purge),
            _ => None,
        };
        work.map(Plan)
    }

    fn purge_in_slices(
        &self,
        state: Option<State>,
        group: Option<&[u8]>,
        now: Millis,
    ) -> Option<Purge> {
        let sources = Source::of_purge(state, group.is_some());
        let is_short = if state.is_none() && group.is_none() {
            // The content is removed as a whole, except for the settings of groups, and
            // each parent of its messages is told.
            let parents = self.siblings().map_or(0, AllSiblings::len);
            self.state.groups.configured_count().max(parents) <= AT_ONCE
        } else {
            // If due events are still to be processed, a state may have messages that are
            // not yet in its index.
            let lens = sources.iter().map(|source| self.len_of(*source, group));
            lens.sum::<usize>() <= AT_ONCE && (group.is_some() || !self.has_work(now))
        };
        (!is_short).then(|| Purge {
            state,
            group: group.map(Into::into),
            until: self.state.next_seq - 1,
            held: match state {
                None | Some(State::Held) => HashSet::default(),
                Some(_) => self.held().collect(),
            },
            sources,
            part: Part::Messages(0),
            behind: None,
            has_removed: false,
        })
    }
}

impl Plan {
    /// The next slice, of at most `most` messages or groups; `most` is at least 1.
    /// O(most log n).
    pub fn next(&mut self, queue: &Queue, most: u64, now: Millis) -> Step {
        match &mut self.0 {
            Work::Redrive(left) => {
                let count = most.min(*left).min(queue.count(State::Dead));
                *left -= count;
                match count {
                    0 => Step::Done,
                    count => Step::Do(Box::new(Op::Redrive(Redrive::Oldest(count)))),
                }
            }
            Work::Purge(purge) => {
                let most = most.min(MAX_COUNT) as usize;
                purge.next(queue, most, now)
            }
        }
    }
}

impl Purge {
    fn next(&mut self, queue: &Queue, most: usize, now: Millis) -> Step {
        loop {
            let removal = match self.part {
                Part::Messages(number) => match self.sources.get(number) {
                    Some(source) => {
                        let seqs = self.next_messages(queue, *source, most, now);
                        if !seqs.is_empty() {
                            self.has_removed = true;
                            Some(Removal::Messages(seqs))
                        } else if self.behind.is_some() {
                            return Step::Look;
                        } else {
                            None
                        }
                    }
                    None if std::mem::take(&mut self.has_removed) => {
                        self.part = Part::Messages(0);
                        None
                    }
                    None => {
                        self.part = match self.state {
                            Some(_) => Part::Over,
                            None => Part::Holds(0),
                        };
                        None
                    }
                },
                Part::Holds(from) => self.next_holds(queue, from, most),
                Part::TakenIds => {
                    self.part = Part::Over;
                    let any = queue.state.records.dedup.oldest().is_some();
                    (any || queue.state.seldom.has_dedup_ids()).then_some(Removal::TakenIds)
                }
                Part::Over => return Step::Done,
            };
            if let Some(removal) = removal {
                return Step::Do(Box::new(Op::Remove(removal)));
            }
        }
    }

    /// The next messages of a source, in the order of their numbers.
    fn next_messages(
        &mut self,
        queue: &Queue,
        source: Source,
        most: usize,
        now: Millis,
    ) -> Vec<Seq> {
        let is_meant = |seq| seq <= self.until && !self.held.contains(&seq);
        let is_wanted = |seq| is_meant(seq) && queue.is_in_state(seq, self.state, now);
        let all = queue.walk_source(source, self.group.as_deref(), self.behind, now);
        let (behind, mut seqs) = pick(all, most.saturating_mul(LOOKED_AT), most, is_wanted);
        self.behind = behind;
        if let (None, Part::Messages(number)) = (behind, &mut self.part) {
            *number += 1;
        }
        seqs.sort_unstable();
        seqs
    }

    /// The next groups that dead messages hold, including those that were pruned.
    fn next_holds(&mut self, queue: &Queue, from: u64, most: usize) -> Option<Removal<'static>> {
        let held: Vec<GroupIx> = match &self.group {
            None => queue.state.groups.held_from(from).take(most).collect(),
            Some(name) => {
                let ix = queue.state.groups.find(name);
                let is_held = |ix: &GroupIx| {
                    let group = queue.state.groups.get(*ix);
                    group.is_some_and(|group| !group.holds().is_empty())
                };
                ix.filter(is_held).into_iter().collect()
            }
        };
        self.part = match (held.last(), &self.group) {
            (Some(last), None) => Part::Holds(last.number() + 1),
            (None, None) => Part::TakenIds,
            (_, Some(_)) => Part::Over,
        };
        let names = held.iter().filter_map(|ix| queue.state.groups.name(*ix));
        let names: Vec<_> = names.map(|name| Cow::Owned(name.to_vec())).collect();
        (!names.is_empty()).then_some(Removal::Holds(names))
    }
}
