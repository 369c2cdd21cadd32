//! The names of operations, for people.

use super::{FindAct, Op, Redrive};

impl Op<'_> {
    /// The command that makes this operation, with the word that tells two of them apart. What no
    /// client asks for has a name in lower case.
    pub fn verb(&self) -> &'static str {
        match self {
            Op::Tick => "DQ.TICK",
            Op::Alter(_) => "DQ.ALTER",
            Op::Send(_) | Op::Duplicate => "DQ.SEND",
            Op::Fetch(_) => "DQ.FETCH",
            Op::Ack { .. } | Op::AckCost { .. } | Op::AckEach { .. } => "DQ.ACK",
            Op::AckSend(_) => "DQ.ACKSEND",
            Op::Nack { .. } => "DQ.NACK",
            Op::Touch { .. } => "DQ.TOUCH",
            Op::EndLeases { .. } => "the end of leases",
            Op::Grace { .. } => "the grace of leases",
            Op::Advance { .. } => "DQ.TICK ADVANCE",
            Op::Cancel { .. } => "DQ.CANCEL",
            Op::Reschedule { .. } => "DQ.RESCHEDULE",
            Op::Update { .. } => "DQ.UPDATE",
            Op::Signal { .. } => "DQ.SIGNAL",
            Op::Redrive(Redrive::Oldest(_)) => "DQ.REDRIVE",
            Op::Redrive(Redrive::Ids(_)) => "DQ.REDRIVE IDS",
            Op::FindDo { act, .. } => match act {
                FindAct::Redrive => "DQ.FIND DO REDRIVE",
                FindAct::Cancel => "DQ.FIND DO CANCEL",
                FindAct::Purge => "DQ.FIND DO PURGE",
            },
            Op::Purge { .. } | Op::Remove(_) => "DQ.PURGE",
            Op::Pause { .. } => "DQ.PAUSE",
            Op::Resume { .. } => "DQ.RESUME",
            Op::GroupSet { .. } => "DQ.GROUPSET",
            Op::Limit { .. } => "DQ.LIMIT",
            Op::Schedule(_) => "DQ.SCHEDULE",
            Op::Unschedule { .. } => "DQ.UNSCHEDULE",
            Op::PauseSchedule { paused: true, .. } => "DQ.PAUSE SCHEDULE",
            Op::PauseSchedule { paused: false, .. } => "DQ.RESUME SCHEDULE",
            Op::CatchUp { .. } => "the missed fires of a schedule",
            Op::Moved(_) => "the move to DEADTO",
            Op::Detach(_) => "the cut of ties",
            Op::Applied(_) => "what a FETCH has applied",
            Op::Children(_) => "the report of children",
        }
    }
}
