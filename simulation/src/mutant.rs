//! Bytes that were right once.

use crate::{loaded, saved};
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::queue::rebuild::validate;
use dq_queue::{Millis, Moment, Op, Queue};

/// No server takes more steps before one operation.
const MOST_STEPS: u64 = 4096;
/// A record from farther ahead makes schedules fire for longer than is of use.
const AHEAD_US: u64 = 60_000_000;
const AHEAD: Millis = AHEAD_US / 1000;

/// What became of broken bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They were refused.
    Refused,
    /// They mean something, and were taken as that.
    Taken,
}

/// Changes some bytes.
pub fn mutate(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
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

/// A broken snapshot is refused, or it is a sound queue that can be used.
pub fn try_snapshot(rng: &mut fastrand::Rng, mut bytes: Vec<u8>, us: u64) -> Result<Fate, String> {
    mutate(rng, &mut bytes);
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

/// A broken record is refused, or it means the same when it is written and
/// read again, and leaves a sound queue.
pub fn try_record(
    rng: &mut fastrand::Rng,
    bytes: &[u8],
    queue: &Queue,
    us: u64,
) -> Result<Fate, String> {
    let mut bytes = bytes.to_vec();
    mutate(rng, &mut bytes);
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
            "{record:?} is not what is written of it: {again:?}"
        ));
    }
    let too_far = match &*record.op {
        Op::Advance { to } => *to > queue.last_seen().saturating_add(AHEAD),
        _ => record.time_us > us + AHEAD_US,
    };
    if record.steps > MOST_STEPS || too_far {
        return Ok(Fate::Taken);
    }
    let mut queue = queue.clone();
    record.replay(&mut queue).ok();
    queue.take_effects();
    is_sound(&queue)?;
    Ok(Fate::Taken)
}

/// Whether every index of a queue is right and its snapshot is the same queue.
pub fn is_sound(queue: &Queue) -> Result<(), String> {
    validate(queue)?;
    let bytes = saved(queue);
    let again = loaded(&bytes, 1000)?;
    match bytes == saved(&again) {
        true => Ok(()),
        false => Err("what was loaded differs from what was saved".into()),
    }
}
