//! The blocked clients: who waits for messages, and who for an ending.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::core::op::Ending;
use crate::core::state::State;
use crate::ffi::blocking::Handle;

use super::index::Place;

/// How a message ended that someone waits for: its state and the result or
/// error text. `None` while it has not, or was removed.
pub type Outcome = Rc<RefCell<Option<(State, Option<Box<[u8]>>)>>>;

type Endings = HashMap<Box<[u8]>, Vec<(Outcome, Handle)>>;

#[derive(Default)]
struct Waiters {
    /// How many clients wait for messages of a queue.
    fetchers: HashMap<Place, usize>,
    /// Who waits for the end of which message of a queue.
    endings: HashMap<Place, Endings>,
}

thread_local! {
    static WAITERS: RefCell<Waiters> = RefCell::default();
}

/// Clients that wait for messages, so that nothing is looked up while there
/// are none.
static FETCHERS: AtomicUsize = AtomicUsize::new(0);
/// Queues of which someone waits for an ending.
static ENDINGS: AtomicUsize = AtomicUsize::new(0);

/// A client that waits for messages of some queues, as long as this lives.
pub struct Waiting {
    places: Vec<Place>,
}

impl Waiting {
    /// Counts a client that waits for messages of these queues.
    pub fn new(db: i32, keys: impl Iterator<Item = Box<[u8]>>) -> Waiting {
        let places: Vec<Place> = keys.map(|key| (db, key.into())).collect();
        WAITERS.with_borrow_mut(|waiters| {
            for place in &places {
                *waiters.fetchers.entry(place.clone()).or_default() += 1;
            }
        });
        FETCHERS.fetch_add(1, Relaxed);
        Waiting { places }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITERS.with_borrow_mut(|waiters| {
            for place in &self.places {
                if let Some(count) = waiters.fetchers.get_mut(place) {
                    *count -= 1;
                    if *count == 0 {
                        waiters.fetchers.remove(place);
                    }
                }
            }
        });
        FETCHERS.fetch_sub(1, Relaxed);
    }
}

/// How many clients wait for messages of a queue.
pub fn fetchers(db: i32, key: &[u8]) -> usize {
    if FETCHERS.load(Relaxed) == 0 {
        return 0;
    }
    let place: Place = (db, key.into());
    WAITERS.with_borrow(|waiters| waiters.fetchers.get(&place).copied().unwrap_or(0))
}

/// How many clients wait for messages, over all queues.
pub fn all_fetchers() -> usize {
    FETCHERS.load(Relaxed)
}

/// Notes that a client waits for the end of a message.
pub fn wait_for_end(db: i32, key: &[u8], id: &[u8], outcome: Outcome, handle: Handle) {
    WAITERS.with_borrow_mut(|waiters| {
        let endings = waiters.endings.entry((db, key.into())).or_default();
        let of_message = endings.entry(id.into()).or_default();
        of_message.retain(|(_, handle)| !handle.is_over());
        of_message.push((outcome, handle));
        ENDINGS.store(waiters.endings.len(), Relaxed);
    });
}

/// Whether anybody waits for the end of any message.
pub fn any_endings() -> bool {
    ENDINGS.load(Relaxed) > 0
}

/// The messages of a queue whose end someone waits for.
pub fn watched(db: i32, key: &[u8]) -> Vec<Box<[u8]>> {
    WAITERS.with_borrow(|waiters| {
        let endings = waiters.endings.get(&(db, key.into()));
        endings.map_or(Vec::new(), |endings| endings.keys().cloned().collect())
    })
}

/// Lets those go who wait for this message.
pub fn tell_end(db: i32, key: &[u8], ending: Ending) {
    let place: Place = (db, key.into());
    let told = WAITERS.with_borrow_mut(|waiters| {
        let endings = waiters.endings.get_mut(&place)?;
        let told = endings.remove(&ending.id);
        if endings.is_empty() {
            waiters.endings.remove(&place);
        }
        ENDINGS.store(waiters.endings.len(), Relaxed);
        told
    });
    // Ending a wait runs its callback at once: nothing is borrowed by now.
    for (outcome, handle) in told.into_iter().flatten() {
        outcome.replace(ending.end.clone());
        handle.end();
    }
}

/// Lets all go who wait for a message of this queue: it is gone.
pub fn tell_gone(db: i32, key: &[u8]) {
    for id in watched(db, key) {
        tell_end(db, key, Ending { id, end: None });
    }
}

/// The same for all queues of a database, or of all.
pub fn tell_flushed(db: Option<i32>) {
    let places: Vec<Place> = WAITERS.with_borrow(|waiters| {
        let places = waiters.endings.keys();
        let of_db = places.filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    for (db, key) in places {
        tell_gone(db, &key);
    }
}

/// How often anything has changed in any queue.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The queue that had nothing for a waiting client, and after how many
    /// changes that was.
    static NOTHING: RefCell<(u64, i32, Vec<u8>)> = RefCell::default();
}

/// Something has changed in some queue: who waits is to be asked again.
pub fn something_changed() {
    // Only the main thread counts, so that this need not be one step.
    CHANGES.store(CHANGES.load(Relaxed) + 1, Relaxed);
}

/// Notes that a queue has nothing that any client would get.
pub fn note_nothing_for(db: i32, key: &[u8]) {
    NOTHING.with_borrow_mut(|(changes, of, name)| {
        *changes = CHANGES.load(Relaxed);
        *of = db;
        name.clear();
        name.extend_from_slice(key);
    });
}

/// Whether that has been noted and nothing has changed since. Every waiting
/// client of a queue is asked whenever there is something for one of them:
/// this makes the many answers cheap. What time brings is not seen; the timer
/// asks again then.
pub fn nothing_for(db: i32, key: &[u8]) -> bool {
    NOTHING.with_borrow(|(changes, of, name)| {
        *changes == CHANGES.load(Relaxed) && *of == db && name == key
    })
}
