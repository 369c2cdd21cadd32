//! Replies of the server as values. Only `keys` and the functions named `fetch` use
//! the connection.

pub mod group;
pub mod keys;
pub mod message;
pub mod queue;
pub mod record;
