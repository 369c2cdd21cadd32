//! A client that waits for messages: its request, its queues, and the user whose rights count.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use crate::redis::blocking::Handle;

use super::classes::{Class, Ticket};
use super::Request;
use crate::server::rights::Call;

/// The family that a client waits for.
#[derive(Debug, Clone)]
pub struct OfFamily {
    /// Its name.
    pub name: Rc<[u8]>,
    /// The user whose rights count.
    pub user: Rc<[u8]>,
}

/// A client that is blocked in a FETCH, MFETCH or NFETCH.
pub struct BlockedFetch {
    /// The request of the client.
    pub(in crate::server) request: Request,
    pub(super) class: Class,
    pub(in crate::server) db: i32,
    pub(in crate::server) keys: Vec<Rc<[u8]>>,
    /// The user whose rights count, and the call that it has made.
    pub(in crate::server) user: Rc<[u8]>,
    pub(in crate::server) call: Call,
    /// The family that the client waits for. Then it waits for no keys.
    pub(in crate::server) family: Option<OfFamily>,
    /// The client's position. 0 while it is not in the wait lists.
    pub(super) ticket: Cell<Ticket>,
    pub(super) handle: OnceCell<Handle>,
    /// A client that was blocked later and gets the same reply as this one (see [`twins`]).
    pub(in crate::server) twin: RefCell<Option<Rc<BlockedFetch>>>,
}

impl BlockedFetch {
    /// Makes the state of a client that is about to be blocked on these queues.
    pub(in crate::server) fn new(
        request: Request,
        caller: (Rc<[u8]>, Call),
        db: i32,
        keys: impl Iterator<Item = Rc<[u8]>>,
    ) -> Rc<BlockedFetch> {
        Rc::new(BlockedFetch {
            class: request.class(),
            request,
            db,
            keys: keys.collect(),
            user: caller.0,
            call: caller.1,
            family: None,
            ticket: Cell::new(0),
            handle: OnceCell::new(),
            twin: RefCell::default(),
        })
    }

    /// Makes the state of a client that is about to be blocked on a family.
    pub(in crate::server) fn of_family(
        request: Request,
        db: i32,
        family: OfFamily,
    ) -> Rc<BlockedFetch> {
        Rc::new(BlockedFetch {
            class: Class {
                user: Some(Rc::clone(&family.user)),
                ..request.class()
            },
            request,
            db,
            keys: Vec::new(),
            user: Rc::clone(&family.user),
            call: Call::FamilyFetch,
            family: Some(family),
            ticket: Cell::new(0),
            handle: OnceCell::new(),
            twin: RefCell::default(),
        })
    }

    /// The handle to answer the client, while it waits.
    pub fn handle(&self) -> Option<&Handle> {
        self.handle.get().filter(|handle| !handle.is_over())
    }
}
