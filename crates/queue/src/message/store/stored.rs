//! A body as bytes: the id, then the payload as it was sent, or how it is packed and its packed form.

use smallvec::SmallVec;

use crate::message::body::{Body, Content};
use crate::message::packing::{put_length, take_length, Payload};

/// The bytes of a body that is to be stored.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    /// The id, the head of a packed payload, and the payload or its packed form.
    pub parts: [&'a [u8]; 3],
}

/// The number of the dictionary and the length of the packed form, if a payload is packed.
pub(super) type Head = SmallVec<[u8; 4]>;

/// The head of a payload; empty if it is not packed.
pub(super) fn head(payload: Payload) -> Head {
    let mut head = Head::new();
    if let Payload::Packed(packed) = payload {
        head.push(packed.number);
        put_length(&mut head, packed.bytes.len());
    }
    head
}

impl<'a> Stored<'a> {
    pub fn of(content: Content<'a>, head: &'a Head) -> Stored<'a> {
        let payload = match content.payload {
            Payload::Plain(bytes) => bytes,
            Payload::Packed(packed) => packed.bytes,
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
    /// The payload as it was sent, or its packed form.
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
    let head = bytes.get(middle + 1..).and_then(take_length);
    let (len, rest) = head.unwrap_or_default();
    Found {
        id,
        payload: rest.get(..len).unwrap_or_default(),
        number: bytes.get(middle).copied(),
        len: bytes.len() - rest.len() - (middle - id.len()) + len,
    }
}
