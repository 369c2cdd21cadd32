//! The callbacks of a data type of the server, as methods of [`Queue`]: save,
//! load, rewrite and digest.

use super::log_entry::Chunk;
use super::snapshot::read::Decoder;
use super::snapshot::{encode, Payloads, LARGE, LAST_BEFORE_FIRST, SAVED, VERSION};
use super::wire::put_number;
use crate::Queue;

impl Queue {
    /// The version of the encoding that [`Queue::save`] writes; the server allows 0 to 1023.
    pub const VERSION: u32 = VERSION;

    /// Saves the queue as blocks, none of them empty, whose bytes have any
    /// value. [`Queue::load`] takes them in the same order. O(n).
    pub fn save(&self, block: &mut dyn FnMut(&[u8])) {
        encode(self, SAVED, Payloads::Kept, block);
    }

    /// Loads the blocks that [`Queue::save`] wrote. `next` returns one block after another, and
    /// `None` at the end or where the input is cut off. O(n log n); O(n) for messages in the order
    /// in which they are saved.
    ///
    /// Errors: an unknown version, or input that no `save` can have written.
    /// The input may come from anyone: every count is checked.
    pub fn load(version: u32, next: &mut dyn FnMut() -> Option<Vec<u8>>) -> Result<Queue, String> {
        if version != VERSION {
            let writer = match version {
                0..=LAST_BEFORE_FIRST => "an older version of the module, from before 0.1.0",
                _ => "a newer version of the module",
            };
            return Err(format!("it was written by {writer}"));
        }
        let mut decoder = Decoder::new();
        while let Some(block) = next() {
            decoder.feed(&block)?;
        }
        Ok(decoder.finish()?)
    }

    /// Calls `record` with the log entries that create the queue on an empty
    /// key. O(n).
    pub fn rewrite(&self, record: &mut dyn FnMut(&[u8])) {
        let mut first = true;
        let mut bytes = Vec::new();
        encode(self, LARGE, Payloads::Kept, &mut |block| {
            bytes.clear();
            Chunk { first, block }.encode_into(&mut bytes);
            record(&bytes);
            first = false;
        });
    }

    /// Calls `part` with all parts that a client can observe, no two of them equal: the
    /// blocks of the snapshot, each behind its number. Queues that applied equal log
    /// entries have equal parts. O(n).
    pub fn digest(&self, part: &mut dyn FnMut(&[u8])) {
        let mut number = 0;
        let mut bytes = Vec::new();
        encode(self, LARGE, Payloads::Plain, &mut |block| {
            bytes.clear();
            put_number(&mut bytes, number);
            bytes.extend_from_slice(block);
            part(&bytes);
            number += 1;
        });
    }
}
