//! Encodes the options of queues, messages and schedules. Log entries and
//! snapshots share this encoding.

mod due_time;
mod limit;
mod message;
mod queue;
mod schedule;

use super::wire::{put_number, Reader};
use crate::codec::bounds::EXACT;
use crate::limits::Invalid;
use crate::settings::Backoff;

pub use due_time::{due, put_due};
pub use limit::{limit_rule, put_limit_rule};
pub use message::{
    choices, parent, put_choices, put_parent, put_send_options, send_options, OfSend,
};
pub use queue::{changes, clock, put_changes, put_clock, put_rate, put_settings, rate, settings};
pub use schedule::{put_rule, rule, Manner};

/// Sets bit i if the i-th value is present.
fn mask<const N: usize>(present: [bool; N]) -> u64 {
    let bits = present.into_iter().enumerate();
    bits.fold(0, |mask, (bit, is)| mask | u64::from(is) << bit)
}

fn put_backoff(out: &mut Vec<u8>, backoff: Backoff) {
    let (kind, ms) = match backoff {
        Backoff::Fixed(ms) => (0, ms),
        Backoff::Linear(ms) => (1, ms),
        Backoff::Exp(ms) => (2, ms),
    };
    out.push(kind);
    put_number(out, ms);
}

fn backoff(reader: &mut Reader) -> Result<Backoff, Invalid> {
    Ok(match (reader.byte()?, reader.number(&EXACT)?) {
        (0, ms) => Backoff::Fixed(ms),
        (1, ms) => Backoff::Linear(ms),
        (2, ms) => Backoff::Exp(ms),
        _ => {
            return Err(Invalid(
                "the kind of a BACKOFF must be 0 (FIXED), 1 (LINEAR) or 2 (EXP)",
            ))
        }
    })
}
