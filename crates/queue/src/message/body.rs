//! The id and payload of a message, and where they are stored.

use super::given::GivenId;
use super::packing::Payload;

/// The id and payload of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// The id that the sender gave, if any.
    pub id: Option<GivenId<'a>>,
    /// The payload.
    pub payload: Payload<'a>,
}

/// The location of a message's id and payload, and the length of the payload. Eight
/// bytes.
///
/// The id comes first; its length is kept in the message. `store/bodies.rs` manages
/// the chunks of memory that this refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// The number of the chunk. The top bit is set if the body has the chunk for
    /// itself, the next one if the payload is packed.
    chunk: u32,
    /// In a shared chunk the offset of the body; in a chunk of its own, where the
    /// offset is 0, the upper half of the payload's length.
    at: u16,
    /// The length of the payload, or the lower half of it in a chunk of its own.
    len: u16,
}

impl Body {
    const ALONE: u32 = 1 << 31;
    const PACKED: u32 = 1 << 30;
    const CHUNK: u32 = Body::PACKED - 1;

    /// The location of a payload of this length that is not stored yet.
    pub fn nowhere(payload_len: usize) -> Body {
        Body::alone(Body::CHUNK, payload_len)
    }

    /// The location of a body that has its own chunk. `payload_len` is at most 2^32 - 1
    /// bytes.
    pub fn alone(chunk: u32, payload_len: usize) -> Body {
        Body {
            chunk: chunk | Body::ALONE,
            at: (payload_len >> 16) as u16,
            len: payload_len as u16,
        }
    }

    /// The location of a body in a chunk with others. Shared chunks are so small
    /// that two bytes hold each of offset and length.
    pub fn shared(chunk: u32, at: usize, payload_len: usize) -> Body {
        Body {
            chunk,
            at: at as u16,
            len: payload_len as u16,
        }
    }

    /// The same location with a packed payload behind the id, or a plain one. The length
    /// is that of the payload as it was sent.
    pub fn with_packed(self, is_packed: bool) -> Body {
        let bit = if is_packed { Body::PACKED } else { 0 };
        Body {
            chunk: self.chunk & !Body::PACKED | bit,
            ..self
        }
    }

    /// Whether the payload is packed.
    pub fn is_packed(self) -> bool {
        self.chunk & Body::PACKED != 0
    }

    /// Whether the body has its own chunk.
    pub fn is_alone(self) -> bool {
        self.chunk & Body::ALONE != 0
    }

    /// The number of the chunk.
    pub fn chunk(self) -> u32 {
        self.chunk & Body::CHUNK
    }

    /// Whether the body is in this chunk, which is a shared one.
    pub fn is_among_others_of(self, chunk: u32) -> bool {
        self.chunk & !Body::PACKED == chunk
    }

    /// The offset of the body in its chunk, in bytes.
    pub fn begin(self) -> usize {
        match self.is_alone() {
            true => 0,
            false => self.at.into(),
        }
    }

    /// The length of the payload, in bytes.
    pub fn payload_len(self) -> usize {
        let high = if self.is_alone() { self.at } else { 0 };
        usize::from(high) << 16 | usize::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_chunk_offset_and_length_in_every_form() {
        for len in [0, 1, 0xffff, 0x1_0000, 0xffff_ffff] {
            let bodies = [Body::nowhere(len), Body::alone(7, len)];
            assert_eq!(bodies.map(Body::payload_len), [len, len]);
            assert_eq!(bodies.map(Body::begin), [0, 0]);
        }
        let body = Body::shared(7, 0xffff, 0xffff);
        let told = (body.chunk(), body.begin(), body.payload_len());
        assert_eq!(told, (7, 0xffff, 0xffff));
        assert_eq!(Body::alone(7, 3).chunk(), 7);
        for body in [body, Body::alone(7, 0x1_0007)] {
            let packed = body.with_packed(true);
            assert!(packed.is_packed() && packed.chunk() == 7);
            assert_eq!(packed.is_alone(), body.is_alone());
            assert_eq!(packed.is_among_others_of(7), body.is_among_others_of(7));
            assert_eq!(packed.payload_len(), body.payload_len());
            assert_eq!(packed.with_packed(false), body);
        }
    }
}
