//! The queue and the parts that make it durable, simulated in one thread.
//!
//! A [`cluster::Cluster`] has a primary, a replica that applies every log entry
//! at once, a replica that lags behind, and a log that begins with a snapshot.
//! Everything in it follows from a seed: which operations are done, when, and
//! which faults happen. The queue and its codec are the module's own code; only
//! the server is left out.
//!
//! [`neighbours::Neighbours`] are a few queues that send each other dead letters, ends of
//! children and what follows from a job; [`town::Town`] is a server with thousands of queues.

pub mod bugs;
pub mod cluster;
pub mod corruptor;
pub mod disk;
pub mod neighbours;
pub mod ops;
pub mod oracle;
pub mod town;
pub mod trace;

use dq_queue::Queue;

/// Returns the whole snapshot of a queue.
pub fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.save(&mut |block| bytes.extend_from_slice(block));
    bytes
}

/// Loads a queue from a snapshot that is handed over in blocks of `block` bytes.
///
/// # Errors
/// A sentence that says why the bytes are no snapshot.
pub fn loaded(bytes: &[u8], block: usize) -> Result<Queue, String> {
    let mut blocks = bytes.chunks(block.max(1));
    Queue::load(Queue::VERSION, &mut || blocks.next().map(<[u8]>::to_vec))
}

/// Describes the first difference of two snapshots, with the bytes around that place in
/// each of them. Returns `None` where they are equal.
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
