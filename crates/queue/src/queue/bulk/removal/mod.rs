//! Removing messages: PURGE, and the freeing of what it removes as a whole.

pub(in crate::queue) mod garbage;
mod purge;
