//! A body as bytes: the id, then the payload as it was sent; or, where that is packed, how it is, then
//! the id, then its packed form.

use smallvec::SmallVec;

use crate::message::body::{Body, Content};
use crate::message::given::GivenId;
use crate::message::packing::{put_length, take_length, Payload};

/// The bit above the number of the dictionary which says that the id is stored as the bytes of a UUID.
const UUID: u8 = 1 << 7;
/// The bytes in front of a packed payload without its id: the number of the dictionary and the length,
/// if that is short.
const HEAD: usize = 2;

/// The bytes of a body that is to be stored.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    /// The head, the id unless that is in it, and the payload or its packed form.
    pub parts: [&'a [u8]; 3],
}

/// The bytes in front of a body that are not there as such: of a packed payload the number of the
/// dictionary, the length of the packed form, and the id if it is a UUID.
pub(super) type Head = SmallVec<[u8; 64]>;

/// The head of a body.
#[inline]
pub(super) fn head(content: Content) -> Head {
    match (content.payload, content.id) {
        (Payload::Packed(packed), id) => {
            let mut head = Head::new();
            let uuid = id.and_then(GivenId::uuid);
            head.push(packed.number | if uuid.is_some() { UUID } else { 0 });
            put_length(&mut head, packed.bytes.len());
            head.extend(uuid.into_iter().flatten());
            head
        }
        (Payload::Plain(_), Some(id @ GivenId::Uuid(_))) => id.id().as_bytes().into(),
        (Payload::Plain(_), _) => Head::new(),
    }
}

/// The bytes that a packed payload takes.
pub(super) fn kept(packed: &[u8]) -> usize {
    HEAD + packed.len()
}

impl<'a> Stored<'a> {
    #[inline]
    pub fn of(content: Content<'a>, head: &'a Head) -> Stored<'a> {
        let payload = match content.payload {
            Payload::Plain(bytes) => bytes,
            Payload::Packed(packed) => packed.bytes,
        };
        let is_in_head = head.first().is_some_and(|first| first & UUID != 0);
        let id = match content.id {
            Some(GivenId::Text(id)) if !is_in_head => id,
            _ => &[],
        };
        Stored {
            parts: [head, id, payload],
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
    /// The id, if one was given.
    pub id: Option<GivenId<'a>>,
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
    if body.is_packed() {
        return find_packed(bytes.get(from..).unwrap_or_default(), id_len);
    }
    let middle = from + id_len;
    let id = bytes.get(from..middle).unwrap_or_default();
    let len = body.payload_len();
    Found {
        id: (id_len > 0).then_some(GivenId::Text(id)),
        payload: bytes.get(middle..middle + len).unwrap_or_default(),
        number: None,
        len: id_len + len,
    }
}

#[inline(never)]
fn find_packed(bytes: &[u8], id_len: usize) -> Found<'_> {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (len, rest) = take_length(rest).unwrap_or_default();
    let (id, rest) = match first & UUID {
        0 => {
            let (id, rest) = rest.split_at_checked(id_len).unwrap_or_default();
            ((id_len > 0).then_some(GivenId::Text(id)), rest)
        }
        _ => match rest.split_first_chunk() {
            Some((id, rest)) => (Some(GivenId::Uuid(id)), rest),
            None => (None, rest),
        },
    };
    Found {
        id,
        payload: rest.get(..len).unwrap_or_default(),
        number: Some(first & !UUID),
        len: bytes.len() - rest.len() + len,
    }
}
