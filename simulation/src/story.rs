//! What has been done in a world.

use std::fmt;

use dq_queue::Op;

/// How often what was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Operations and slices of time.
    pub steps: u64,
    /// Records that a replica repeated.
    pub records: u64,
    /// Those among them that travelled as their command.
    pub commands: u64,
    /// Restarts from snapshot and log.
    pub crashes: u64,
    /// Replicas that became primary.
    pub promotions: u64,
    /// Comparisons of whole queues.
    pub compared: u64,
    /// Broken snapshots and records that were refused, and that were taken.
    pub refused: u64,
    /// See `refused`.
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

/// What was done, for whoever reads of a failure.
pub enum Told {
    /// When, after how many steps of time, what.
    Op(u64, u64, Box<Op<'static>>),
    /// When, and what happened to the servers.
    Event(u64, &'static str),
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Told::Op(us, steps, op) => write!(f, "{us} us, {steps} steps of time, {op:?}"),
            Told::Event(us, what) => write!(f, "{us} us, {what}"),
        }
    }
}
