//! What only this server knows of a queue. It is neither replicated nor saved.

use hashbrown::HashSet;

use super::bulk::removal::garbage::Garbage;
use super::inspect::pages::AllPages;
use super::time::lead::Lead;
use crate::collections::rare::{unused, Rare};
use crate::message::id::NameHasher;
use crate::op::{Deliveries, Effects};

/// Ids of messages whose end is waited for.
pub(super) type Watched = HashSet<Box<[u8]>, NameHasher>;

/// The notes of a server about a queue; a copy begins with the default.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// Whether the schedules that the present operation passes are left out.
    pub(super) skips_fires: bool,
    pub(super) effects: Effects,
    /// The walks of clients that list messages page by page.
    pub(super) pages: AllPages,
    /// Ids whose end some client waits for.
    pub(super) watched: Rare<Watched>,
    /// The clock of the queue while it is ahead of the server's.
    pub(super) ahead: Option<Box<Lead>>,
    /// Empty list with the capacity of the last deliveries, kept so that the next
    /// FETCH need not allocate.
    pub(super) given: Deliveries,
    /// The parts that no longer belong to the queue and are still to be freed.
    pub(super) garbage: Rare<Garbage>,
}

unused!(Watched);
