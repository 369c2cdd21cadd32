//! Error replies for operations that a queue refuses.

use crate::redis::Failure;
use dq_queue::Error;

/// The reply if the key does not exist.
pub const NO_SUCH_QUEUE: &str = "ERR no such queue";

/// The reply for an error of the queue.
pub fn reply_for(error: &Error) -> Failure {
    match error {
        Error::Exists => "ERR queue already exists".into(),
        Error::FullLength { limit } => {
            format!("QUEUEFULL the queue may have {limit} messages pending and running (MAXLEN)")
                .into()
        }
        Error::FullBytes { limit } => format!(
            "QUEUEFULL the queue may have {limit} payload bytes pending and running (MAXBYTES)"
        )
        .into(),
        Error::Closed => "QUEUECLOSED the queue takes no new messages (SENDS OFF)".into(),
        Error::ClockIsServers => {
            "ERR ADVANCE and TO move the clock of a queue made with CLOCK MANUAL only".into()
        }
        Error::ClockGoesBack { now, to } => {
            format!("ERR TO {to} lies before the queue's clock, which is at {now}").into()
        }
        Error::TooManyFires { limit } => format!(
            "ERR the schedules would fire more than {limit} times on the way; move the clock in \
             smaller steps"
        )
        .into(),
        Error::NoGroup => "ERR PAUSE GROUP is for messages with a group only".into(),
        Error::TooManyPatterns { limit } => {
            format!("ERR a queue may have at most {limit} limits whose names are patterns").into()
        }
        Error::CostsTooMuch { cost, most } => format!(
            "ERR COST {cost} can never be delivered: one of its LIMITS allows at most {most} (DQ.LIMIT)"
        )
        .into(),
        Error::PatternsTooLong { what, limit } => format!(
            "ERR the patterns of a queue may have at most {limit} {what} between their first * and their last, \
             all together"
        )
        .into(),
        Error::Ring => "ERR AFTER would make batches wait for each other".into(),
        Error::Seconds { what, seconds } => format!(
            "ERR {what} {seconds} lies before 1974, as the unit is milliseconds; {seconds}000 was probably \
             meant"
        )
        .into(),
        Error::Unsettled => {
            "ERR internal error: the queue has not settled its last change; nothing was done".into()
        }
        Error::NeverFires => "ERR the schedule would never fire".into(),
    }
}
