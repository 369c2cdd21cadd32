//! The id that a sender gave a message, in either form in which it is stored.

use uuid::Uuid;

use super::id::{uuid_text, Id, GENERATED_LEN};

/// An id that a sender gave.
#[derive(Debug, Clone, Copy)]
pub enum GivenId<'a> {
    /// Byte for byte as it was given. Never empty.
    Text(&'a [u8]),
    /// The bytes of a UUID, which was given as text.
    Uuid(&'a [u8; 16]),
}

impl<'a> GivenId<'a> {
    /// The length of its text in bytes.
    pub fn len(self) -> usize {
        match self {
            GivenId::Text(text) => text.len(),
            GivenId::Uuid(_) => GENERATED_LEN,
        }
    }

    /// The id as it was given.
    #[inline]
    pub fn id(self) -> Id<'a> {
        match self {
            GivenId::Text(text) => Id::Given(text),
            GivenId::Uuid(bytes) => Id::Uuid(uuid_text(bytes)),
        }
    }

    /// The bytes of a UUID whose text in lower case it is.
    pub fn uuid(self) -> Option<[u8; 16]> {
        match self {
            GivenId::Uuid(bytes) => Some(*bytes),
            GivenId::Text(text) => {
                let bytes = Uuid::try_parse_ascii(text).ok()?.into_bytes();
                (uuid_text(&bytes) == text).then_some(bytes)
            }
        }
    }
}

impl PartialEq for GivenId<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for GivenId<'_> {}
