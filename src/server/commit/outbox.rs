//! What a change of a queue leaves for other keys: entries of its event stream, and dead messages for
//! another queue. It is done when the queue is closed again, in the same replicated command.

use crate::redis::{Context, Name, OwnedName, Value};
use dq_queue::op::{Happened, Told};
use dq_queue::Moment;

use super::dead_letters::Letters;
use super::event_stream::{Appended, Entries};

/// What a change leaves for other keys.
pub struct Outbox {
    pub entries: Option<Entries>,
    pub letters: Option<Letters>,
    /// Whether the collecting of log entries began for it.
    pub began_to_collect: bool,
}

/// What has happened in other keys because of a change.
#[derive(Default)]
pub struct Others {
    pub queues: Vec<(OwnedName, Happened)>,
    pub streams: Vec<Appended>,
}

impl Outbox {
    /// What the last change of a queue has left, if anything. From now on log entries are
    /// collected: call it before the change is replicated. A replay only adds to the event stream;
    /// what became of dead messages follows in log entries of its own.
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
        if entries.is_none() && letters.is_none() {
            return None;
        }
        Some(Outbox {
            entries,
            letters,
            began_to_collect: !is_replay && ctx.begin_to_collect(),
        })
    }

    /// Adds what a later change of the same queue leaves.
    pub fn add(&mut self, later: Outbox) {
        match (&mut self.entries, later.entries) {
            (Some(entries), Some(later)) => entries.extend(later),
            (none, later) => *none = none.take().or(later),
        }
        self.letters = self.letters.take().or(later.letters);
        self.began_to_collect |= later.began_to_collect;
    }
}
