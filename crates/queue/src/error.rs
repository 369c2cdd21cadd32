//! The reasons for which an operation is refused. An operation that is refused
//! has changed nothing.

/// The reason why the queue refused an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// CREATE named a queue that exists.
    Exists,
    /// The queue would hold more messages than MAXLEN.
    FullLength {
        /// The limit, in messages.
        limit: u64,
    },
    /// The queue would hold more payload bytes than MAXBYTES.
    FullBytes {
        /// The limit, in payload bytes.
        limit: u64,
    },
    /// The queue takes no new messages (SENDS OFF).
    Closed,
    /// The queue follows the server's clock, which cannot be moved.
    ClockIsServers,
    /// A manual clock would go back.
    ClockGoesBack {
        /// The time of the clock, in Unix ms.
        now: u64,
        /// The time that was asked for, in Unix ms.
        to: u64,
    },
    /// A manual clock would pass more fire times at once than one operation may
    /// process.
    TooManyFires {
        /// The limit.
        limit: u64,
    },
    /// Messages of two batches would wait for each other.
    Ring,
    /// A point of time was given in seconds instead of milliseconds.
    Seconds {
        /// The option that it was given for.
        what: &'static str,
        /// The value, in seconds.
        seconds: u64,
    },
    /// The schedule would never fire.
    NeverFires,
    /// The queue would have more patterns of limits than it may.
    TooManyPatterns {
        /// The most patterns.
        limit: usize,
    },
    /// A message costs more than one of its limits ever allows.
    CostsTooMuch {
        /// Its COST.
        cost: u64,
        /// The most that the limit allows.
        most: u64,
    },
    /// The patterns of the queue would have more between their first stars and their last than
    /// they may.
    PatternsTooLong {
        /// The bytes or the parts that are too many.
        what: &'static str,
        /// The most of them.
        limit: usize,
    },
    /// A nack was to pause the group of a message that has none.
    NoGroup,
    /// The queue owes something to other keys, which must be settled first. No client meets this.
    Unsettled,
}
