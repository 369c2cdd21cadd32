//! What a message carries, and where that lies.

/// What a message carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// The id, if one was given, which is not empty then.
    pub id: Option<&'a [u8]>,
    /// What was sent, byte for byte.
    pub payload: &'a [u8],
}

impl Content<'_> {
    /// Bytes of both.
    pub fn len(&self) -> usize {
        self.id.map_or(0, <[u8]>::len) + self.payload.len()
    }
}

/// Where what a message carries lies, and how long its payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// The number of its chunk, and whether it has that for itself.
    chunk: u32,
    /// Where it begins, or the upper half of its length where that is 0.
    at: u16,
    /// The length of the payload, or the lower half of it.
    len: u16,
}

impl Body {
    const ALONE: u32 = 1 << 31;

    /// Where a payload of so many bytes is that lies nowhere yet.
    pub fn nowhere(payload_len: usize) -> Body {
        Body::alone(!Body::ALONE, payload_len)
    }

    /// That of a payload of so many bytes, at most 2^32-1, which with its id has a
    /// chunk for itself.
    pub fn alone(chunk: u32, payload_len: usize) -> Body {
        Body {
            chunk: chunk | Body::ALONE,
            at: (payload_len >> 16) as u16,
            len: payload_len as u16,
        }
    }

    /// That of a payload which with its id lies among others. Chunks of several are
    /// so small that two bytes hold both numbers.
    pub fn shared(chunk: u32, at: usize, payload_len: usize) -> Body {
        Body {
            chunk,
            at: at as u16,
            len: payload_len as u16,
        }
    }

    /// Whether it has its chunk for itself.
    pub fn is_alone(self) -> bool {
        self.chunk & Body::ALONE != 0
    }

    /// The number of its chunk.
    pub fn chunk(self) -> u32 {
        self.chunk & !Body::ALONE
    }

    /// Whether it lies in this chunk, which is one of several bodies.
    pub fn is_among_others_of(self, chunk: u32) -> bool {
        self.chunk == chunk
    }

    /// Where it begins in its chunk.
    pub fn begin(self) -> usize {
        match self.is_alone() {
            true => 0,
            false => self.at.into(),
        }
    }

    /// Bytes of the payload.
    pub fn payload_len(self) -> usize {
        let high = if self.is_alone() { self.at } else { 0 };
        usize::from(high) << 16 | usize::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_tells_its_length_wherever_it_lies() {
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
