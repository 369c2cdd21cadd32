//! Which queues there are, and when each is to be looked at next.
//!
//! A hint, never the truth: whoever acts on it opens the key by name and
//! bears it when the key is gone, renamed or something else.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use dq_queue::{Millis, NEVER};

/// The wake of a queue that was loaded with the whole data of the server.
pub const LOADED: Millis = 0;
/// The wake of a queue that has just come to its place otherwise: restored,
/// renamed, copied or moved.
pub const ARRIVED: Millis = 1;

/// The place of a queue: database and key.
pub type Place = (i32, Rc<[u8]>);

/// The known queues.
#[derive(Debug, Default)]
pub struct Index {
    wakes: HashMap<Place, Millis>,
    by_wake: BTreeSet<(Millis, Place)>,
}

impl Index {
    /// Notes that a queue is here and is to be looked at at `wake`; NEVER for
    /// not by itself. O(log n).
    pub fn note(&mut self, db: i32, key: &[u8], wake: Millis) {
        let place: Place = (db, key.into());
        match self.wakes.insert(place.clone(), wake) {
            Some(before) if before == wake => return,
            Some(before) if before != NEVER => {
                self.by_wake.remove(&(before, place.clone()));
            }
            _ => {}
        }
        if wake != NEVER {
            self.by_wake.insert((wake, place));
        }
    }

    /// Forgets a queue.
    pub fn forget(&mut self, db: i32, key: &[u8]) {
        let place: Place = (db, key.into());
        if let Some(wake) = self.wakes.remove(&place) {
            self.by_wake.remove(&(wake, place));
        }
    }

    /// Forgets all queues of a database, or all.
    pub fn forget_db(&mut self, db: Option<i32>) {
        match db {
            None => *self = Index::default(),
            Some(db) => {
                self.wakes.retain(|(of, _), _| *of != db);
                self.by_wake.retain(|(_, (of, _))| *of != db);
            }
        }
    }

    /// Two databases were exchanged: all their queues are to be looked at.
    pub fn swap(&mut self, first: i32, second: i32) {
        let moved: Vec<Place> = self
            .wakes
            .keys()
            .filter(|(db, _)| *db == first || *db == second)
            .cloned()
            .collect();
        for (db, key) in &moved {
            self.forget(*db, key);
        }
        for (db, key) in moved {
            let db = if db == first { second } else { first };
            self.note(db, &key, ARRIVED);
        }
    }

    /// The queue that is to be looked at next: when, and where it is.
    pub fn next(&self) -> Option<(Millis, Place)> {
        self.by_wake.first().cloned()
    }

    /// All known queues.
    pub fn places(&self) -> Vec<Place> {
        self.wakes.keys().cloned().collect()
    }
}

/// How many ms the timer has to wait at `now_us` microseconds for `wake`: it
/// never fires early.
pub fn delay(wake: Millis, now_us: u64) -> Millis {
    wake.saturating_mul(1000)
        .saturating_sub(now_us)
        .div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_a_later_note_replaces_an_earlier() {
        let mut index = Index::default();
        index.note(0, b"a", 50);
        index.note(0, b"b", 40);
        index.note(0, b"b", 60);
        index.note(1, b"a", NEVER);
        assert_eq!(index.next(), Some((50, (0, b"a"[..].into()))));
        index.forget(0, b"a");
        assert_eq!(index.next(), Some((60, (0, b"b"[..].into()))));
        index.swap(0, 1);
        assert_eq!(index.next(), Some((ARRIVED, (0, b"a"[..].into()))));
        index.forget_db(Some(0));
        index.note(1, b"b", NEVER);
        assert_eq!(index.next(), None);
        assert_eq!(index.places().len(), 1);
    }

    #[test]
    fn the_timer_is_never_early_and_never_negative() {
        assert_eq!(delay(10, 9_000), 1);
        assert_eq!(delay(10, 9_001), 1);
        assert_eq!(delay(10, 9_999), 1);
        assert_eq!(delay(10, 10_000), 0);
        assert_eq!(delay(10, 99_000), 0);
        assert!(delay(NEVER, 0) > 1_000_000);
    }
}
