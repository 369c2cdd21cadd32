//! Encodes operations: the body of a log entry.
//!
//! Each kind of operation has a number and six flag bits, which say which of
//! its parts are written. The parts follow. The last part is the payload, text
//! or name of the operation, which has no length of its own.

mod read;
mod write;

use crate::op::{DueTime, Fetch, FindAct, NackKind, Redrive, Removal, Send};
use crate::{Millis, Op, Receipt};

pub use read::read;
pub use write::put;

const TICK: u8 = 1;
const ALTER: u8 = 2;
const SEND: u8 = 3;
const DUPLICATE: u8 = 4;
const FETCH: u8 = 5;
const ACK: u8 = 6;
const NACK: u8 = 7;
const TOUCH: u8 = 8;
const END_LEASES: u8 = 9;
const ADVANCE: u8 = 10;
const CANCEL: u8 = 11;
const RESCHEDULE: u8 = 12;
const UPDATE: u8 = 13;
const REDRIVE: u8 = 14;
const PURGE: u8 = 15;
const PAUSE: u8 = 16;
const RESUME: u8 = 17;
const GROUP_SET: u8 = 18;
const SCHEDULE: u8 = 19;
const UNSCHEDULE: u8 = 20;
const CATCH_UP: u8 = 21;
const REMOVE: u8 = 22;
/// A FETCH with parts that have no flag of their own: a byte of [`more`] follows.
const FETCH_MORE: u8 = 23;
const FIND_DO: u8 = 24;
const GRACE: u8 = 25;
const ACK_SEND: u8 = 26;
const PAUSE_SCHEDULE: u8 = 27;
const MOVED: u8 = 28;
const SIGNAL: u8 = 29;
const CHILDREN: u8 = 30;
const LIMIT: u8 = 32;
const DETACH: u8 = 40;
const APPLIED: u8 = 41;

/// The parts of a FETCH that have a byte of their own, as bits.
mod more {
    pub const RESULTS: u8 = 1;
    pub const TOKEN: u8 = 1 << 1;
    pub const ALL: u8 = RESULTS | TOKEN;
}

/// The parts of a report to a parent beside its counts, as bits.
mod more_of_children {
    /// The parent dies, too.
    pub const DIES: u8 = 1;
    /// The parent dies in an event of its own.
    pub const DIES_LATER: u8 = 2;
    pub const ALL: u8 = DIES | DIES_LATER;
}

/// The parts of a NACK that few have, as bits.
mod more_of_nack {
    pub const PAUSE_GROUP: u8 = 1;
    pub const PAUSE_QUEUE: u8 = 2;
    /// How long the message is delayed without a failure.
    pub const SNOOZE: u8 = 4;
    /// How long the message waits for a signal; 0 without end.
    pub const PARK: u8 = 8;
    pub const ALL: u8 = PAUSE_GROUP | PAUSE_QUEUE | SNOOZE | PARK;
}

/// The number of the kind of an operation, below 63 and not 31.
pub fn kind(op: &Op) -> u8 {
    match op {
        Op::Tick => TICK,
        Op::Alter(_) => ALTER,
        Op::Send(_) => SEND,
        Op::Duplicate => DUPLICATE,
        Op::Fetch(fetch) if fetch.token.is_some() || !fetch.results.is_empty() => FETCH_MORE,
        Op::Fetch(_) => FETCH,
        Op::Ack { .. } | Op::AckEach { .. } | Op::AckCost { .. } => ACK,
        Op::AckSend(_) => ACK_SEND,
        Op::Nack { .. } => NACK,
        Op::Touch { .. } => TOUCH,
        Op::EndLeases { .. } => END_LEASES,
        Op::Grace { .. } => GRACE,
        Op::Advance { .. } => ADVANCE,
        Op::Cancel { .. } => CANCEL,
        Op::Reschedule { .. } => RESCHEDULE,
        Op::Update { .. } => UPDATE,
        Op::Signal { .. } => SIGNAL,
        Op::Redrive(_) => REDRIVE,
        Op::Purge { .. } => PURGE,
        Op::Pause { .. } => PAUSE,
        Op::Resume { .. } => RESUME,
        Op::GroupSet { .. } => GROUP_SET,
        Op::Schedule(_) => SCHEDULE,
        Op::Unschedule { .. } => UNSCHEDULE,
        Op::PauseSchedule { .. } => PAUSE_SCHEDULE,
        Op::CatchUp { .. } => CATCH_UP,
        Op::FindDo { .. } => FIND_DO,
        Op::Remove(_) => REMOVE,
        Op::Moved(_) => MOVED,
        Op::Children(_) => CHILDREN,
        Op::Detach(_) => DETACH,
        Op::Applied(_) => APPLIED,
        Op::Limit { .. } => LIMIT,
    }
}

