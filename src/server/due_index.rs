//! The known queues, and the time of the next slice of each.
//!
//! The index is only a hint. The code that uses it opens the key by name, and the key may be gone,
//! renamed or of another type.

use std::collections::{BTreeSet, HashMap};

use dq_queue::{family, Millis, NEVER};

use super::address::QueueAddress;

/// When a slice of a queue is due. The earliest due time is the least value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The queue needs a slice as soon as possible, because it was loaded with all data of the
    /// server.
    Loaded,
    /// The queue needs a slice as soon as possible, because it was restored, renamed, copied or
    /// moved.
    Arrived,
    /// At this time in Unix milliseconds, or never without a command ([`NEVER`]).
    At(Millis),
    /// Work was left when the last slice ended, at this time in Unix milliseconds. Queues that are
    /// behind take turns with those that are due, so that they delay the others little.
    Behind(Millis),
}

impl Due {
    /// The time in Unix milliseconds; 0 for a slice that is due as soon as possible.
    pub fn ms(self) -> Millis {
        match self {
            Due::Loaded | Due::Arrived => 0,
            Due::At(ms) | Due::Behind(ms) => ms,
        }
    }
}

impl From<Millis> for Due {
    fn from(ms: Millis) -> Due {
        Due::At(ms)
    }
}

/// The known queues.
#[derive(Debug, Default)]
pub struct DueIndex {
    wakes: HashMap<QueueAddress, Due>,
    /// The queues of `wakes` that wake by themselves.
    by_wake: BTreeSet<(Due, QueueAddress)>,
    /// The queues of `wakes` that are behind.
    behind: BTreeSet<(Due, QueueAddress)>,
    /// The queues of `wakes` that belong to a family, by their names.
    of_families: BTreeSet<QueueAddress>,
    /// Whether the last turn was that of a queue that is behind, if there was one.
    was_behind: bool,
}

impl DueIndex {
    /// Adds a queue, or changes when its next slice must run. O(log n).
    pub fn schedule(&mut self, db: i32, key: &[u8], due: impl Into<Due>) {
        let due = due.into();
        let address: QueueAddress = (db, key.into());
        match self.wakes.insert(address.clone(), due) {
            Some(before) if before == due => return,
            Some(before) => {
                self.in_order_of(before).remove(&(before, address.clone()));
            }
            None if family::of_key(key).is_some() => {
                self.of_families.insert(address.clone());
            }
            _ => {}
        }
        if due != Due::At(NEVER) {
            self.in_order_of(due).insert((due, address));
        }
    }

    /// The order to which a queue with this due time belongs.
    fn in_order_of(&mut self, due: Due) -> &mut BTreeSet<(Due, QueueAddress)> {
        match due {
            Due::Behind(_) => &mut self.behind,
            _ => &mut self.by_wake,
        }
    }

    /// Removes a queue. O(log n).
    pub fn forget(&mut self, db: i32, key: &[u8]) {
        let address: QueueAddress = (db, key.into());
        if let Some(due) = self.wakes.remove(&address) {
            self.of_families.remove(&address);
            self.in_order_of(due).remove(&(due, address));
        }
    }

    /// Removes all queues of a database, or of all databases. O(n).
    pub fn forget_db(&mut self, db: Option<i32>) {
        match db {
            None => *self = DueIndex::default(),
            Some(db) => {
                self.wakes.retain(|(of, _), _| *of != db);
                self.by_wake.retain(|(_, (of, _))| *of != db);
                self.behind.retain(|(_, (of, _))| *of != db);
                self.of_families.retain(|(of, _)| *of != db);
            }
        }
    }

