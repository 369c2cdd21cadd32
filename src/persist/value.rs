//! What the server asks of a queue as the value of a key.

use super::decode::Decoder;
use super::record::Chunk;
use super::snapshot::{encode, LARGE, SAVED, VERSION};
use super::wire::put_number;
use crate::core::Queue;
use crate::ffi::QueueValue;

impl QueueValue for Queue {
    const VERSION: u32 = VERSION;

    fn save(&self, block: &mut dyn FnMut(&[u8])) {
        encode(self, SAVED, block);
    }

    fn load(version: u32, next: &mut dyn FnMut() -> Option<Vec<u8>>) -> Result<Queue, String> {
        if !(1..=VERSION).contains(&version) {
            return Err(format!("version {version} of the encoding is not known"));
        }
        let mut decoder = Decoder::new();
        while let Some(block) = next() {
            decoder.feed(&block)?;
        }
        Ok(decoder.finish()?)
    }

    fn rewrite(&self, record: &mut dyn FnMut(&[u8])) {
        let mut first = true;
        let mut bytes = Vec::new();
        encode(self, LARGE, &mut |block| {
            bytes.clear();
            Chunk { first, block }.encode_into(&mut bytes);
            record(&bytes);
            first = false;
        });
    }

    fn memory(&self) -> usize {
        self.memory_bytes().saturating_sub(size_of::<Queue>())
    }

    fn effort(&self) -> usize {
        self.free_effort()
    }

    fn copied(&self) -> Queue {
        self.copy()
    }

    /// The blocks of the snapshot, each with its number: an encoding that is
    /// the same wherever the same records led to it.
    fn digest(&self, part: &mut dyn FnMut(&[u8])) {
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
