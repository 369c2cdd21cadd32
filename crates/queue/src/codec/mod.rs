//! Encodes queues and operations as bytes, and decodes them.
//!
//! A [`record`] is the log entry that is replicated for an operation, except
//! where replicating the [`command`] verbatim says as much. A [`snapshot`] is a
//! whole queue. [`value`] offers both in the form in which the server asks for
//! them, and [`restore`] puts a queue together whose snapshot comes in parts.
//!
//! Input may come from anyone: everything is checked while it is read, and
//! memory is allocated for what is there, never for what a length claims.

pub mod command;
mod decode;
mod operation;
mod options;
pub mod record;
pub mod restore;
mod snapshot;
#[cfg(test)]
mod tests;
mod value;
mod wire;

pub use decode::Decoder;
