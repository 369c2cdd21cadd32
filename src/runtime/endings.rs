//! The clients that wait for a message's end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::command::write;
use crate::core::op::Ending;
use crate::ffi::blocking::Handle;

use super::index::Place;

/// Who waits for which message of a queue.
type Endings = HashMap<Box<[u8]>, Vec<Handle>>;

thread_local! {
    static ENDINGS: RefCell<HashMap<Place, Endings>> = RefCell::default();
}

/// Queues of which someone waits for an ending.
static QUEUES: AtomicUsize = AtomicUsize::new(0);

/// Notes that a client waits for the end of a message.
pub fn wait(db: i32, key: &[u8], id: &[u8], handle: Handle) {
    ENDINGS.with_borrow_mut(|all| {
        let endings = all.entry((db, key.into())).or_default();
        let of_message = endings.entry(id.into()).or_default();
        of_message.retain(|handle| !handle.is_over());
        of_message.push(handle);
        QUEUES.store(all.len(), Relaxed);
    });
}

/// Whether anybody waits for the end of any message.
pub fn any() -> bool {
    QUEUES.load(Relaxed) > 0
}

/// The messages of a queue whose end someone waits for.
pub fn watched(db: i32, key: &[u8]) -> Vec<Box<[u8]>> {
    ENDINGS.with_borrow(|all| {
        let endings = all.get(&(db, key.into()));
        endings.map_or(Vec::new(), |endings| endings.keys().cloned().collect())
    })
}

/// Answers those who wait for this message.
pub fn tell(db: i32, key: &[u8], ending: Ending) {
    let place: Place = (db, key.into());
    let told = ENDINGS.with_borrow_mut(|all| {
        let endings = all.get_mut(&place)?;
        let told = endings.remove(&ending.id);
        if endings.is_empty() {
            all.remove(&place);
        }
        QUEUES.store(all.len(), Relaxed);
        told
    });
    // Answering runs callbacks at once: nothing is borrowed by now.
    for handle in told.into_iter().flatten() {
        handle.answer(|reply| match &ending.end {
            Some((state, text)) => write::ending(reply, *state, text.as_deref()),
            None => reply.null(),
        });
    }
}

/// Answers all who wait for a message of this queue: it is gone.
pub fn tell_gone(db: i32, key: &[u8]) {
    for id in watched(db, key) {
        tell(db, key, Ending { id, end: None });
    }
}

/// The same for all queues of a database, or of all.
pub fn tell_flushed(db: Option<i32>) {
    let places: Vec<Place> = ENDINGS.with_borrow(|all| {
        let of_db = all.keys().filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    for (db, key) in places {
        tell_gone(db, &key);
    }
}
