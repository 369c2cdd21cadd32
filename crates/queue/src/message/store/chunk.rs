//! One allocation that has the ids and payloads of several messages.

use smallvec::SmallVec;

use super::stored::Stored;
use crate::collections::footprint::allocated;
use crate::IS_SMALL;

/// Size of the chunks of a small queue, in bytes.
pub(super) const SMALL: usize = if IS_SMALL { 64 } else { 2 << 10 };
/// Maximum capacity, in bytes, that an empty small chunk keeps for later bodies.
const KEPT: usize = SMALL / 4;

#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    pub bytes: Vec<u8>,
    /// Bytes of bodies that were not removed.
    pub live: usize,
    /// The pages of the store whose messages have bodies here. Some may have none
    /// left.
    pub pages: SmallVec<[u64; 2]>,
}

impl Chunk {
    /// Prepares an empty chunk. A large one is allocated at once; a small one grows
    /// as bodies come, because they may never fill it.
    pub fn prepare(&mut self, size: usize) {
        if size > SMALL {
            self.bytes.reserve_exact(size);
        } else if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }

    pub fn put(&mut self, page: u64, stored: &Stored) {
        let len = stored.len();
        if self.bytes.capacity() - self.bytes.len() < len {
            self.make_room(len);
        }
        for part in stored.parts {
            self.bytes.extend_from_slice(part);
        }
        self.live += len;
        if self.pages.last() != Some(&page) {
            self.pages.push(page);
        }
    }

    /// Makes room for `len` more bytes. A chunk that doubles would be half empty in most of the very
    /// many queues that have a few messages.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, len: usize) {
        let all = self.bytes.len() + len;
        let room = match self.bytes.is_empty() {
            true => all,
            false => allocated(all + all / 4),
        };
        self.bytes.reserve_exact(room - self.bytes.len());
    }

    /// Bytes allocated. O(1).
    pub fn taken(&self) -> usize {
        let pages = match self.pages.spilled() {
            true => self.pages.capacity() * size_of::<u64>(),
            false => 0,
        };
        allocated(self.bytes.capacity()) + allocated(pages)
    }

    /// Whether the chunk has a greater share of holes than is allowed.
    pub fn is_thin(&self) -> bool {
        has_holes(self.bytes.len(), self.live)
    }

    /// Whether this chunk has a greater share of holes than the other.
    pub fn is_thinner_than(&self, other: &Chunk) -> bool {
        self.live * other.bytes.len() < other.live * self.bytes.len()
    }
}

/// Whether more than a quarter must be added to the bytes that are left to get the
/// bytes that were filled.
#[inline]
pub(super) fn has_holes(filled: usize, left: usize) -> bool {
    filled > left + left / 4
}
