//! Queues and operations as bytes, and back. No Redis in here.
//!
//! [`record`] is what is replicated for each operation, where its [`command`] would
//! not say all; [`snapshot`] what a whole queue is saved as; [`value`] makes both what
//! the server asks of a data type. Input may come from anyone: everything is checked while it is
//! read, and memory is taken for what is there, never for what is claimed.

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
