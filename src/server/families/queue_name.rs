//! The name of a queue of a family, which is opened by it again and again.

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use crate::redis::{Name, OwnedName};
use dq_queue::family;

/// The name of a queue, shared by all users of the name.
#[derive(Clone)]
pub struct QueueName(Rc<Inner>);

struct Inner {
    bytes: Box<[u8]>,
    /// The name as a string of the server. It is kept because making it for each NFETCH would take
    /// two allocations.
    of_server: OnceCell<OwnedName>,
    slot: OnceCell<u32>,
}

impl QueueName {
    /// The bytes of the name.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The name as the server wants it to open the queue.
    pub fn name(&self) -> Name<'_> {
        let bytes = || OwnedName::new(self.bytes());
        self.0.of_server.get_or_init(bytes).name()
    }

    /// The hash slot of the queue.
    pub fn slot(&self) -> u32 {
        let slot = || family::slot_of_queue(self.bytes());
        *self.0.slot.get_or_init(slot)
    }
}

impl From<&[u8]> for QueueName {
    fn from(bytes: &[u8]) -> Self {
        QueueName(Rc::new(Inner {
            bytes: bytes.into(),
            of_server: OnceCell::new(),
            slot: OnceCell::new(),
        }))
    }
}

impl Borrow<[u8]> for QueueName {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl PartialEq for QueueName {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for QueueName {}

impl Hash for QueueName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}
