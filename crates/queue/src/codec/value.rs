//! What the server asks of a queue as the value of a key.

use super::decode::Decoder;
use super::record::Chunk;
use super::snapshot::{encode, LARGE, SAVED, VERSION};
use super::wire::put_number;
use crate::Queue;

impl Queue {
    /// The version of the encoding that [`Queue::save`] writes; the server allows 0 to 1023.
    pub const VERSION: u32 = VERSION;

    /// Writes the queue as blocks of any bytes, none of them empty. [`Queue::load`] needs them
    /// cut as they were.
    pub fn save(&self, block: &mut dyn FnMut(&[u8])) {
        encode(self, SAVED, block);
    }

    /// Reads what a `save` of this or an older version wrote. `next` gives one block after the
    /// other, and `None` at the end or where the input is cut off. The input may come from
    /// anyone: every count is checked.
    pub fn load(version: u32, next: &mut dyn FnMut() -> Option<Vec<u8>>) -> Result<Queue, String> {
        if !(1..=VERSION).contains(&version) {
            return Err(format!("version {version} of the encoding is not known"));
        }
        let mut decoder = Decoder::new();
        while let Some(block) = next() {
            decoder.feed(&block)?;
        }
        Ok(decoder.finish()?)
    }

    /// Gives log entries that make the queue anew on an empty key.
    pub fn rewrite(&self, record: &mut dyn FnMut(&[u8])) {
        let mut first = true;
        let mut bytes = Vec::new();
        encode(self, LARGE, &mut |block| {
            bytes.clear();
            Chunk { first, block }.encode_into(&mut bytes);
            record(&bytes);
            first = false;
        });
    }

    /// Gives parts of all that a client can observe, no two of them alike: the blocks of the
    /// snapshot, each with its number. Equal log entries lead to equal parts everywhere.
    pub fn digest(&self, part: &mut dyn FnMut(&[u8])) {
        let mut number = 0;
        let mut bytes = Vec::new();
        encode(self, LARGE, &mut |block| {
            bytes.clear();
            put_number(&mut bytes, number);
            bytes.extend_from_slice(block);
            part(&bytes);
            number += 1;
        });
    }
}
