//! The consequences of a change of a queue for other keys: entries of its event stream, reports to
//! parents about their children, and dead messages for another queue. It is done when the queue is
//! closed again, in the same replicated command.

use std::collections::btree_map::Entry;
use std::collections::BTreeMap;

use crate::redis::{Context, Name, OwnedName, Value};
use dq_queue::dead_letters::{Letter, Stays};
use dq_queue::message::kin::News;
use dq_queue::op::{Ending, Happened, Told};
use dq_queue::{Moment, Seq};

use super::event_stream::{Appended, Entries};

/// The consequences of a change for other keys.
pub struct Outbox {
    pub entries: Option<Entries>,
    pub letters: Option<Letters>,
    /// The changes among children, by their sets.
    pub children: BTreeMap<Seq, News>,
    /// Whether the collecting of log entries began for it.
    pub began_to_collect: bool,
}

/// The changes in other keys because of a change of a queue.
#[derive(Default)]
pub struct Others {
    pub queues: Vec<(OwnedName, Happened)>,
    pub streams: Vec<Appended>,
    /// Ends of messages that clients wait for.
    pub ended: Vec<(OwnedName, Ending)>,
}

impl Outbox {
    /// The consequences of the last change of a queue for other keys, if there are any. From now
    /// on log entries are collected: call it before the change is replicated. A replay only adds
    /// to the event stream; what became of dead messages follows in log entries of its own.
    #[cold]
    pub fn of(
        ctx: &Context,
        key: Name<'_>,
        queue: &Value,
        told: Told,
        moment: Moment,
        is_replay: bool,
    ) -> Option<Outbox> {
        let entries = Entries::of(queue, told.transitions);
        let letters = match is_replay {
            true => None,
            false => Letters::of(key, queue, &told.moving, moment),
        };
        let children = match is_replay {
            true => BTreeMap::new(),
            false => told.children,
        };
        if entries.is_none() && letters.is_none() && children.is_empty() {
            return None;
        }
        Some(Outbox {
            entries,
            letters,
            children,
            began_to_collect: !is_replay && ctx.begin_to_collect(),
        })
    }

    /// Adds the consequences of a later change of the same queue.
    pub fn add(&mut self, later: Outbox) {
        match (&mut self.entries, later.entries) {
            (Some(entries), Some(later)) => entries.extend(later),
            (none, later) => *none = none.take().or(later),
        }
        self.letters = self.letters.take().or(later.letters);
        for (set, news) in later.children {
            match self.children.entry(set) {
                Entry::Vacant(entry) => drop(entry.insert(news)),
                Entry::Occupied(mut entry) => entry.get_mut().delta.add(&news.delta),
            }
        }
        self.began_to_collect |= later.began_to_collect;
    }
}

/// The dead messages that a change leaves for another queue.
pub struct Letters {
    pub(super) to: Box<[u8]>,
    pub(super) letters: Vec<Letter>,
    /// The reason why other messages cannot go.
    pub(super) stays: Option<Stays>,
    /// When the messages died.
    pub(super) moment: Moment,
}

impl Letters {
    /// The messages among these that are to go from the queue in `key` to another one.
    pub fn of(key: Name<'_>, queue: &Value, moving: &[Seq], moment: Moment) -> Option<Letters> {
        let to = queue.settings().dead_to.as_ref()?.key.clone();
        let (letters, stays) = queue.letters(moving, key.bytes());
        if letters.is_empty() && stays.is_none() {
            return None;
        }
        Some(Letters {
            to,
            letters,
            stays,
            moment,
        })
    }
}