    /// Swaps the queues of two databases, and schedules a slice of each for now. O(n).
    pub fn swap(&mut self, first: i32, second: i32) {
        let moved: Vec<QueueAddress> = self
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
            self.schedule(db, &key, Due::Arrived);
        }
    }

    /// Schedules a slice of each queue for `now`, except for those that have just arrived and get
    /// a slice anyway. O(n log n).
    pub fn schedule_all(&mut self, now: Millis) {
        let has_arrived = |due: &Due| matches!(due, Due::Loaded | Due::Arrived);
        let others = self.wakes.iter().filter(|(_, due)| !has_arrived(due));
        let all: Vec<QueueAddress> = others.map(|(address, _)| address.clone()).collect();
        for (db, key) in all {
            self.schedule(db, &key, now);
        }
    }

    /// Whether any queue was loaded or has arrived whose slice has not run yet. O(1).
    pub fn has_arrivals(&self) -> bool {
        let first = self.by_wake.first();
        first.is_some_and(|(due, _)| matches!(due, Due::Loaded | Due::Arrived))
    }

    /// The queue whose turn is next, and when it was due. `None` if none is due at `now`. Queues that
    /// are behind and queues that are due take turns, so one that is due waits for at most as many
    /// others as were due before it, twice.
    pub fn next_turn(&mut self, now: Millis) -> Option<(Due, QueueAddress)> {
        self.was_behind = !self.was_behind;
        let due = self.by_wake.first().filter(|(due, _)| due.ms() <= now);
        let behind = self.behind.first();
        match self.was_behind {
            true => behind.or(due),
            false => due.or(behind),
        }
        .cloned()
    }

    /// The slice of a queue that was due at `now` has ended. If there is work left, the queue is behind.
    /// Returns whether it is.
    pub fn slice_ended(&mut self, address: &QueueAddress, now: Millis) -> bool {
        let due = self.wakes.get(address).copied();
        let is_behind = due.is_some_and(|due| due.ms() <= now);
        if is_behind {
            self.schedule(address.0, &address.1, Due::Behind(now));
        }
        is_behind
    }

    /// When the next slice must run, in Unix milliseconds. [`NEVER`] if none must.
    pub fn next_ms(&self) -> Millis {
        let both = self.by_wake.first().into_iter().chain(self.behind.first());
        both.map(|(due, _)| due.ms()).min().unwrap_or(NEVER)
    }

    /// The number of queues whose slice is due at `now`, counted up to `most`. O(most).
    pub fn count_due(&self, now: Millis, most: usize) -> usize {
        let due = self.by_wake.iter().take(most);
        let due = due.take_while(|(due, _)| due.ms() <= now).count();
        (due + self.behind.len()).min(most)
    }

    /// All known queues, in no order.
    pub fn addresses(&self) -> impl Iterator<Item = &QueueAddress> {
        self.wakes.keys()
    }

    /// The known queues that belong to a family, by database and name.
    pub fn of_families(&self) -> impl Iterator<Item = &QueueAddress> {
        self.of_families.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event of a queue: it is scheduled in a number of ms, or a turn ends with work left in it.
    #[derive(Debug, Clone)]
    enum Event {
        Schedule(u16, Millis),
        Turn { leaves_work: bool },
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let schedule =
            (0..3000u16, 1..3000u64).prop_map(|(key, delay)| Event::Schedule(key, delay));
        let turn = any::<bool>().prop_map(|leaves_work| Event::Turn { leaves_work });
        prop::collection::vec(prop_oneof![3 => schedule, 2 => turn], 0..6000)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

        #[test]
        fn thousands_of_queues_take_turns_in_the_order_in_which_they_are_due(events in events()) {
            let mut index = DueIndex::default();
            // The slow model: when each queue is due, and if it is due, how many turns it may still
            // wait.
            let mut model: HashMap<u16, (Due, Option<usize>)> = HashMap::new();
            let is_behind = |due: Due| matches!(due, Due::Behind(_));
            for (number, event) in events.into_iter().enumerate() {
                // One event a millisecond: queues of one millisecond go by their names.
                let now = number as Millis;
                let leaves_work = match event {
                    Event::Schedule(key, delay) => {
                        index.schedule(0, &key.to_be_bytes(), now + delay);
                        model.insert(key, (Due::At(now + delay), None));
                        continue;
                    }
                    Event::Turn { leaves_work } => leaves_work,
                };
                let mut due: Vec<(Due, u16)> = model
                    .iter()
                    .filter(|(_, (due, _))| due.ms() <= now)
                    .map(|(key, (due, _))| (*due, *key))
                    .collect();
                due.sort_unstable();
                let behind = due.partition_point(|(due, _)| !is_behind(*due));
                for (position, (due, key)) in due.iter().enumerate() {
                    let ahead = if is_behind(*due) { position - behind } else { position };
                    model.insert(*key, (*due, model[key].1.or(Some(2 * ahead + 2))));
                }
                let Some((of_turn, (_, name))) = index.next_turn(now) else {
                    prop_assert!(due.is_empty());
                    continue;
                };
                let key = u16::from_be_bytes([name[0], name[1]]);
                let first = if is_behind(of_turn) { behind } else { 0 };
                prop_assert_eq!(due.get(first), Some(&(of_turn, key)));
                index.schedule(0, &name, if leaves_work { now } else { NEVER });
                index.slice_ended(&(0, name), now);
                model.remove(&key);
                for (_, patience) in model.values_mut() {
                    prop_assert!(*patience != Some(0), "a queue has waited for too long");
                    *patience = patience.map(|turns| turns - 1);
                }
                if leaves_work {
                    model.insert(key, (Due::Behind(now), None));
                }
            }
        }
    }

    #[test]
    fn the_earliest_queue_is_next_and_scheduling_replaces_the_earlier_time() {
        let mut index = DueIndex::default();
        index.schedule(0, b"a", 50);
        index.schedule(0, b"b", 40);
        index.schedule(0, b"b", 60);
        index.schedule(1, b"a", NEVER);
        assert_eq!(
            index.next_turn(99),
            Some((Due::At(50), (0, b"a"[..].into())))
        );
        index.forget(0, b"a");
        assert_eq!(
            index.next_turn(99),
            Some((Due::At(60), (0, b"b"[..].into())))
        );
        index.swap(0, 1);
        assert_eq!(
            index.next_turn(9),
            Some((Due::Arrived, (0, b"a"[..].into())))
        );
        index.forget_db(Some(0));
        index.schedule(1, b"b", NEVER);
        assert_eq!(index.next_turn(99), None);
        assert_eq!(index.addresses().count(), 1);
    }

    #[test]
    fn a_queue_that_is_behind_is_found_beside_the_one_that_is_due() {
        let mut index = DueIndex::default();
        index.schedule(0, b"a", 10);
        index.schedule(0, b"b", 20);
        index.schedule(0, b"c", 90);
        index.slice_ended(&(0, b"a"[..].into()), 15);
        index.slice_ended(&(0, b"c"[..].into()), 15);
        let behind = Some((Due::Behind(15), (0, b"a"[..].into())));
        assert_eq!(index.next_turn(20), behind);
        assert_eq!(
            index.next_turn(20),
            Some((Due::At(20), (0, b"b"[..].into())))
        );
        assert_eq!(index.next_ms(), 15);
        assert_eq!(index.count_due(20, 9), 2);
        assert_eq!(index.count_due(20, 1), 1);
        index.schedule(0, b"a", 95);
        assert_eq!(index.next_turn(19), None);
        assert_eq!(index.next_ms(), 20);
    }

    #[test]
    fn each_queue_gets_a_slice_at_once_and_those_that_have_arrived_stay_so() {
        let mut index = DueIndex::default();
        index.schedule(0, b"a", 50);
        index.schedule(0, b"b", NEVER);
        index.schedule(0, b"c", Due::Arrived);
        index.schedule_all(20);
        assert_eq!(index.count_due(20, 9), 3);
        assert!(index.has_arrivals());
        assert_eq!(index.next_ms(), 0);
    }

    #[test]
    fn queues_of_families_are_known_by_their_names() {
        let mut index = DueIndex::default();
        for key in [&b"f:{2}"[..], b"f", b"f:{1}", b"g:{1}", b"{f}:1"] {
            index.schedule(0, key, 50);
            index.schedule(0, key, 60);
        }
        index.schedule(1, b"f:{3}", NEVER);
        let names = |index: &DueIndex| -> Vec<(i32, Vec<u8>)> {
            index
                .of_families()
                .map(|(db, key)| (*db, key.to_vec()))
                .collect()
        };
        let named = |of: &[(i32, &str)]| -> Vec<(i32, Vec<u8>)> {
            of.iter()
                .map(|(db, key)| (*db, key.as_bytes().to_vec()))
                .collect()
        };
        let expected = [(0, "f:{1}"), (0, "f:{2}"), (0, "g:{1}"), (1, "f:{3}")];
        assert_eq!(names(&index), named(&expected));
        index.forget(0, b"f:{2}");
        index.forget(0, b"f");
        index.swap(0, 1);
        let expected = [(0, "f:{3}"), (1, "f:{1}"), (1, "g:{1}")];
        assert_eq!(names(&index), named(&expected));
        index.forget_db(Some(1));
        assert_eq!(names(&index), named(&[(0, "f:{3}")]));
        index.forget_db(None);
        assert_eq!(names(&index), []);
    }
}
