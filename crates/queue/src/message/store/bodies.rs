//! Storage for ids and payloads: many of them share one allocation.
//!
//! An allocation for each would cost two calls of the allocator and the rounding up
//! to its size classes, 12 bytes for a payload of 100. Here the bodies of
//! successive messages are placed one behind the other in chunks of up to 14 KiB.
//! Removing a body only changes a count, and a chunk is freed when its last body is
//! removed.
//!
//! If the holes exceed a quarter of the bytes in use, a chunk with many holes is
//! emptied: its remaining bodies move to a chunk for those that stay long. A queue
//! that is consumed roughly in order never needs this.
//!
//! Chunks of a small queue are small, and a large body has a chunk for itself.

use smallvec::SmallVec;

use super::chunk::{has_holes, Chunk, SMALL};
use super::dictionaries::Dictionaries;
use super::stored::{find, head, kept, Found, Stored};
use crate::collections::slots::Slots;
use crate::message::body::{Body, Content};
use crate::message::packing::{Packed, Payload};
use crate::IS_SMALL;

/// Size of the chunks of a large queue, in bytes: the largest size class of
/// jemalloc (its manual, "size classes") below those that are rounded up to whole
/// pages and padded by one more.
const LARGE: usize = if IS_SMALL { 512 } else { 14 << 10 };
/// A chunk is at most 1/`SHARE` of the bytes of all bodies, unless it has the
/// minimum size.
const SHARE: usize = 4;
/// A body larger than 1/`PIECES` of a chunk has its own chunk.
const PIECES: usize = 8;
/// Maximum number of bodies in a chunk: moving more would take too long.
const MOST: usize = if IS_SMALL { 24 } else { 512 };

/// How many chunks are compared to find the one with most holes.
const LOOKED: usize = 16;

/// If no body is left and there are more numbers of chunks than this, their table
/// is freed too: some hundred bytes.
const MANY: usize = 16;

/// Chunk descriptions in one allocation. Most queues are small and have one chunk.
const NEIGHBOURS: usize = if IS_SMALL { 2 } else { 1 };

/// A chunk that bodies are added to.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    /// The number of the chunk; `None` if there is none yet.
    number: Option<u32>,
    /// The bytes that still fit into the chunk.
    room: usize,
    /// The number of bodies that the chunk may still take.
    left: usize,
}

/// A chunk that is being emptied.
pub(super) struct Thin {
    /// Its number, which is not assigned again before [`Bodies::release`].
    pub number: u32,
    /// The pages of the store whose messages may have bodies in it.
    pub pages: SmallVec<[u64; 2]>,
    bytes: Vec<u8>,
}

/// All bodies of a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies {
    chunks: Slots<Chunk, NEIGHBOURS>,
    /// The chunk for the bodies of new messages.
    fresh: Open,
    /// The chunk for bodies that were moved out of chunks with many holes.
    moved: Open,
    /// Bytes of all bodies.
    live: usize,
    /// Bytes allocated by all chunks.
    taken: usize,
    /// Bytes of bodies that were put into chunks which are full now and shared,
    /// including those removed since.
    filled: usize,
    /// Bytes of the bodies in these full chunks that were not removed.
    left: usize,
    /// The place at which the search for the next chunk to empty starts.
    cursor: usize,
    /// The dictionaries of packed payloads. `None` where there have been none.
    pub dictionaries: Option<Box<Dictionaries>>,
}

