//! The indexes follow from the state. They are built anew when a queue is loaded.

use crate::collections::rare::{unused, Rare};
use crate::index::first_dues::FirstDues;
use crate::index::held::Held;
use crate::index::ready_line::{Expected, ReadyLine};
use crate::index::waiting::Waiting;
use crate::{Millis, TimeIndex};

/// The indexes of a queue; the default is where loading begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes {
    pub(super) waiting: Rare<Waiting>,
    /// Held messages.
    pub(super) held: Rare<Held>,
    /// The first due times of pending messages that have come back.
    pub(super) first_dues: Rare<FirstDues>,
    /// Pending messages that have a TTL, by the time at which it ends.
    pub(super) expiring: Rare<TimeIndex>,
    /// Ready line: the groups that can give a message now, in the order in which
    /// they will.
    pub(super) ready_line: Rare<ReadyLine>,
    /// Groups that will be able to deliver from a certain time on, by that time.
    pub(super) expected: Rare<Expected>,
    /// Number of due messages in groups that can give.
    pub(super) grouped_ready: u64,
    /// Number of leased messages that belong to a group.
    pub(super) grouped_running: u64,
    /// Payload bytes of all pending and running messages.
    pub(super) bytes: u64,
    /// Payload bytes of the running messages.
    pub(super) running_bytes: u64,
    /// Whether a message may have its own RETAIN.
    pub(super) has_own_retain: bool,
    /// Whether anything may wait for the end of the run of a message.
    pub(super) has_reruns: bool,
    /// No event is due before this time (Unix ms). It may be too early, never too
    /// late.
    pub(super) wake: Millis,
}

unused!(
    Waiting = Waiting::new(),
    Expected = Expected::new(),
    Held = Held::new(),
    FirstDues = FirstDues::new(),
    TimeIndex = TimeIndex::new(),
    ReadyLine = ReadyLine::new()
);
