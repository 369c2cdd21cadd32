//! The wait lists: which clients wait for messages of which queue, and which lists must be served.
//!
//! Wait lists are keyed by (db, key), so a client can wait for a queue that does not exist yet.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::redis::blocking::Handle;
use crate::redis::event_loop;
use dq_queue::family;

use super::blocked_fetch::BlockedFetch;
use super::classes::{Class, Classes, Ticket};
use super::twins;
use crate::server::address::QueueAddress;

impl BlockedFetch {
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
            if let Some(family) = &self.family {
                let of_db = lists.families.entry(self.db).or_default();
                let clients = of_db.entry(Rc::clone(&family.name)).or_default();
                clients.join(self.class.clone(), lists.last, Rc::clone(self));
                OF_FAMILIES.fetch_add(1, Relaxed);
            }
        });
        WAITING.fetch_add(1, Relaxed);
        twins::joined(self);
    }

    /// Removes the client from all wait lists. O(keys * log n).
    pub fn leave(&self) {
        let ticket = self.ticket.replace(0);
        if ticket == 0 {
            return;
        }
        WAIT_LISTS.with_borrow_mut(|lists| {
            for key in &self.keys {
                if let Some(list) = lists.get_mut(self.db, key) {
                    list.clients.leave(&self.class, ticket);
                    lists.tidy(self.db, key);
                }
            }
            if let Some(family) = &self.family {
                lists.leave_family(self.db, &family.name, &self.class, ticket);
            }
        });
        WAITING.fetch_sub(1, Relaxed);
        twins::left(self);
    }
}

/// The wait list of one queue, and how far it has been served.
#[derive(Default)]
struct WaitList {
    clients: Clients,
    /// Whether it must be served, and so is in [`WaitLists::scheduled`].
    is_scheduled: bool,
    /// Whether it must be served again from its beginning, because the queue has changed since it
    /// was last served from there.
    must_restart: bool,
    /// The last ticket that was tried when the last slice ended. 0: the list was served to its end.
    tried: Ticket,
}

type Clients = Classes<Rc<BlockedFetch>>;

#[derive(Default)]
struct WaitLists {
    by_db: HashMap<i32, HashMap<Rc<[u8]>, WaitList>>,
    /// The clients that wait for a family.
    families: HashMap<i32, HashMap<Rc<[u8]>, Clients>>,
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

    /// The clients that wait for the family of a queue, if it has one.
    fn of_family(&self, db: i32, key: &[u8]) -> Option<&Clients> {
        if OF_FAMILIES.load(Relaxed) == 0 {
            return None;
        }
        self.families.get(&db)?.get(family::of_key(key)?)
    }

    fn leave_family(&mut self, db: i32, name: &[u8], class: &Class, ticket: Ticket) {
        OF_FAMILIES.fetch_sub(1, Relaxed);
        let Some(of_db) = self.families.get_mut(&db) else {
            return;
        };
        if let Some(clients) = of_db.get_mut(name) {
            clients.leave(class, ticket);
            if clients.is_empty() {
                of_db.remove(name);
            }
        }
    }

    /// Drops a list that has no clients and need not be served.
    fn tidy(&mut self, db: i32, key: &[u8]) {
        let Some(of_db) = self.by_db.get_mut(&db) else {
            return;
        };
        let is_over = |list: &WaitList| list.clients.is_empty() && !list.is_scheduled;
        if of_db.get(key).is_some_and(is_over) {
            of_db.remove(key);
        }
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

/// The number of clients that wait for a family.
static OF_FAMILIES: AtomicUsize = AtomicUsize::new(0);
/// The number of clients in the wait lists, so that the map is not searched while there are none.
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

/// Whether any client waits for messages of a queue, or of its family.
pub fn is_awaited(db: i32, key: &[u8]) -> bool {
    WAIT_LISTS.with_borrow(|lists| {
        let list = lists.get(db, key);
        list.is_some_and(|list| !list.clients.is_empty()) || lists.of_family(db, key).is_some()
    })
}

/// The number of clients that wait for messages of a family.
pub fn count_of_family(db: i32, family: &[u8]) -> usize {
    WAIT_LISTS.with_borrow(|lists| {
        let clients = lists.families.get(&db).and_then(|of_db| of_db.get(family));
        clients.map_or(0, Classes::len)
    })
}

/// Whether any client waits for a family.
pub fn any_of_families() -> bool {
    OF_FAMILIES.load(Relaxed) > 0
}

/// All clients that wait for families. O(n).
pub fn all_of_families() -> Vec<Rc<BlockedFetch>> {
    WAIT_LISTS.with_borrow(|lists| {
        let families = lists.families.values().flat_map(HashMap::values);
        families.flat_map(Classes::iter).map(Rc::clone).collect()
    })
}

/// The first client of each class that waits for a family. O(classes).
pub fn first_of_families() -> Vec<Rc<BlockedFetch>> {
    WAIT_LISTS.with_borrow(|lists| {
        let families = lists.families.values().flat_map(HashMap::values);
        families.flat_map(Classes::firsts).map(Rc::clone).collect()
    })
}

/// Schedules a queue's wait list, because there may be messages for its clients. It is served
/// before the server sleeps next. O(1) for any number of clients.
pub fn schedule(db: i32, key: &[u8]) {
    if WAITING.load(Relaxed) > 0 {
        let is_new = WAIT_LISTS.with_borrow_mut(|lists| {
            if lists.of_family(db, key).is_some() && lists.get(db, key).is_none() {
                let of_db = lists.by_db.entry(db).or_default();
                of_db.insert(key.into(), WaitList::default());
            }
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

/// Takes the next scheduled list, if `may_be` holds for the address of its queue, which it returns.
pub fn next_scheduled(may_be: impl Fn(&QueueAddress) -> bool) -> Option<QueueAddress> {
    WAIT_LISTS.with_borrow_mut(|lists| {
        while let Some(address) = lists.scheduled.pop_front() {
            SCHEDULED.store(lists.scheduled.len(), Relaxed);
            let list = lists.get_mut(address.0, &address.1);
            let Some(list) = list.filter(|list| list.is_scheduled) else {
                continue;
            };
            if may_be(&address) {
                list.is_scheduled = false;
                return Some(address);
            }
            lists.scheduled.push_front(address);
            SCHEDULED.store(lists.scheduled.len(), Relaxed);
            return None;
        }
        None
    })
}

/// Unschedules all lists, because this server is not a primary and must not deliver.
pub fn unschedule_all() {
    while let Some((db, key)) = next_scheduled(|_| true) {
        WAIT_LISTS.with_borrow_mut(|lists| {
            if let Some(list) = lists.get_mut(db, &key) {
                list.tried = 0;
                list.must_restart = false;
            }
            lists.tidy(db, &key);
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
        let of_list = lists.get(db, key)?.clients.next(tried);
        let of_family = lists.of_family(db, key);
        let of_family = of_family.and_then(|clients| clients.next(tried));
        // The client that came first.
        let both = of_list.into_iter().chain(of_family);
        let (ticket, client) = both.min_by_key(|(ticket, _)| *ticket)?;
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
        let is_new = (tried.is_some() || list.must_restart) && lists.schedule(db, key);
        lists.tidy(db, key);
        is_new
    });
    if is_new {
        event_loop::turn_again();
    }
}