/// The kinds of things that a REMOVE removes.
const MESSAGES: u8 = 0;
const HOLDS: u8 = 1;
const TAKEN_IDS: u8 = 2;

fn bits<const N: usize>(present: [bool; N]) -> u8 {
    let bits = present.into_iter().enumerate();
    bits.fold(0, |flags, (bit, is)| flags | u8::from(is) << bit)
}

/// The six flag bits of an operation, which say which of its parts are written.
pub fn flags(op: &Op, receipt: Receipt, time_us: u64) -> u8 {
    match op {
        Op::Send(send) => flags_of_send(send),
        Op::Fetch(fetch) => bits([
            fetch.consumer.is_some(),
            fetch.group.is_some(),
            !fetch.acks.is_empty(),
            fetch.no_ack,
            receipt != time_us,
            limits_of(fetch) != [Some(1), Some(1), None, None],
        ]),
        Op::Ack { result, .. } => bits([result.is_some()]),
        Op::AckSend(ack_send) => bits([
            ack_send.receipt.is_some(),
            ack_send.result.is_some(),
            !ack_send.signals.is_empty(),
        ]),
        Op::AckEach { .. } => bits([false, true]),
        Op::AckCost { result, .. } => bits([result.is_some(), false, true]),
        Op::Limit { rule, .. } => bits([rule.weighted]),
        Op::Nack {
            kind,
            error,
            random,
            note,
            pause,
            ..
        } => {
            let kind = match kind {
                NackKind::Backoff => 0,
                NackKind::Delay(_) => 1,
                NackKind::Silent | NackKind::Snooze(_) | NackKind::Park(_) => 2,
                NackKind::Fatal => 3,
            };
            let more = pause.is_some() || silence_of(op).is_some();
            bits([error.is_some(), *random != 0]) | kind << 2 | bits([more, note.is_some()]) << 4
        }
        Op::FindDo { act, .. } => match act {
            FindAct::Redrive => 0,
            FindAct::Cancel => 1,
            FindAct::Purge => 2,
        },
        Op::Touch { note, .. } => bits([note.is_some()]),
        Op::Advance { skip_fires, .. } => bits([*skip_fires]),
        Op::CatchUp { skip, .. } => bits([*skip]),
        Op::PauseSchedule { paused, .. } => bits([*paused]),
        Op::Redrive(which) => bits([matches!(which, Redrive::Ids(_))]),
        Op::Purge { state, group } => bits([state.is_some(), group.is_some()]),
        Op::Remove(removal) => match removal {
            Removal::Messages(_) => MESSAGES,
            Removal::Holds(_) => HOLDS,
            Removal::TakenIds => TAKEN_IDS,
        },
        Op::Pause { group, ms } => bits([ms.is_some(), group.is_some()]),
        Op::Resume { group } => bits([group.is_some()]),
        Op::Detach(ties) => bits([ties.events, ties.dead_to, ties.parents]),
        Op::Moved(moved) => bits([moved.stays.is_some()]),
        Op::GroupSet { changes, .. } => bits([
            changes.weight.is_some(),
            changes.concurrency.is_some(),
            changes.rate.is_some(),
        ]),
        _ => 0,
    }
}

/// Whether any options are written of a send.
fn has_options(send: &Send) -> bool {
    !send.choices.is_default() || send.if_group || send.dedup.is_some() || send.rerun
}

fn flags_of_send(send: &Send) -> u8 {
    bits([
        send.id.is_some(),
        send.group.is_some(),
        send.priority != 0,
        send.due != DueTime::Now,
        has_options(send),
        send.replace || send.payloads.len() != 1 || send.new_salt.is_some(),
    ])
}

/// The bit of the way in which a nack without a failure keeps its messages back, and how
/// long in ms.
fn silence_of(op: &Op) -> Option<(u8, Millis)> {
    match op {
        Op::Nack { kind, .. } => match kind {
            NackKind::Snooze(ms) => Some((more_of_nack::SNOOZE, *ms)),
            NackKind::Park(park) => Some((more_of_nack::PARK, park.ms.map_or(0, |ms| ms.get()))),
            _ => None,
        },
        _ => None,
    }
}

/// COUNT, PERGROUP, LEASE and MAXBYTES.
fn limits_of(fetch: &Fetch) -> [Option<u64>; 4] {
    [
        Some(fetch.count),
        Some(fetch.per_group),
        fetch.lease,
        fetch.max_bytes,
    ]
}
