//! A body as bytes: the id, then the payload as it was sent, or how it is packed and its frame.

use smallvec::SmallVec;

use crate::message::body::{Body, Content};
use crate::message::packing::Payload;

/// The bits of a number in each byte of the length of a frame.
const BITS: u32 = 7;

/// The bytes of a body that is to be stored.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    /// The id, the head of a packed payload, and the payload or its frame.
    pub parts: [&'a [u8]; 3],
}

/// The number of the dictionary and the length of the frame, if a payload is packed.
pub(super) type Head = SmallVec<[u8; 4]>;

/// The head of a payload; empty if it is not packed.
pub(super) fn head(payload: Payload) -> Head {
    let mut head = Head::new();
    if let Payload::Packed(packed) = payload {
        head.push(packed.number);
        let mut len = packed.frame.len();
        while len >> BITS > 0 {
            head.push(len as u8 | 1 << BITS);
            len >>= BITS;
        }
        head.push(len as u8);
    }
    head
}

impl<'a> Stored<'a> {
    pub fn of(content: Content<'a>, head: &'a Head) -> Stored<'a> {
        let payload = match content.payload {
            Payload::Plain(bytes) => bytes,
            Payload::Packed(packed) => packed.frame,
        };
        Stored {
            parts: [content.id.unwrap_or_default(), head, payload],
        }
    }

    /// Bytes of the body.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// A body in the bytes of its chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    /// The id; empty if none was given.
    pub id: &'a [u8],
    /// The payload as it was sent, or its frame.
    pub payload: &'a [u8],
    /// The number of the dictionary with which the payload is packed.
    pub number: Option<u8>,
    /// Bytes of the whole body.
    pub len: usize,
}

/// Finds a body in the bytes of its chunk.
#[inline]
pub(super) fn find(bytes: &[u8], body: Body, id_len: usize) -> Found<'_> {
    let from = body.begin();
    let middle = from + id_len;
    let id = bytes.get(from..middle).unwrap_or_default();
    if body.is_packed() {
        return find_packed(bytes, id, middle);
    }
    let len = body.payload_len();
    Found {
        id,
        payload: bytes.get(middle..middle + len).unwrap_or_default(),
        number: None,
        len: id_len + len,
    }
}

#[inline(never)]
fn find_packed<'a>(bytes: &'a [u8], id: &'a [u8], middle: usize) -> Found<'a> {
    let (mut len, mut at) = (0, middle + 1);
    for shift in 0.. {
        let byte = bytes.get(at).copied().unwrap_or_default();
        at += 1;
        len |= usize::from(byte & !(1 << BITS)) << (shift * BITS);
        if byte >> BITS == 0 {
            break;
        }
    }
    Found {
        id,
        payload: bytes.get(at..at + len).unwrap_or_default(),
        number: bytes.get(middle).copied(),
        len: id.len() + at - middle + len,
    }
}