impl Bodies {
    /// The content of a body whose id has `id_len` bytes. O(1).
    #[inline]
    pub fn get(&self, body: Body, id_len: usize) -> Content<'_> {
        let bytes = self.chunks.get(body.chunk() as usize);
        let bytes = bytes.map_or(&[][..], |chunk| &chunk.bytes);
        let found = find(bytes, body, id_len);
        Content {
            id: found.id,
            payload: match found.number {
                None => Payload::Plain(found.payload),
                Some(number) => self.packed(body, number, found),
            },
        }
    }

    fn packed<'a>(&'a self, body: Body, number: u8, found: Found<'a>) -> Payload<'a> {
        let dictionaries = self.dictionaries.as_ref();
        let dictionary = dictionaries.and_then(|all| all.get(number));
        debug_assert!(dictionary.is_some(), "dictionary {number} is missing");
        dictionary.map_or(Payload::default(), |dictionary| {
            Payload::Packed(Packed {
                bytes: found.payload,
                own: found.id,
                len: body.payload_len(),
                number,
                dictionary,
            })
        })
    }

    /// Stores the content of a message in this page of the store. O(1), apart from
    /// copying the bytes.
    pub fn add(&mut self, page: u64, content: Content) -> Body {
        let (head, payload_len) = (head(content), content.payload.len());
        let stored = Stored::of(content, &head);
        let len = stored.len();
        if len == 0 {
            return Body::nowhere(0);
        }
        self.live += len;
        let is_packed = match content.payload {
            Payload::Plain(_) => false,
            Payload::Packed(packed) => {
                let dictionaries = self.dictionaries.get_or_insert_default();
                dictionaries.used(packed.number, payload_len, kept(packed.bytes));
                true
            }
        };
        if len * PIECES > self.chunk_size() {
            let mut chunk = Chunk::default();
            chunk.put(page, &stored);
            self.taken += chunk.taken();
            let chunk = self.chunks.add(chunk) as u32;
            return Body::alone(chunk, payload_len).with_packed(is_packed);
        }
        if is_packed {
            // It stays long.
            return self.move_in(page, &stored, payload_len).with_packed(true);
        }
        if len > self.fresh.room || self.fresh.left == 0 {
            let fresh = std::mem::take(&mut self.fresh);
            self.fresh = self.open_behind(fresh);
        }
        let (chunk, at) = put(
            &mut self.chunks,
            &mut self.taken,
            &mut self.fresh,
            page,
            &stored,
        );
        Body::shared(chunk, at, payload_len)
    }

    /// Removes a body whose id has `id_len` bytes. O(1).
    pub fn remove(&mut self, body: Body, id_len: usize) {
        let number = body.chunk();
        let Some(chunk) = self.chunks.get_mut(number as usize) else {
            return;
        };
        let found = find(&chunk.bytes, body, id_len);
        let (len, packed, after) = (found.len, found.number, kept(found.payload));
        chunk.live -= len;
        self.live -= len;
        let is_over = chunk.live == 0;
        if let (Some(number), Some(dictionaries)) = (packed, &mut self.dictionaries) {
            dictionaries.unused(number, body.payload_len(), after);
        }
        if !body.is_alone() && !self.is_open(number) {
            self.left -= len;
        }
        if is_over {
            self.empty(number, body.is_alone());
        }
        if self.live == 0 && self.chunks.end() > MANY {
            // Without bodies nothing in the table is needed any longer.
            *self = Bodies {
                dictionaries: self.dictionaries.take(),
                ..Bodies::default()
            };
        }
    }

    /// Begins to empty a chunk, if there are too many holes and one with many is
    /// found among a few. The caller must move the bodies that are left in it with
    /// [`Bodies::transfer`], then call [`Bodies::release`].
    #[inline]
    pub fn take_thin(&mut self) -> Option<Thin> {
        match has_holes(self.filled, self.left) {
            true => self.find_thin(),
            false => None,
        }
    }

    #[inline(never)]
    fn find_thin(&mut self) -> Option<Thin> {
        let end = self.chunks.end();
        let from = self.cursor.min(end);
        let next = (from..end).chain(0..from).take(LOOKED);
        self.cursor = (from + LOOKED) % end.max(1);
        let full = next.filter(|number| !self.is_open(*number as u32));
        let chunks = full.filter_map(|number| Some((number, self.chunks.get(number)?)));
        let (number, _) = chunks
            .filter(|(_, chunk)| chunk.is_thin())
            .reduce(|one, other| match other.1.is_thinner_than(one.1) {
                true => other,
                false => one,
            })?;
        let chunk = self.chunks.get_mut(number)?;
        self.taken -= chunk.taken();
        self.filled -= chunk.bytes.len();
        self.left -= chunk.live;
        let chunk = std::mem::take(chunk);
        Some(Thin {
            number: number as u32,
            pages: chunk.pages,
            bytes: chunk.bytes,
        })
    }

    /// Moves a body out of a chunk that is being emptied. `page` is the page of its
    /// message, `id_len` the length of its id. Returns its new location.
    pub fn transfer(&mut self, thin: &Thin, page: u64, body: Body, id_len: usize) -> Body {
        let from = body.begin();
        let len = find(&thin.bytes, body, id_len).len;
        let all = thin.bytes.get(from..from + len).unwrap_or_default();
        let stored = Stored {
            parts: [all, &[], &[]],
        };
        let moved = self.move_in(page, &stored, body.payload_len());
        moved.with_packed(body.is_packed())
    }

    /// Puts a body into the chunk for those that stay long.
    fn move_in(&mut self, page: u64, stored: &Stored, payload_len: usize) -> Body {
        if stored.len() > self.moved.room || self.moved.left == 0 {
            let moved = std::mem::take(&mut self.moved);
            self.moved = self.open_behind(moved);
        }
        let (chunk, at) = put(
            &mut self.chunks,
            &mut self.taken,
            &mut self.moved,
            page,
            stored,
        );
        Body::shared(chunk, at, payload_len)
    }

    /// Frees the number of a chunk that was emptied.
    pub fn release(&mut self, thin: Thin) {
        self.chunks.remove(thin.number as usize);
    }

    /// Drops some chunks with the bodies in them. Returns whether there were any. Only
    /// for freeing in slices: the storage must not be used for anything else afterwards.
    pub fn drop_some(&mut self) -> bool {
        let any = self.chunks.end() > 0;
        self.chunks.drop_last_page();
        any
    }

    /// Checks that `live` bytes are counted, and that there are no more holes than
    /// allowed.
    #[cfg(test)]
    pub fn check(&self, live: usize) {
        let all = 0..self.chunks.end();
        let chunks = all.filter_map(|n| Some((n as u32, self.chunks.get(n)?)));
        let [mut counted, mut taken, mut filled, mut left] = [0; 4];
        for (number, chunk) in chunks {
            counted += chunk.live;
            taken += chunk.taken();
            assert!(chunk.live > 0 || self.is_open(number), "{chunk:?}");
            if !self.is_open(number) {
                filled += chunk.bytes.len();
                left += chunk.live;
            }
        }
        assert_eq!([self.live, counted, self.taken], [live, live, taken]);
        // A body with its own chunk counts in neither field, so only the differences are
        // equal.
        assert_eq!(self.filled - self.left, filled - left);
        let (filled, left) = (self.filled, self.left);
        assert!(!has_holes(filled, left), "{left} of {filled}");
    }

    /// Bytes allocated. O(1).
    pub fn memory_bytes(&self) -> usize {
        let dictionaries = self.dictionaries.as_ref();
        let dictionaries = dictionaries.map_or(0, |all| all.memory_bytes());
        self.taken + self.chunks.memory_bytes() + dictionaries
    }

    /// The size of a new chunk in bytes, by the number of bytes stored.
    fn chunk_size(&self) -> usize {
        (self.live / SHARE).clamp(SMALL, LARGE)
    }

    fn is_open(&self, number: u32) -> bool {
        [self.fresh.number, self.moved.number].contains(&Some(number))
    }

    /// Handles a chunk that has no body left: it is freed, or reused if bodies are
    /// still being added to it.
    fn empty(&mut self, number: u32, is_alone: bool) {
        let size = self.chunk_size();
        let Some(chunk) = self.chunks.get_mut(number as usize) else {
            return;
        };
        self.taken -= chunk.taken();
        let len = chunk.bytes.len();
        let mut open = [&mut self.fresh, &mut self.moved].into_iter();
        let Some(open) = open.find(|open| open.number == Some(number)) else {
            self.chunks.remove(number as usize);
            if !is_alone {
                self.filled -= len;
            }
            return;
        };
        chunk.bytes.clear();
        chunk.pages = SmallVec::new();
        chunk.prepare(size);
        open.room = size;
        open.left = MOST;
        self.taken += chunk.taken();
    }

    /// Closes the chunk `full` and opens another one.
    fn open_behind(&mut self, full: Open) -> Open {
        if let Some(number) = full.number {
            if let Some(chunk) = self.chunks.get_mut(number as usize) {
                self.taken -= chunk.taken();
                if chunk.bytes.capacity() > chunk.bytes.len() + chunk.bytes.len() / 8 {
                    chunk.bytes.shrink_to_fit();
                }
                self.taken += chunk.taken();
                self.filled += chunk.bytes.len();
                self.left += chunk.live;
            }
        }
        let size = self.chunk_size();
        let mut chunk = Chunk::default();
        chunk.prepare(size);
        self.taken += chunk.taken();
        Open {
            number: Some(self.chunks.add(chunk) as u32),
            room: size,
            left: MOST,
        }
    }
}

/// Adds a body to an open chunk, which must have room for it. Returns the number of
/// the chunk and the offset of the body.
#[inline]
fn put(
    chunks: &mut Slots<Chunk, NEIGHBOURS>,
    taken: &mut usize,
    open: &mut Open,
    page: u64,
    stored: &Stored,
) -> (u32, usize) {
    let number = open.number.unwrap_or_default();
    let Some(chunk) = chunks.get_mut(number as usize) else {
        return (number, 0);
    };
    open.room -= stored.len();
    open.left -= 1;
    let at = chunk.bytes.len();
    let is_roomy = chunk.bytes.capacity() - at >= stored.len() && chunk.pages.last() == Some(&page);
    if is_roomy {
        chunk.put(page, stored);
    } else {
        *taken -= chunk.taken();
        chunk.put(page, stored);
        *taken += chunk.taken();
    }
    (number, at)
}
