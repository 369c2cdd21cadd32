//! The module's core, codec and parser, compiled without the server.
//!
//! They are the module's own files. What they need of the layer above the
//! server is small, and stands in for it in [`ffi`].

#![allow(dead_code, missing_docs)]

#[path = "../../src/core/mod.rs"]
pub mod core;
#[path = "../../src/persist/mod.rs"]
pub mod persist;

pub mod command;
pub mod ffi;
pub mod twin;

use self::core::Queue;
use self::ffi::QueueValue;

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
