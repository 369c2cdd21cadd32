//! What the fuzz targets share.

pub mod twin;

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
