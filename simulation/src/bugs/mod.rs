//! Seeded bugs: each makes a primary, its log or its replies differ from what was asked for
//! in one verb or option. The simulation must find each of them, by the rule that is about
//! it (`tests/seeded_bugs.rs`). None of them is in the queue itself.

mod edits;
mod of_messages;
mod of_queues;

use dq_queue::op::Before;
use dq_queue::queue::inspect::find::Search;
use dq_queue::{Done, Op};

/// A bug, as the ways in which it changes what happens.
#[derive(Debug, Clone, Copy)]
pub struct Bug {
    /// The fault, in a few words.
    pub name: &'static str,
    /// Part of the sentence by which the rule says so that must find it.
    pub finds: &'static str,
    /// Changes the operation that the primary does.
    pub does: fn(&mut Op<'static>),
    /// An operation that the primary does first, unasked.
    pub first: fn(&Op<'static>) -> Option<Op<'static>>,
    /// Changes the reply, given what was asked for.
    pub replies: fn(&Op<'static>, &mut Done),
    /// Changes the operation that is logged.
    pub logs: fn(&mut Op<'static>),
    /// Changes what the primary does before an operation, besides processing due events.
    pub begins: fn(&mut Before),
    /// Changes what is logged of what the primary did before the operation.
    pub logs_before: fn(&mut Before),
    /// Changes what is searched for.
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
    searches: |_| {},
};

/// A primary that does something else than it was asked for.
const fn does(name: &'static str, finds: &'static str, does: fn(&mut Op<'static>)) -> Bug {
    Bug {
        name,
        finds,
        does,
        ..NONE
    }
}

/// A log that lacks something of what the primary did.
const fn logs(name: &'static str, logs: fn(&mut Op<'static>)) -> Bug {
    Bug {
        name,
        finds: "the replica differs",
        logs,
        ..NONE
    }
}

/// A primary that does something else before an operation than time demands.
const fn begins(name: &'static str, finds: &'static str, begins: fn(&mut Before)) -> Bug {
    Bug {
        name,
        finds,
        begins,
        ..NONE
    }
}

/// A log that lacks something of what the primary did before an operation.
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
