//! The queue and all that makes it durable, simulated in one thread.
//!
//! A [`world::World`] has a primary, a replica that hears of everything at
//! once, one that lags behind, and a log with its snapshot. Everything in it
//! follows from a seed: what is done, when, and what breaks. Core and codec
//! are the module's own files, compiled in without the server.

pub mod acts;
pub mod disk;
pub mod mutant;
pub mod story;
pub mod witness;
pub mod world;

use dq_queue::Queue;

/// The queue as it is saved, in one piece.
pub fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.save(&mut |block| bytes.extend_from_slice(block));
    bytes
}

/// The queue that bytes are, cut into blocks of this size.
pub fn loaded(bytes: &[u8], block: usize) -> Result<Queue, String> {
    let mut blocks = bytes.chunks(block.max(1));
    Queue::load(Queue::VERSION, &mut || blocks.next().map(<[u8]>::to_vec))
}

/// Where two snapshots differ first, and what each has there.
pub fn difference(one: &[u8], other: &[u8]) -> Option<String> {
    if one == other {
        return None;
    }
    let common = one.iter().zip(other).position(|(a, b)| a != b);
    let at = common.unwrap_or(one.len().min(other.len()));
    let near = |bytes: &[u8]| {
        let (from, to) = (at.saturating_sub(16), (at + 16).min(bytes.len()));
        let bytes = bytes.get(from..to).unwrap_or_default();
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let (here, there) = (near(one), near(other));
    Some(format!(
        "at byte {at} of {} and {}: {here} and {there}",
        one.len(),
        other.len()
    ))
}
