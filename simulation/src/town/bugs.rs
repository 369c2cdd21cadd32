//! Seeded bugs of a server with many queues. The rules of the town must find each of them
//! (`tests/seeded_bugs.rs`).

/// A bug of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The timer does not learn when some of the queues are due.
    ForgetsAQueue,
    /// An entry goes to the replica of another queue.
    WritesOfAnotherQueue,
    /// Slices run, and waiting clients are served, while writes are refused.
    GoesOnWhileItRefuses,
    /// The server does a send that it has refused.
    DoesWhatItRefuses,
    /// A queue from a server that is ahead moves the clock of all others.
    MovesTheClock,
    /// A queue from a server that is ahead moves the receipts of all others.
    MovesReceipts,
    /// The timer uses the time of a queue that is ahead as its own.
    WakesByTheClockOfTheQueue,
    /// The timer waits for the old time after its clock was set back.
    IsLateAfterAStepBack,
    /// Leases end before the commands were read that came in a standstill.
    EndsLeasesInAStandstill,
}

/// All bugs, each with a part of the sentence by which it must be found.
pub const BUGS: &[(Bug, &str)] = &[
    (Bug::ForgetsAQueue, "nobody has looked at it"),
    (Bug::WritesOfAnotherQueue, "the replica of queue"),
    (Bug::GoesOnWhileItRefuses, "while writes were refused"),
    (Bug::DoesWhatItRefuses, "while writes were refused"),
    (Bug::MovesTheClock, "ms early"),
    (Bug::MovesReceipts, "far ahead of the clock"),
    (Bug::WakesByTheClockOfTheQueue, "nobody has looked at it"),
    (Bug::IsLateAfterAStepBack, "is ahead by too much"),
    (Bug::EndsLeasesInAStandstill, "did not count"),
];
