//! Removing messages: PURGE, and freeing the parts that it removes as a whole.

pub(in crate::queue) mod garbage;
mod purge;
