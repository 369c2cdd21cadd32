//! Payloads that are kept packed while their messages rest.
//!
//! Payloads of one queue look alike, so a dictionary of the queue makes each of them a small part
//! of itself. Nothing of this is seen from outside: a payload is unpacked where it is read, and
//! whether it is packed is a note of this server, which neither replies, digests nor log entries
//! depend on. Snapshots keep payloads packed, with their dictionaries.

mod dictionary;
mod hex;
mod length;
mod payload;
#[cfg(test)]
mod tests;
mod training;

pub use dictionary::{dictionary_bytes, Dictionary};
pub use length::{put_length, take_length};
pub use payload::{Packed, Payload};
pub use training::{train, Samples};

/// The least payload, in bytes, that is packed.
pub const SMALLEST: usize = 64;
/// The largest payload, in bytes, that is packed: more would take a slice too long.
pub const LARGEST: usize = u16::MAX as usize;
/// The most dictionaries that one queue keeps.
pub const DICTIONARIES: usize = 8;
/// The largest dictionary in bytes.
pub const DICTIONARY: usize = 16 << 10;
/// The most bytes that the dictionaries of all queues may take when another is trained.
pub const ALL_DICTIONARIES: usize = 256 << 20;

/// Whether a packed form of this many bytes is worth keeping for a payload of `len` bytes.
pub fn pays(packed: usize, len: usize) -> bool {
    packed <= len - len / 8
}
