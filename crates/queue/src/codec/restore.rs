//! Queues whose snapshots come in several parts, one log entry each.

use std::collections::HashMap;

use super::log_entry::Chunk;
use super::Decoder;
use crate::limits::Invalid;
use crate::message::id::NameHasher;
use crate::Queue;

/// The address at which the queue will be: the number of the database and the name of the key.
type Address = (i32, Box<[u8]>);

/// The parts that have come so far, for queues that are not complete yet. A queue appears
/// in its database only when it is complete.
#[derive(Debug, Default)]
pub struct Restoring {
    begun: HashMap<Address, Decoder, NameHasher>,
}

impl Restoring {
    /// Adds one part of the queue of a key. Returns the queue if this was the last part.
    /// The parts of one queue come in order, those of different queues in any order. A
    /// first part starts over, whatever came before it.
    ///
    /// Errors: the part is broken, or a part before it is missing. All earlier
    /// parts of this queue are forgotten then.
    pub fn take(&mut self, db: i32, key: &[u8], chunk: Chunk) -> Result<Option<Queue>, Invalid> {
        let address: Address = (db, key.into());
        let before = self.begun.remove(&address);
        let mut decoder = match (chunk.first, before) {
            (true, _) => Decoder::new(),
            (false, Some(decoder)) => decoder,
            (false, None) => return Err(Invalid("the earlier parts of this queue are missing")),
        };
        if decoder.feed(chunk.block)? {
            return decoder.finish().map(Some);
        }
        self.begun.insert(address, decoder);
        Ok(None)
    }
}
