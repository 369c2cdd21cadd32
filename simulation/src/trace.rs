//! The trace of a cluster: counters, and the last operations and faults.

use std::fmt;

use dq_queue::Op;

/// Counters of all operations and faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Operations and slices of time.
    pub steps: u64,
    /// Log entries that a replica applied.
    pub records: u64,
    /// Log entries among `records` that were replicated verbatim, as their command.
    pub commands: u64,
    /// Restarts from a snapshot and the log.
    pub crashes: u64,
    /// Replicas that became primary.
    pub promotions: u64,
    /// Comparisons of whole queues.
    pub compared: u64,
    /// Corrupted snapshots and log entries that were refused.
    pub refused: u64,
    /// Corrupted snapshots and log entries that were accepted.
    pub taken: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.steps += other.steps;
        self.records += other.records;
        self.commands += other.commands;
        self.crashes += other.crashes;
        self.promotions += other.promotions;
        self.compared += other.compared;
        self.refused += other.refused;
        self.taken += other.taken;
    }
}

/// One line of the trace that is printed after a failure.
pub enum Entry {
    /// An operation.
    Op {
        /// When it was done, in Unix microseconds.
        us: u64,
        /// The steps of time that came before it.
        steps: u64,
        /// The operation itself.
        op: Box<Op<'static>>,
    },
    /// A fault, or another event that is about servers.
    Event {
        /// When it happened, in Unix microseconds.
        us: u64,
        /// The name of the fault or event.
        what: &'static str,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Op { us, steps, op } => write!(f, "{us} us, {steps} steps of time, {op:?}"),
            Entry::Event { us, what } => write!(f, "{us} us, {what}"),
        }
    }
}
