//! The wait lists: which clients wait for messages of which queue, and which lists must be served.
//!
//! Wait lists are keyed by (db, key), so a client can wait for a queue that does not exist yet.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::redis::blocking::Handle;
use crate::redis::event_loop;

use super::classes::{Class, Classes, Ticket};
use super::Request;
use crate::server::QueueAddress;

/// A client that is blocked in a FETCH or MFETCH.
pub struct BlockedFetch {
    /// What the client asked for.
    pub(super) request: Request,
    class: Class,
    db: i32,
    keys: Vec<Rc<[u8]>>,
    /// Its position. 0 while it is not in the wait lists.
    ticket: Cell<Ticket>,
    handle: OnceCell<Handle>,
}

impl BlockedFetch {
    /// Makes the state of a client that is about to be blocked on these queues.
    pub(super) fn new(
        request: Request,
        db: i32,
        keys: impl Iterator<Item = Rc<[u8]>>,
    ) -> Rc<BlockedFetch> {
        Rc::new(BlockedFetch {
            class: request.class(),
            request,
            db,
            keys: keys.collect(),
            ticket: Cell::new(0),
            handle: OnceCell::new(),
        })
    }

    /// Adds the client, which is blocked now, to the end of the wait lists of its queues.
    /// O(keys * log n).
    pub fn join(self: &Rc<Self>, handle: Handle) {
        if self.handle.set(handle).is_err() {
            return;
        }
        WAIT_LISTS.with_borrow_mut(|lists| {
            lists.last += 1;
            self.ticket.set(lists.last);
            let of_db = lists.by_db.entry(self.db).or_default();
            for key in &self.keys {
                let list = of_db.entry(Rc::clone(key)).or_default();
                let member = Rc::clone(self);
                list.clients.join(self.class.clone(), lists.last, member);
            }
        });
        WAITING.fetch_add(1, Relaxed);
    }

    /// Removes the client from all wait lists. O(keys * log n).
    pub fn leave(&self) {
        let ticket = self.ticket.replace(0);
        if ticket == 0 {
            return;
        }
        WAIT_LISTS.with_borrow_mut(|lists| {
            let Some(of_db) = lists.by_db.get_mut(&self.db) else {
                return;
            };
            for key in &self.keys {
                let Some(list) = of_db.get_mut(&**key) else {
                    continue;
                };
                list.clients.leave(&self.class, ticket);
                if list.clients.is_empty() {
                    of_db.remove(&**key);
                }
            }
        });
        WAITING.fetch_sub(1, Relaxed);
    }

    /// The handle to answer the client, as long as it waits.
    pub fn handle(&self) -> Option<&Handle> {
        self.handle.get().filter(|handle| !handle.is_over())
    }
}

/// The wait list of one queue, and how far it has been served.
#[derive(Default)]
struct WaitList {
    clients: Classes<Rc<BlockedFetch>>,
    /// Whether it must be served, and so is in [`WaitLists::scheduled`].
    is_scheduled: bool,
    /// Whether it must be served again from its beginning, because the queue has changed since it
    /// was last served from there.
    must_restart: bool,
    /// The last ticket that was tried when the last slice ended. 0: the list was served to its end.
    tried: Ticket,
}

#[derive(Default)]
struct WaitLists {
    by_db: HashMap<i32, HashMap<Rc<[u8]>, WaitList>>,
    /// The last ticket that was given out.
    last: Ticket,
    /// The lists that must be served. Some of them may have been served since.
    scheduled: VecDeque<QueueAddress>,
}

impl WaitLists {
    fn get(&self, db: i32, key: &[u8]) -> Option<&WaitList> {
        self.by_db.get(&db)?.get(key)
    }

    fn get_mut(&mut self, db: i32, key: &[u8]) -> Option<&mut WaitList> {
        self.by_db.get_mut(&db)?.get_mut(key)
    }

    /// Schedules a list to be served. Returns whether it exists and was not scheduled before.
    fn schedule(&mut self, db: i32, key: &[u8]) -> bool {
        let Some(list) = self.get_mut(db, key) else {
            return false;
        };
        let is_new = !std::mem::replace(&mut list.is_scheduled, true);
        if is_new {
            self.scheduled.push_back((db, key.into()));
            SCHEDULED.store(self.scheduled.len(), Relaxed);
        }
        is_new
    }
}

