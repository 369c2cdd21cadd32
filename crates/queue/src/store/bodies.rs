//! Where ids and payloads lie: many in one allocation.
//!
//! An allocation for each would cost a call of the allocator to make and another
//! to free, and what sizes are rounded up to: 12 bytes for a payload of 100. Here
//! the bodies of messages that come one after the other lie one behind the other
//! in chunks of up to 14 KiB. What leaves is only counted, and a chunk goes when
//! nothing of it is left. Where holes take more than a quarter of what is there, the
//! rest of a chunk that has more holes than others moves to one for what stays
//! long. What is worked off more or less in its order never does.
//!
//! Chunks of a small queue are small, and large bodies have one for themselves.

use smallvec::SmallVec;

use crate::body::{Body, Content};
use crate::footprint::allocated;
use crate::slots::Slots;
use crate::IS_SMALL;

/// Bytes of the chunks of a large queue: the largest that jemalloc (its manual, "size
/// classes") does not round up to whole pages, and pads by one more.
const LARGE: usize = if IS_SMALL { 512 } else { 14 << 10 };
/// And of a small one.
const SMALL: usize = if IS_SMALL { 64 } else { 2 << 10 };
/// A small chunk of which nothing is left keeps no more bytes for what comes next.
const KEPT: usize = SMALL / 4;
/// A chunk holds this share of all bytes at most, as long as it is not small.
const SHARE: usize = 4;
/// A body of more than this share of a chunk gets one for itself.
const PIECES: usize = 8;
/// More bodies would take long to move.
const MOST: usize = if IS_SMALL { 24 } else { 512 };

/// Of so many chunks the one with most holes is emptied.
const LOOKED: usize = 16;

/// So many numbers of chunks are kept where nothing is left: some hundred bytes.
const MANY: usize = 16;

/// What is known of so many chunks takes one allocation: most queues are small.
const NEIGHBOURS: usize = 2;

#[derive(Debug, Clone, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Bytes of bodies that are still there.
    live: usize,
    /// The pages of the store whose messages have bodies here, and maybe some
    /// whose have gone.
    pages: SmallVec<[u64; 2]>,
}

impl Chunk {
    /// Makes room for so many bytes where it is empty; those of a small chunk may never
    /// come, so that it grows with them.
    fn prepare(&mut self, size: usize) {
        if size > SMALL {
            self.bytes.reserve_exact(size);
        } else if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }

    fn put(&mut self, page: u64, content: Content) {
        let len = content.len();
        if self.bytes.is_empty() && self.bytes.capacity() < len {
            self.bytes.reserve_exact(len);
        }
        self.bytes.extend_from_slice(content.id.unwrap_or_default());
        self.bytes.extend_from_slice(content.payload);
        self.live += len;
        if self.pages.last() != Some(&page) {
            self.pages.push(page);
        }
    }

    /// Bytes allocated.
    fn taken(&self) -> usize {
        let pages = match self.pages.spilled() {
            true => self.pages.capacity() * size_of::<u64>(),
            false => 0,
        };
        allocated(self.bytes.capacity()) + allocated(pages)
    }

    /// Whether it has a greater share of holes than there may be.
    fn is_thin(&self) -> bool {
        has_holes(self.bytes.len(), self.live)
    }

    /// Whether it has a greater share of holes than another.
    fn is_thinner_than(&self, other: &Chunk) -> bool {
        self.live * other.bytes.len() < other.live * self.bytes.len()
    }
}

/// Whether of so many bytes fewer are left than ought to be.
#[inline]
fn has_holes(filled: usize, left: usize) -> bool {
    filled > left + left / 4
}

/// A chunk that bodies are put into.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    /// Its number; `None` as long as there is none.
    number: Option<u32>,
    /// Bytes that it still takes.
    room: usize,
    /// Bodies that it still takes.
    left: usize,
}

/// A chunk that is to be emptied.
pub(super) struct Thin {
    /// Its number, which no other chunk gets before [`Bodies::release`].
    pub number: u32,
    /// The pages of the store whose messages may have bodies in it.
    pub pages: SmallVec<[u64; 2]>,
    bytes: Vec<u8>,
}

/// All bodies of a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies {
    chunks: Slots<Chunk, NEIGHBOURS>,
    /// Where the bodies of new messages go.
    fresh: Open,
    /// Where those go that have stayed while others of their chunk left.
    moved: Open,
    /// Bytes of all bodies.
    live: usize,
    /// Bytes that chunks have allocated.
    taken: usize,
    /// Bytes of bodies in full chunks, whether they are still there ...
    filled: usize,
    /// ... or are.
    left: usize,
    /// The next chunk to look at when one is to be emptied.
    cursor: usize,
}

