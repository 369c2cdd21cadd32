//! The clients that wait for a message's end.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::command::write;
use crate::ffi::blocking::Handle;
use crate::ffi::{event_loop, Context, OwnedName};
use dq_queue::op::Ending;

use super::index::Place;

/// Who waits for which message of a queue.
type Endings = HashMap<Box<[u8]>, Vec<Handle>>;

thread_local! {
    static ENDINGS: RefCell<HashMap<Place, Endings>> = RefCell::default();
    /// Queues that may not be what they were when somebody began to wait.
    static DOUBTED: RefCell<HashSet<Place>> = RefCell::default();
}

/// Whether there are any, so that looking whether there is one is nothing.
static ANY_DOUBTED: AtomicBool = AtomicBool::new(false);

/// Notes that a client waits for the end of a message.
pub fn wait(db: i32, key: &[u8], id: &[u8], handle: Handle) {
    ENDINGS.with_borrow_mut(|all| {
        let endings = all.entry((db, key.into())).or_default();
        let of_message = endings.entry(id.into()).or_default();
        of_message.retain(|handle| !handle.is_over());
        of_message.push(handle);
    });
}

/// The messages of a queue whose end someone waits for.
fn watched(db: i32, key: &[u8]) -> Vec<Box<[u8]>> {
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

/// The queue that was here is gone, or another one is here. Another may also come
/// before the command is over that has done this: what has become of the messages
/// is looked at before the server sleeps.
pub fn doubt(db: i32, key: &[u8]) {
    let of_this = |all: &HashMap<Place, Endings>| {
        let place: Option<Place> = (!all.is_empty()).then(|| (db, key.into()));
        place.filter(|place| all.contains_key(place))
    };
    if let Some(place) = ENDINGS.with_borrow(of_this) {
        add_doubts([place]);
    }
}

/// The queues of a database, or of all, are gone or others.
pub fn doubt_all(db: Option<i32>) {
    let places: Vec<Place> = ENDINGS.with_borrow(|all| {
        let of_db = all.keys().filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    add_doubts(places);
}

fn add_doubts(places: impl IntoIterator<Item = Place>) {
    let any = DOUBTED.with_borrow_mut(|doubted| {
        doubted.extend(places);
        !doubted.is_empty()
    });
    ANY_DOUBTED.store(any, Relaxed);
    if any {
        event_loop::turn_again();
    }
}

/// Looks at the messages in doubt. Who waits for one that is there, in the same
/// queue loaded anew or in another, goes on waiting; who waits for one that has
/// ended meanwhile or is gone is answered.
pub fn settle_doubts(ctx: &mut Context) {
    if !ANY_DOUBTED.swap(false, Relaxed) {
        return;
    }
    for (db, key) in DOUBTED.take() {
        if !ctx.select_db(db) {
            continue;
        }
        let name = OwnedName::new(&key);
        let mut opened = ctx.open_write(name.name()).ok();
        let mut queue = opened.as_mut().and_then(|opened| opened.get_mut());
        let ids = watched(db, &key).into_iter();
        let endings: Vec<Ending> = ids
            .filter_map(|id| match &mut queue {
                Some(queue) => queue.watch_again(id),
                None => Some(Ending { id, end: None }),
            })
            .collect();
        drop(opened);
        for ending in endings {
            tell(db, &key, ending);
        }
    }
}
