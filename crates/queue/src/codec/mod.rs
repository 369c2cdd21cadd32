//! Encodes queues and operations as bytes, and decodes them.
//!
//! A [`log_entry`] is what is replicated for an operation, unless its command can be
//! replicated as it is: [`verbatim`] tells when. A `snapshot` is a whole queue.
//! `value` offers both in the form in which the server asks for them, and
//! [`restore`] puts a queue together whose snapshot comes in parts.
//!
//! Input may come from anyone: everything is checked while it is read, and
//! memory is allocated for what is there, never for what a length claims.

pub mod bounds;
pub mod effect;
pub mod log_entry;
pub mod verbatim;

mod operation;
mod options;
pub mod restore;
mod snapshot;
#[cfg(test)]
mod tests;
mod value;
mod wire;

pub use snapshot::read::Decoder;
