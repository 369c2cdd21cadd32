//! Corrupts snapshots and log entries, and checks the outcome.

use crate::{loaded, saved};
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::queue::rebuild::validate;
use dq_queue::{Millis, Moment, Op, Queue};

/// Maximum steps of time before an operation. No server takes more.
const MOST_STEPS: u64 = 4096;
/// Maximum time by which a log entry may be ahead, in microseconds. One from
/// farther ahead makes schedules fire for longer than is of use.
const AHEAD_US: u64 = 60_000_000;
/// `AHEAD_US` in milliseconds.
const AHEAD: Millis = AHEAD_US / 1000;

/// The effect of corrupted bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The bytes were refused.
    Refused,
    /// The bytes were still valid, and were accepted.
    Taken,
}

/// Changes between one and three bytes or ranges of bytes.
pub fn corrupt(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.usize(0..bytes.len());
        match rng.u8(0..6) {
            0 => bytes[at] = rng.u8(..),
            1 => bytes[at] ^= 1 << rng.u8(0..8),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, rng.u8(..)),
            4 => bytes.truncate(at),
            _ => {
                let end = (at + rng.usize(1..20)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = rng.usize(0..=bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

/// Corrupts a snapshot and loads it: it must be refused, or give a sound queue
/// that can be used.
///
/// # Errors
/// A sentence about the error in the loaded queue.
pub fn try_snapshot(rng: &mut fastrand::Rng, mut bytes: Vec<u8>, us: u64) -> Result<Fate, String> {
    corrupt(rng, &mut bytes);
    let Ok(mut queue) = loaded(&bytes, rng.usize(1..5000)) else {
        return Ok(Fate::Refused);
    };
    is_sound(&queue)?;
    let moment = Moment { us, receipt: us };
    queue.advance(moment.ms(), 200);
    queue.apply(&Op::Tick, moment).ok();
    is_sound(&queue)?;
    Ok(Fate::Taken)
}

/// Corrupts a log entry and replays it on a copy of `queue`: it must be refused,
/// or be the same entry after it was written and read again, and leave a sound
/// queue.
///
/// # Errors
/// A sentence that says which of these does not hold.
pub fn try_record(
    rng: &mut fastrand::Rng,
    bytes: &[u8],
    queue: &Queue,
    us: u64,
) -> Result<Fate, String> {
    let mut bytes = bytes.to_vec();
    corrupt(rng, &mut bytes);
    let Ok(record) = LogEntry::decode(&bytes) else {
        return Ok(Fate::Refused);
    };
    let mut written = Vec::new();
    record.encode_into(&mut written);
    let again = LogEntry::decode(&written)?;
    let mut twice = Vec::new();
    again.encode_into(&mut twice);
    if written != twice {
        return Err(format!(
            "{record:?} was written and read again as {again:?}"
        ));
    }
    let too_far = match &*record.op {
        Op::Advance { to, .. } => *to > queue.last_seen().saturating_add(AHEAD),
        _ => record.time_us > us + AHEAD_US,
    };
    if record.before.steps > MOST_STEPS || too_far {
        return Ok(Fate::Taken);
    }
    let mut queue = queue.clone();
    record.replay(&mut queue).ok();
    queue.take_effects();
    is_sound(&queue)?;
    Ok(Fate::Taken)
}

/// Checks every index of a queue, and that its snapshot loads as the same queue.
/// It costs as much as saving and loading the queue twice.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn is_sound(queue: &Queue) -> Result<(), String> {
    validate(queue)?;
    let bytes = saved(queue);
    let again = loaded(&bytes, 1000)?;
    match bytes == saved(&again) {
        true => Ok(()),
        false => Err("the queue that was loaded differs from the one that was saved".into()),
    }
}
