//! The kinds of events that come with time.

/// The kinds of events, in the order in which they are processed within one
/// millisecond. The order is part of the replicated behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    LeaseEnd,
    Expiry,
    ParkEnd,
    Due,
    PauseEnd,
    GroupWake,
    Breaker,
    Limit,
    Join,
    SettledAge,
    DeadAge,
    DedupAge,
    DedupIdEnd,
    ConsumerAge,
    Fire,
    Release,
    SettledCount,
    DeadCount,
}
