//! The id and payload of a message, and where they are stored.

/// The id and payload of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// The id that the sender gave, if any. Never empty.
    pub id: Option<&'a [u8]>,
    /// The payload, byte for byte as sent.
    pub payload: &'a [u8],
}

impl Content<'_> {
    /// Bytes of id and payload together.
    pub fn len(&self) -> usize {
        self.id.map_or(0, <[u8]>::len) + self.payload.len()
    }
}

/// The location of a message's id and payload, and the length of the payload. Eight
/// bytes.
///
/// The id comes first; its length is kept in the message. `store/bodies.rs` manages
/// the chunks of memory that this refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// The number of the chunk. The top bit is set if the body has the chunk for
    /// itself.
    chunk: u32,
    /// In a shared chunk the offset of the body; in a chunk of its own, where the
    /// offset is 0, the upper half of the payload's length.
    at: u16,
    /// The length of the payload, or the lower half of it in a chunk of its own.
    len: u16,
}

impl Body {
    const ALONE: u32 = 1 << 31;

    /// The location of a payload of this length that is not stored yet.
    pub fn nowhere(payload_len: usize) -> Body {
        Body::alone(!Body::ALONE, payload_len)
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

    /// Whether the body has its own chunk.
    pub fn is_alone(self) -> bool {
        self.chunk & Body::ALONE != 0
    }

    /// The number of the chunk.
    pub fn chunk(self) -> u32 {
        self.chunk & !Body::ALONE
    }

    /// Whether the body is in this chunk, which is a shared one.
    pub fn is_among_others_of(self, chunk: u32) -> bool {
        self.chunk == chunk
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
    }
}
