//! Why an operation was refused. A refused operation has changed nothing.

/// What the queue can answer instead of doing what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The queue exists already (CREATE).
    Exists,
    /// MAXLEN would be passed.
    FullLength {
        /// The limit, in messages.
        limit: u64,
    },
    /// MAXBYTES would be passed.
    FullBytes {
        /// The limit, in payload bytes.
        limit: u64,
    },
    /// The clock of this queue is the server's; it cannot be moved.
    ClockIsServers,
    /// A manual clock was asked to go back.
    ClockGoesBack {
        /// Where the clock stands.
        now: u64,
        /// Where it was asked to go.
        to: u64,
    },
    /// A manual clock would pass more fire times at once than can be borne.
    TooManyFires {
        /// The limit.
        limit: u64,
    },
    /// A schedule's rule never fires again.
    NeverFires,
}
