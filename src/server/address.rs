//! The address of a queue.

use std::rc::Rc;

/// The address of a queue: the database, and the name of the key.
pub type QueueAddress = (i32, Rc<[u8]>);
