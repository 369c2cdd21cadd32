//! Removing messages: PURGE, and the freeing of what it removes as a whole.

pub(super) mod garbage;
mod purge;
