//! Reading a queue: the data of GET, LIST, PEEK, EXPLAIN, INFO and GROUPS.

mod batch_counts;
pub(in crate::queue) mod counts;
pub mod cursor;
pub mod explain;
mod explanation;
pub mod find;
pub mod groups;
pub mod list;
pub(in crate::queue) mod pages;
pub(in crate::queue) mod peek;
mod peek_limits;
pub mod view;
pub mod walk;
