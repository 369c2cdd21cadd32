//! Queues that come in several parts.

use std::collections::HashMap;

use super::record::Chunk;
use super::Decoder;
use crate::id::NameHasher;
use crate::limits::Invalid;
use crate::Queue;

/// Where a queue will be: the database and the name of its key.
type Address = (i32, Box<[u8]>);

/// What has come so far of queues of which more is to come. Until a queue is whole, it is not there.
#[derive(Debug, Default)]
pub struct Restoring {
    begun: HashMap<Address, Decoder, NameHasher>,
}

impl Restoring {
    /// Takes in one part of the queue of a key. Returns the queue when that was the last part.
    /// Parts of one queue come in order, those of different queues as they like. A first part
    /// begins anew, whatever came before.
    ///
    /// Errors: the input is broken, or a part is missing. What came before is forgotten then.
    pub fn take(&mut self, db: i32, key: &[u8], chunk: Chunk) -> Result<Option<Queue>, Invalid> {
        let address: Address = (db, key.into());
        let before = self.begun.remove(&address);
        let mut decoder = match (chunk.first, before) {
            (true, _) => Decoder::new(),
            (false, Some(decoder)) => decoder,
            (false, None) => return Err(Invalid("the parts before this one are missing")),
        };
        if decoder.feed(chunk.block)? {
            return decoder.finish().map(Some);
        }
        self.begun.insert(address, decoder);
        Ok(None)
    }
}
