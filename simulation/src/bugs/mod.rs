//! Seeded bugs: each makes a primary, its log or its replies deviate in one verb or option.
//! The simulation must find each of them, by the rule that is about it
//! (`tests/seeded_bugs.rs`). No bug is in the queue itself.

mod edits;
mod of_messages;
mod of_queues;

use dq_queue::op::Before;
use dq_queue::queue::inspect::find::Search;
use dq_queue::{Done, Op};

/// A bug, as a set of changes to operations, replies and logs.
#[derive(Debug, Clone, Copy)]
pub struct Bug {
    /// The fault, in a few words.
    pub name: &'static str,
    /// Part of the message of the rule that must find it.
    pub finds: &'static str,
    /// Changes the operation that the primary does.
    pub does: fn(&mut Op<'static>),
    /// An operation that the primary does first without a command.
    pub first: fn(&Op<'static>) -> Option<Op<'static>>,
    /// Changes the reply, given the operation.
    pub replies: fn(&Op<'static>, &mut Done),
    /// Changes the operation that is logged.
    pub logs: fn(&mut Op<'static>),
    /// Changes the work of the primary before an operation, besides processing due events.
    pub begins: fn(&mut Before),
    /// Changes the log of the primary's work before the operation.
    pub logs_before: fn(&mut Before),
    /// Whether the log lacks the last effects of an acknowledgement.
    pub forgets_effects: bool,
    /// Changes the search.
    pub searches: fn(&mut Search<'_>),
}

/// All seeded bugs.
pub fn all() -> impl Iterator<Item = &'static Bug> {
    of_queues::BUGS.iter().chain(of_messages::BUGS)
}

/// No bug.
const NONE: Bug = Bug {
    name: "none",
    finds: "",
    does: |_| {},
    first: |_| None,
    replies: |_, _| {},
    logs: |_| {},
    begins: |_| {},
    logs_before: |_| {},
    forgets_effects: false,
    searches: |_| {},
};

/// A primary that does another operation than the client's.
const fn does(name: &'static str, finds: &'static str, does: fn(&mut Op<'static>)) -> Bug {
    Bug {
        name,
        finds,
        does,
        ..NONE
    }
}

/// A log that lacks a part of the primary's operation.
const fn logs(name: &'static str, logs: fn(&mut Op<'static>)) -> Bug {
    Bug {
        name,
        finds: "the replica differs",
        logs,
        ..NONE
    }
}

/// A primary that makes wrong changes before an operation.
const fn begins(name: &'static str, finds: &'static str, begins: fn(&mut Before)) -> Bug {
    Bug {
        name,
        finds,
        begins,
        ..NONE
    }
}

/// A log that lacks a part of the primary's work before an operation.
const fn logs_before(name: &'static str, logs_before: fn(&mut Before)) -> Bug {
    Bug {
        name,
        finds: "the replica differs",
        logs_before,
        ..NONE
    }
}

/// A search that passes over a condition.
const fn searches(name: &'static str, searches: fn(&mut Search<'_>)) -> Bug {
    Bug {
        name,
        finds: "finds",
        searches,
        ..NONE
    }
}
