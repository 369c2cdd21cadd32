//! Queues that come in several parts.

use std::cell::RefCell;
use std::collections::HashMap;

use super::decode::Decoder;
pub use super::record::Chunk;
use crate::core::id::NameHasher;
use crate::core::limits::Invalid;
use crate::core::Queue;

/// A key: its database and name.
type Place = (i32, Box<[u8]>);

thread_local! {
    /// What has come so far, of queues of which more is to come. It is no
    /// part of any key: until it is whole, a queue is not there.
    static PENDING: RefCell<HashMap<Place, Decoder, NameHasher>> = RefCell::default();
}

/// Takes in one part of the queue of a key; the queue, when that was the last
/// one. Parts of one queue come in order, those of different queues as they
/// like. A first part begins anew, whatever came before.
///
/// Errors: the input is broken, or a part is missing. What came before is
/// forgotten then.
pub fn take(db: i32, key: &[u8], chunk: Chunk) -> Result<Option<Queue>, Invalid> {
    PENDING.with_borrow_mut(|pending| {
        let place: Place = (db, key.into());
        let before = pending.remove(&place);
        let mut decoder = match (chunk.first, before) {
            (true, _) => Decoder::new(),
            (false, Some(decoder)) => decoder,
            (false, None) => return Err(Invalid("the parts before this one are missing")),
        };
        if decoder.feed(chunk.block)? {
            return decoder.finish().map(Some);
        }
        pending.insert(place, decoder);
        Ok(None)
    })
}
