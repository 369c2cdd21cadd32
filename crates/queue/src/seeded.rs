//! Seeded bugs: each makes the queue deviate in one place, in a build with the feature `bugs` and when
//! it is selected there. The explorer must find each of them. Without the feature none of this is
//! compiled into the library.

#[cfg(feature = "bugs")]
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

macro_rules! bugs {
    ($($(#[$text:meta])* $bug:ident,)*) => {
        /// A bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$text])* $bug,)*
        }

        /// All bugs.
        #[cfg(feature = "bugs")]
        pub const ALL: &[Bug] = &[$(Bug::$bug,)*];
    };
}

bugs! {
    /// A dead message on its way to another queue is owed to none.
    LetterUnowed,
    /// A dead message that has gone to another queue goes on to hold its group.
    LetterKeepsHold,
    /// A RERUN is not sent where the message that ran goes to another queue.
    LetterTakesRerun,
    /// A dead message that could not leave is no record.
    LetterStaysNowhere,
    /// The death of a child is not told where the child is replaced in the same step.
    DeathTakenBack,
    /// A dead message that is cancelled goes on to hold its group.
    CancelKeepsHold,
    /// The bytes of a cancelled message go on to count.
    CancelKeepsBytes,
    /// A group keeps its place though its message was cancelled.
    CancelKeepsPlace,
    /// A redriven message is no longer counted by its batch.
    RedriveLeavesBatch,
    /// A parent is not told that its dead child is pending again.
    RedriveUntoldToParent,
    /// The bytes of a redriven message do not count.
    RedriveForgetsBytes,
    /// A redriven message goes on to hold its group.
    RedriveKeepsHold,
    /// WAIT does not end when the message is removed.
    RemovalUntold,
    /// The timer does not come for a lease that TOUCH has shortened.
    TouchWakesLate,
    /// The timer does not come for a lease whose connection has closed.
    GraceWakesLate,
    /// A group keeps its place though its message has another due time.
    RescheduleKeepsPlace,
    /// The bytes of the new payload do not count.
    UpdateForgetsBytes,
    /// A paused group keeps its place.
    PauseKeepsPlace,
    /// The timer does not come at the end of a pause.
    PauseWakesLate,
    /// Replicas do not learn of RESUME of a group.
    ResumeUnlogged,
    /// A group keeps its place though its settings are others.
    GroupSetKeepsPlace,
    /// The bytes of an acked message go on to count.
    AckKeepsBytes,
    /// A group does not give its next message when one is acked.
    AckKeepsPlace,
    /// A group does not give its next message when one is nacked.
    NackKeepsPlace,
    /// A limit does not open when a message of it has ended.
    LimitStaysClosed,
    /// The timer does not come when a limit has room again.
    LimitWakesLate,
    /// A paused queue gives messages.
    FetchGivesPaused,
    /// A group that must wait for a limit stays first, and FETCH asks it for ever.
    FetchDoesNotEnd,
    /// A dead message holds its group by a number that no record has.
    PrunedHoldStays,
    /// Messages run in a copy.
    CopyRuns,
    /// A loaded queue is not paused.
    SnapshotForgetsPause,
    /// A loaded message has no note.
    SnapshotForgetsNote,
    /// A loaded queue does not know how long a lease lasted before its connection closed.
    SnapshotForgetsOldEnd,
    /// A loaded queue does not know which ids are taken.
    SnapshotForgetsDedup,
    /// Replicas end leases that a standstill has spared.
    LogForgetsSpare,
    /// A dead message that is on its way to another queue can be redriven, and goes nonetheless.
    LetterRedriven,
    /// A dead message that is on its way to another queue can be replaced, and is then in no queue.
    LetterReplaced,
    /// A dead message keeps its id on its way to another queue, so SEND says that the id is taken.
    LetterKeepsId,
    /// The limit for which a group waits depends on how its messages are kept.
    LimitByBacklog,
    /// PURGE leaves groups an empty usage, which a loaded queue does not have.
    PurgeKeepsUsage,
    /// An empty set of batches stays when the last message has gone to another queue.
    EmptyBatchesStay,
    /// A group joins behind a signal as if its time had come.
    SignalJoinsEarly,
    /// A cancelled message that was dead tells why it died.
    CancelledHasReason,
    /// ACKSEND counts room for a message that is dead at once.
    AckSendCountsDead,
    /// The TTL of a redriven message counts from its first due time.
    RedriveKeepsTtl,
    /// A RERUN that the time sends joins the line as if a command had sent it.
    RerunJoinsByCommand,
    /// A worker that has lost its lease does its effects.
    StaleWrites,
    /// A message is acknowledged though a condition of its effects does not hold.
    ConditionComesLate,
    /// Replicas do not learn of effects.
    EffectUnlogged,
    /// A replica adds to a key that has expired.
    ExpiredKeyStays,
    /// A FETCH that repeats its token has forgotten its effects if it has given messages.
    TokenForgetsEffects,
}

/// The number of the selected bug and 1; 0 if none is.
#[cfg(feature = "bugs")]
static SELECTED: AtomicUsize = AtomicUsize::new(0);

/// Selects a bug for the whole process.
#[cfg(feature = "bugs")]
pub fn select(bug: Bug) {
    SELECTED.store(bug as usize + 1, Relaxed);
}

/// Whether the queue has this bug now.
#[cfg(feature = "bugs")]
#[inline]
pub(crate) fn seeded(bug: Bug) -> bool {
    SELECTED.load(Relaxed) == bug as usize + 1
}

/// No build without the feature has a bug.
#[cfg(not(feature = "bugs"))]
#[inline(always)]
pub(crate) const fn seeded(_: Bug) -> bool {
    false
}

/// Whether a command may come between the end of a message and what it owes to other queues.
#[inline(always)]
pub fn settles_late() -> bool {
    let bugs = [Bug::LetterRedriven, Bug::LetterReplaced, Bug::LetterKeepsId];
    bugs.into_iter().any(seeded)
}
