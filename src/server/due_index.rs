//! Which queues there are, and when the next slice of each is to run.
//!
//! It is a hint, never the truth: the code that acts on it opens the key by name, and the key may
//! be gone, renamed or of another type.

use std::collections::{BTreeSet, HashMap};

use dq_queue::{Millis, NEVER};

use super::Address;

/// The due time of a queue that was loaded with the whole data of the server.
pub const LOADED: Millis = 0;
/// The due time of a queue that was restored, renamed, copied or moved.
pub const ARRIVED: Millis = 1;

/// The known queues.
#[derive(Debug, Default)]
pub struct DueIndex {
    wakes: HashMap<Address, Millis>,
    by_wake: BTreeSet<(Millis, Address)>,
}

impl DueIndex {
    /// Adds a queue, or changes when its next slice is to run: at `wake`, NEVER for not by itself.
    /// O(log n).
    pub fn schedule(&mut self, db: i32, key: &[u8], wake: Millis) {
        let address: Address = (db, key.into());
        match self.wakes.insert(address.clone(), wake) {
            Some(before) if before == wake => return,
            Some(before) if before != NEVER => {
                self.by_wake.remove(&(before, address.clone()));
            }
            _ => {}
        }
        if wake != NEVER {
            self.by_wake.insert((wake, address));
        }
    }

    /// Forgets a queue.
    pub fn forget(&mut self, db: i32, key: &[u8]) {
        let address: Address = (db, key.into());
        if let Some(wake) = self.wakes.remove(&address) {
            self.by_wake.remove(&(wake, address));
        }
    }

    /// Forgets all queues of a database, or all.
    pub fn forget_db(&mut self, db: Option<i32>) {
        match db {
            None => *self = DueIndex::default(),
            Some(db) => {
                self.wakes.retain(|(of, _), _| *of != db);
                self.by_wake.retain(|(_, (of, _))| *of != db);
            }
        }
    }

    /// Two databases were exchanged: slices of all their queues run now.
    pub fn swap(&mut self, first: i32, second: i32) {
        let moved: Vec<Address> = self
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
            self.schedule(db, &key, ARRIVED);
        }
    }

    /// The queue whose slice is to run next, and when.
    pub fn next(&self) -> Option<(Millis, Address)> {
        self.by_wake.first().cloned()
    }

    /// All known queues.
    pub fn addresses(&self) -> Vec<Address> {
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
    fn the_earliest_comes_first_and_a_later_time_replaces_an_earlier() {
        let mut index = DueIndex::default();
        index.schedule(0, b"a", 50);
        index.schedule(0, b"b", 40);
        index.schedule(0, b"b", 60);
        index.schedule(1, b"a", NEVER);
        assert_eq!(index.next(), Some((50, (0, b"a"[..].into()))));
        index.forget(0, b"a");
        assert_eq!(index.next(), Some((60, (0, b"b"[..].into()))));
        index.swap(0, 1);
        assert_eq!(index.next(), Some((ARRIVED, (0, b"a"[..].into()))));
        index.forget_db(Some(0));
        index.schedule(1, b"b", NEVER);
        assert_eq!(index.next(), None);
        assert_eq!(index.addresses().len(), 1);
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