thread_local! {
    static WAIT_LISTS: RefCell<WaitLists> = RefCell::default();
}

/// The number of clients in the wait lists, so that nothing is looked up while there are none.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The number of scheduled lists, so that checking for one costs nothing.
static SCHEDULED: AtomicUsize = AtomicUsize::new(0);

/// The number of clients that wait for messages, over all queues.
#[inline]
pub fn total() -> usize {
    WAITING.load(Relaxed)
}

/// The number of clients that wait for messages of a queue.
pub fn count(db: i32, key: &[u8]) -> usize {
    WAIT_LISTS.with_borrow(|lists| lists.get(db, key).map_or(0, |list| list.clients.len()))
}

/// Schedules a queue's wait list, because there may be messages for its clients. It is served
/// before the server sleeps next. O(1) for any number of clients.
pub fn schedule(db: i32, key: &[u8]) {
    if WAITING.load(Relaxed) > 0 {
        let is_new = WAIT_LISTS.with_borrow_mut(|lists| {
            let list = lists.get_mut(db, key);
            let is_there = list.map(|list| list.must_restart = true);
            is_there.is_some() && lists.schedule(db, key)
        });
        if is_new {
            event_loop::turn_again();
        }
    }
}

/// Whether any list is scheduled.
#[inline]
pub fn any_scheduled() -> bool {
    SCHEDULED.load(Relaxed) > 0
}

/// Whether the list of this queue is scheduled.
pub fn is_scheduled(db: i32, key: &[u8]) -> bool {
    let of = |lists: &WaitLists| lists.get(db, key).is_some_and(|list| list.is_scheduled);
    any_scheduled() && WAIT_LISTS.with_borrow(of)
}

/// Takes the next scheduled list. Returns the address of its queue.
pub fn next_scheduled() -> Option<QueueAddress> {
    WAIT_LISTS.with_borrow_mut(|lists| {
        while let Some(address) = lists.scheduled.pop_front() {
            SCHEDULED.store(lists.scheduled.len(), Relaxed);
            let list = lists.get_mut(address.0, &address.1);
            if list.is_some_and(|list| std::mem::take(&mut list.is_scheduled)) {
                return Some(address);
            }
        }
        None
    })
}

/// Unschedules all lists, because this server is not a primary and must not deliver.
pub fn unschedule_all() {
    while let Some((db, key)) = next_scheduled() {
        WAIT_LISTS.with_borrow_mut(|lists| {
            if let Some(list) = lists.get_mut(db, &key) {
                list.tried = 0;
                list.must_restart = false;
            }
        });
    }
}

/// Begins to serve a list, or continues where the last slice ended. Returns the last ticket that
/// was tried, or 0.
pub fn begin(db: i32, key: &[u8]) -> Ticket {
    WAIT_LISTS.with_borrow_mut(|lists| {
        lists.get_mut(db, key).map_or(0, |list| {
            list.is_scheduled = false;
            if list.tried == 0 {
                list.must_restart = false;
            }
            list.tried
        })
    })
}

/// The next client of a list to try, if the last ticket that was tried is `tried` (see
/// [`Classes::next`]).
pub fn next_client(db: i32, key: &[u8], tried: Ticket) -> Option<(Ticket, Rc<BlockedFetch>)> {
    WAIT_LISTS.with_borrow(|lists| {
        let (ticket, client) = lists.get(db, key)?.clients.next(tried)?;
        Some((ticket, Rc::clone(client)))
    })
}

/// Stops serving a list for now. With `tried`, some clients were not tried, and serving continues
/// after this ticket later. Without it, all were tried, and serving restarts only if the queue has
/// changed since serving began.
pub fn end(db: i32, key: &[u8], tried: Option<Ticket>) {
    let is_new = WAIT_LISTS.with_borrow_mut(|lists| {
        let Some(list) = lists.get_mut(db, key) else {
            return false;
        };
        list.tried = tried.unwrap_or(0);
        (tried.is_some() || list.must_restart) && lists.schedule(db, key)
    });
    if is_new {
        event_loop::turn_again();
    }
}
