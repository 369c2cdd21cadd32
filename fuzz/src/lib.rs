//! Shared by the fuzz targets.

pub mod bug;
pub mod twin;

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
