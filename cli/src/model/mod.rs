//! What the server told, as values: no connection here but in `keys` and in
//! the functions that are named `fetch`.

pub mod group;
pub mod keys;
pub mod message;
pub mod queue;
pub mod record;
