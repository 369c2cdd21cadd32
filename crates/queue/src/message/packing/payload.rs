//! A payload as it is stored: as it was sent, or packed.

use std::borrow::Cow;
use std::sync::Arc;

use super::Dictionary;
use crate::message::given::GivenId;
use crate::message::id::Id;

/// A payload.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// Byte for byte as sent.
    Plain(&'a [u8]),
    /// Packed with a dictionary.
    Packed(Packed<'a>),
}

/// A packed payload.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    /// The packed bytes.
    pub bytes: &'a [u8],
    /// The id that the sender gave the message. Unpacking needs it.
    pub own: Option<GivenId<'a>>,
    /// The length of the payload in bytes.
    pub len: usize,
    /// The number of the dictionary in its queue.
    pub number: u8,
    /// The dictionary.
    pub dictionary: &'a Arc<Dictionary>,
}

impl<'a> Payload<'a> {
    /// Bytes of the payload as it was sent.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Payload::Plain(bytes) => bytes.len(),
            Payload::Packed(packed) => packed.len,
        }
    }

    /// The payload byte for byte as it was sent.
    #[inline]
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Payload::Plain(bytes) => Cow::Borrowed(bytes),
            Payload::Packed(packed) => {
                // It was packed here, or unpacked once when it was loaded.
                let unpacked = packed.unpack();
                debug_assert!(unpacked.is_some(), "{packed:?}");
                Cow::Owned(unpacked.unwrap_or_default())
            }
        }
    }
}

impl Packed<'_> {
    /// The payload; `None` if the bytes are damaged.
    pub fn unpack(&self) -> Option<Vec<u8>> {
        let own = self.own.map(GivenId::id);
        let own = own.as_ref().map(Id::as_bytes);
        self.dictionary.unpack(self.bytes, own, self.len)
    }
}

impl Default for Payload<'_> {
    fn default() -> Self {
        Payload::Plain(&[])
    }
}

impl PartialEq for Payload<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Payload<'_> {}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Payload<'a> {
        Payload::Plain(bytes)
    }
}
