//! The queue and all that makes it durable, simulated in one thread.
//!
//! A [`world::World`] has a primary, a replica that hears of everything at
//! once, one that lags behind, and a log with its snapshot. Everything in it
//! follows from a seed: what is done, when, and what breaks. Core and codec
//! are the module's own files, compiled in without the server.

#![allow(dead_code)]

#[path = "../../src/core/mod.rs"]
pub mod core;
#[path = "../../fuzz/src/ffi.rs"]
pub mod ffi;
#[path = "../../src/persist/mod.rs"]
pub mod persist;

pub mod acts;
pub mod disk;
pub mod mutant;
pub mod witness;
pub mod world;

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