impl Bodies {
    /// What lies there, of which the id takes so many bytes. O(1).
    #[inline]
    pub fn get(&self, body: Body, id_len: usize) -> Content<'_> {
        let bytes = self.chunks.get(body.chunk() as usize);
        let bytes = bytes.map_or(&[][..], |chunk| &chunk.bytes);
        content(bytes, body, id_len)
    }

    /// Takes in what a message of this page carries. O(1), but for bytes that are
    /// copied.
    pub fn add(&mut self, page: u64, content: Content) -> Body {
        let len = content.len();
        if len == 0 {
            return Body::nowhere(0);
        }
        self.live += len;
        if len * PIECES > self.chunk_size() {
            let mut chunk = Chunk::default();
            chunk.put(page, content);
            self.taken += chunk.taken();
            return Body::alone(self.chunks.add(chunk) as u32, content.payload.len());
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
            content,
        );
        Body::shared(chunk, at, content.payload.len())
    }

    /// A message with an id of so many bytes no longer has its body. O(1).
    pub fn remove(&mut self, body: Body, id_len: usize) {
        let number = body.chunk();
        let Some(chunk) = self.chunks.get_mut(number as usize) else {
            return;
        };
        let len = id_len + body.payload_len();
        chunk.live -= len;
        self.live -= len;
        let is_over = chunk.live == 0;
        if !body.is_alone() && !self.is_open(number) {
            self.left -= len;
        }
        if is_over {
            self.empty(number, body.is_alone());
        }
        if self.live == 0 && self.chunks.end() > MANY {
            // What was known of each of them goes with the last body.
            *self = Bodies::default();
        }
    }

    /// Begins to empty a chunk, if one is to be and is found soon: the bodies that are
    /// left in it are to go through [`Bodies::transfer`].
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

    /// Moves a body out of a chunk, of a message of this page whose id takes so many
    /// bytes; where it lies then.
    pub fn transfer(&mut self, thin: &Thin, page: u64, body: Body, id_len: usize) -> Body {
        let content = content(&thin.bytes, body, id_len);
        if content.len() > self.moved.room || self.moved.left == 0 {
            let moved = std::mem::take(&mut self.moved);
            self.moved = self.open_behind(moved);
        }
        let (chunk, at) = put(
            &mut self.chunks,
            &mut self.taken,
            &mut self.moved,
            page,
            content,
        );
        Body::shared(chunk, at, content.payload.len())
    }

    /// Lets a chunk go that was emptied.
    pub fn release(&mut self, thin: Thin) {
        self.chunks.remove(thin.number as usize);
    }

    /// Lets some chunks go, whatever is in them; whether there were any. For freeing
    /// them in slices: they are of no other use afterwards.
    pub fn drop_some(&mut self) -> bool {
        let any = self.chunks.end() > 0;
        self.chunks.drop_last_page();
        any
    }

    /// Checks that so many bytes are counted, and that there are no more holes.
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
        // A body that has a chunk for itself counts in neither.
        assert_eq!(self.filled - self.left, filled - left);
        let (filled, left) = (self.filled, self.left);
        assert!(!has_holes(filled, left), "{left} of {filled}");
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        self.taken + self.chunks.memory_bytes()
    }

    /// How large chunks are now.
    fn chunk_size(&self) -> usize {
        (self.live / SHARE).clamp(SMALL, LARGE)
    }

    fn is_open(&self, number: u32) -> bool {
        [self.fresh.number, self.moved.number].contains(&Some(number))
    }

    /// Nothing is left of a chunk: it goes, or is filled anew.
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

    /// Another chunk, when this one is full.
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

/// Puts a body into an open chunk that has room for it; its number, and where the
/// body begins.
#[inline]
fn put(
    chunks: &mut Slots<Chunk, NEIGHBOURS>,
    taken: &mut usize,
    open: &mut Open,
    page: u64,
    content: Content,
) -> (u32, usize) {
    let number = open.number.unwrap_or_default();
    let Some(chunk) = chunks.get_mut(number as usize) else {
        return (number, 0);
    };
    open.room -= content.len();
    open.left -= 1;
    let at = chunk.bytes.len();
    let is_roomy =
        chunk.bytes.capacity() - at >= content.len() && chunk.pages.last() == Some(&page);
    if is_roomy {
        chunk.put(page, content);
    } else {
        *taken -= chunk.taken();
        chunk.put(page, content);
        *taken += chunk.taken();
    }
    (number, at)
}

/// A body among the bytes of its chunk.
#[inline]
fn content(bytes: &[u8], body: Body, id_len: usize) -> Content<'_> {
    let from = body.begin();
    let middle = from + id_len;
    Content {
        id: bytes.get(from..middle).filter(|id| !id.is_empty()),
        payload: bytes
            .get(middle..middle + body.payload_len())
            .unwrap_or_default(),
    }
}
