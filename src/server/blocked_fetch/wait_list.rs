//! The wait lists: which clients wait for messages of which queue, and which lists are to be served.
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
use crate::server::Address;

/// A client that is blocked in a FETCH or MFETCH.
pub struct BlockedFetch {
    /// What it asked for.
    pub(super) request: Request,
    class: Class,
    db: i32,
    keys: Vec<Rc<[u8]>>,
    /// 0 before it is in the wait lists, and afterwards.
    ticket: Cell<Ticket>,
    handle: OnceCell<Handle>,
}

impl BlockedFetch {
    /// A client that is about to be blocked on these queues.
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

    /// Adds the client, which is blocked now, at the end of the wait lists of its queues.
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

    /// The way to answer it, as long as it waits.
    pub fn handle(&self) -> Option<&Handle> {
        self.handle.get().filter(|handle| !handle.is_over())
    }
}

/// The wait list of one queue, and how far it is served.
#[derive(Default)]
struct WaitList {
    clients: Classes<Rc<BlockedFetch>>,
    /// Whether it is to be served, and therefore is in [`WaitLists::scheduled`].
    is_scheduled: bool,
    /// Whether it must be served again from its beginning, because the queue has changed since
    /// that was last done.
    again: bool,
    /// The last ticket that was tried when a slice ended.
    tried: Ticket,
}

#[derive(Default)]
struct WaitLists {
    by_db: HashMap<i32, HashMap<Rc<[u8]>, WaitList>>,
    /// The last ticket that was given out.
    last: Ticket,
    /// The lists that are to be served. Some may have been served since.
    scheduled: VecDeque<Address>,
}

impl WaitLists {
    fn get(&self, db: i32, key: &[u8]) -> Option<&WaitList> {
        self.by_db.get(&db)?.get(key)
    }

    fn get_mut(&mut self, db: i32, key: &[u8]) -> Option<&mut WaitList> {
        self.by_db.get_mut(&db)?.get_mut(key)
    }

    /// Schedules a list to be served. Returns whether it was not scheduled before.
    fn put_up(&mut self, db: i32, key: &[u8]) -> bool {
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

/// The number of blocked clients, so that nothing is looked up while there are none.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The number of scheduled lists, so that asking whether there is one costs nothing.
static SCHEDULED: AtomicUsize = AtomicUsize::new(0);

/// The number of clients that wait for messages, over all queues.
#[inline]
pub fn all() -> usize {
    WAITING.load(Relaxed)
}

/// The number of clients that wait for messages of a queue.
pub fn count(db: i32, key: &[u8]) -> usize {
    WAIT_LISTS.with_borrow(|lists| lists.get(db, key).map_or(0, |list| list.clients.len()))
}

/// Schedules a queue's wait list, because there may be messages for it: it is served before the
/// server sleeps next. O(1) for any number of clients.
pub fn schedule(db: i32, key: &[u8]) {
    if WAITING.load(Relaxed) > 0 {
        let is_new = WAIT_LISTS.with_borrow_mut(|lists| {
            let list = lists.get_mut(db, key);
            let is_there = list.map(|list| list.again = true);
            is_there.is_some() && lists.put_up(db, key)
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
pub fn next_scheduled() -> Option<Address> {
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

/// Unschedules all lists: this server may deliver nothing.
pub fn unschedule_all() {
    while let Some((db, key)) = next_scheduled() {
        WAIT_LISTS.with_borrow_mut(|lists| {
            if let Some(list) = lists.get_mut(db, &key) {
                list.tried = 0;
                list.again = false;
            }
        });
    }
}

/// Begins to serve a list, or goes on where the last slice ended. Returns the last ticket that
/// was tried.
pub fn begin(db: i32, key: &[u8]) -> Ticket {
    WAIT_LISTS.with_borrow_mut(|lists| {
        lists.get_mut(db, key).map_or(0, |list| {
            list.is_scheduled = false;
            if list.tried == 0 {
                list.again = false;
            }
            list.tried
        })
    })
}

/// The client of a list to try after the ticket `tried`.
pub fn next_client(db: i32, key: &[u8], tried: Ticket) -> Option<(Ticket, Rc<BlockedFetch>)> {
    WAIT_LISTS.with_borrow(|lists| {
        let (ticket, client) = lists.get(db, key)?.clients.next(tried)?;
        Some((ticket, Rc::clone(client)))
    })
}

/// Ends the serving of a list for now. With `tried`, some clients were not tried: serving goes on
/// after this ticket. Without it, serving begins anew if the queue has changed since it began.
pub fn end(db: i32, key: &[u8], tried: Option<Ticket>) {
    let is_new = WAIT_LISTS.with_borrow_mut(|lists| {
        let Some(list) = lists.get_mut(db, key) else {
            return false;
        };
        list.tried = tried.unwrap_or(0);
        (tried.is_some() || list.again) && lists.put_up(db, key)
    });
    if is_new {
        event_loop::turn_again();
    }
}
