//! The clients that wait for messages: a line for each queue, and which lines
//! are to be served.
//!
//! A queue is known by its place, whether it is there or not: who waits, waits
//! for whatever comes to be there.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::command::consumer::Consumer;
use crate::ffi::blocking::Handle;
use crate::ffi::event_loop;

use super::index::Place;
use super::line::{Class, Line, Ticket};

/// A client that waits.
pub struct Waiter {
    /// What it asked for.
    pub consumer: Consumer,
    class: Class,
    db: i32,
    keys: Vec<Rc<[u8]>>,
    /// 0 as long as it does not stand in line, and afterwards.
    ticket: Cell<Ticket>,
    handle: OnceCell<Handle>,
}

impl Waiter {
    /// A client that is about to wait for one of these queues.
    pub fn new(consumer: Consumer, db: i32, keys: impl Iterator<Item = Rc<[u8]>>) -> Rc<Waiter> {
        Rc::new(Waiter {
            class: consumer.class(),
            consumer,
            db,
            keys: keys.collect(),
            ticket: Cell::new(0),
            handle: OnceCell::new(),
        })
    }

    /// It is blocked now: it joins the lines of its queues, at the end.
    pub fn join(self: &Rc<Self>, handle: Handle) {
        if self.handle.set(handle).is_err() {
            return;
        }
        LINES.with_borrow_mut(|lines| {
            lines.last += 1;
            self.ticket.set(lines.last);
            let of_db = lines.by_db.entry(self.db).or_default();
            for key in &self.keys {
                let standing = of_db.entry(Rc::clone(key)).or_default();
                let member = Rc::clone(self);
                standing.line.join(self.class.clone(), lines.last, member);
            }
        });
        WAITING.fetch_add(1, Relaxed);
    }

    /// It waits no longer: it leaves all lines. O(keys * log n).
    pub fn leave(&self) {
        let ticket = self.ticket.replace(0);
        if ticket == 0 {
            return;
        }
        LINES.with_borrow_mut(|lines| {
            let Some(of_db) = lines.by_db.get_mut(&self.db) else {
                return;
            };
            for key in &self.keys {
                let Some(standing) = of_db.get_mut(&**key) else {
                    continue;
                };
                standing.line.leave(&self.class, ticket);
                if standing.line.is_empty() {
                    of_db.remove(&**key);
                }
            }
        });
        WAITING.fetch_sub(1, Relaxed);
    }

    /// The way to answer it, as long as it stands in line.
    pub fn handle(&self) -> Option<&Handle> {
        self.handle.get().filter(|handle| !handle.is_over())
    }
}

/// A line, and how far it is served.
#[derive(Default)]
struct Standing {
    line: Line<Rc<Waiter>>,
    /// Whether it is to be served, and so stands among those that are.
    is_noted: bool,
    /// Whether it is to be served once more from its beginning, because
    /// something has changed since that was last done.
    again: bool,
    /// How far those who had to be asked were asked when a slice ended.
    asked: Ticket,
}

#[derive(Default)]
struct Lines {
    by_db: HashMap<i32, HashMap<Rc<[u8]>, Standing>>,
    /// The last ticket that was given out.
    last: Ticket,
    /// The lines that are to be served. Some may be so no more.
    noted: VecDeque<Place>,
}

impl Lines {
    fn get(&self, db: i32, key: &[u8]) -> Option<&Standing> {
        self.by_db.get(&db)?.get(key)
    }

    fn get_mut(&mut self, db: i32, key: &[u8]) -> Option<&mut Standing> {
        self.by_db.get_mut(&db)?.get_mut(key)
    }

    /// A line is to be served; whether it was not before.
    fn put_up(&mut self, db: i32, key: &[u8]) -> bool {
        let Some(standing) = self.get_mut(db, key) else {
            return false;
        };
        let is_new = !std::mem::replace(&mut standing.is_noted, true);
        if is_new {
            self.noted.push_back((db, key.into()));
            NOTED.store(self.noted.len(), Relaxed);
        }
        is_new
    }
}

thread_local! {
    static LINES: RefCell<Lines> = RefCell::default();
}

/// How many clients wait, so that nothing is looked up while nobody does.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// How many lines are noted, so that looking whether there is one is nothing.
static NOTED: AtomicUsize = AtomicUsize::new(0);

/// How many clients wait for messages, over all queues.
#[inline]
pub fn all() -> usize {
    WAITING.load(Relaxed)
}

/// How many clients wait for messages of a queue.
pub fn count(db: i32, key: &[u8]) -> usize {
    LINES.with_borrow(|lines| lines.get(db, key).map_or(0, |standing| standing.line.len()))
}

/// There may be something for those who wait here: they are served before the
/// server sleeps next. O(1), whoever waits.
pub fn note(db: i32, key: &[u8]) {
    if WAITING.load(Relaxed) > 0 {
        let is_new = LINES.with_borrow_mut(|lines| {
            let standing = lines.get_mut(db, key);
            let is_there = standing.map(|standing| standing.again = true);
            is_there.is_some() && lines.put_up(db, key)
        });
        if is_new {
            event_loop::turn_again();
        }
    }
}

/// Whether any line is to be served.
#[inline]
pub fn any_noted() -> bool {
    NOTED.load(Relaxed) > 0
}

/// Whether this line is to be served.
pub fn is_noted(db: i32, key: &[u8]) -> bool {
    let of = |lines: &Lines| lines.get(db, key).is_some_and(|standing| standing.is_noted);
    any_noted() && LINES.with_borrow(of)
}

/// The next line that is to be served, which it is no more.
pub fn next_noted() -> Option<Place> {
    LINES.with_borrow_mut(|lines| {
        while let Some(place) = lines.noted.pop_front() {
            NOTED.store(lines.noted.len(), Relaxed);
            let standing = lines.get_mut(place.0, &place.1);
            if standing.is_some_and(|standing| std::mem::take(&mut standing.is_noted)) {
                return Some(place);
            }
        }
        None
    })
}

/// No line is to be served: this server may hand out nothing.
pub fn forget_noted() {
    while let Some((db, key)) = next_noted() {
        LINES.with_borrow_mut(|lines| {
            if let Some(standing) = lines.get_mut(db, &key) {
                standing.asked = 0;
                standing.again = false;
            }
        });
    }
}

/// The serving of a line begins, or goes on where it was left: all whose class
/// was refused stand up to this ticket.
pub fn begin(db: i32, key: &[u8]) -> Ticket {
    LINES.with_borrow_mut(|lines| {
        lines.get_mut(db, key).map_or(0, |standing| {
            standing.is_noted = false;
            if standing.asked == 0 {
                standing.again = false;
            }
            standing.asked
        })
    })
}

/// The one in a line who is to be asked after `asked`.
pub fn next_in_line(db: i32, key: &[u8], asked: Ticket) -> Option<(Ticket, Rc<Waiter>)> {
    LINES.with_borrow(|lines| {
        let (ticket, waiter) = lines.get(db, key)?.line.next(asked)?;
        Some((ticket, Rc::clone(waiter)))
    })
}

/// The serving of a line ends here, and goes on later where some were not
/// asked: after this ticket. If all were, and something has changed since it
/// began, it begins anew later.
pub fn end(db: i32, key: &[u8], asked: Option<Ticket>) {
    let is_new = LINES.with_borrow_mut(|lines| {
        let Some(standing) = lines.get_mut(db, key) else {
            return false;
        };
        standing.asked = asked.unwrap_or(0);
        (asked.is_some() || standing.again) && lines.put_up(db, key)
    });
    if is_new {
        event_loop::turn_again();
    }
}
