//! Random steps on a set and on a standard map, which must give the same results.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{check, scrambled, Key};
use crate::collections::ordered::{MinTime, OrderedSet};

#[derive(Clone, Debug)]
enum Step {
    Insert(u16, u8),
    InsertRun { from: u16, count: u8, down: bool },
    Append(u8),
    Remove(u16),
    RemoveRun { from: u16, count: u8 },
    RemoveFirst(u8),
    PopFirst(u8),
    Drain(u16),
    Rebuild,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..4000u16;
    prop_oneof![
        8 => (key.clone(), 0..50u8).prop_map(|(k, v)| Step::Insert(k, v)),
        8 => (key.clone(), any::<u8>(), any::<bool>())
            .prop_map(|(from, count, down)| Step::InsertRun { from, count, down }),
        4 => any::<u8>().prop_map(Step::Append),
        4 => key.clone().prop_map(Step::Remove),
        4 => (key, any::<u8>()).prop_map(|(from, count)| Step::RemoveRun { from, count }),
        2 => any::<u8>().prop_map(Step::RemoveFirst),
        2 => any::<u8>().prop_map(Step::PopFirst),
        1 => (0..500u16).prop_map(Step::Drain),
        1 => Just(Step::Rebuild),
        1 => (0..20u8).prop_map(|n| if n == 0 { Step::Clear } else { Step::PopFirst(n) }),
    ]
}

/// A set and the map that it must equal.
#[derive(Default)]
struct Twin {
    set: OrderedSet<Key, MinTime>,
    /// A set with the same keys and no measure. Sets without a measure take shortcuts,
    /// which must have the same results.
    bare: OrderedSet<Key>,
    map: BTreeMap<Key, MinTime>,
}

impl Twin {
    fn insert(&mut self, key: Key, time: u64) {
        let added = self.set.insert(key, MinTime(time));
        assert_eq!(added, self.bare.insert(key, ()));
        assert_eq!(added, self.map.insert(key, MinTime(time)).is_none());
    }

    fn remove(&mut self, key: Key) {
        let removed = self.set.remove(&key);
        assert_eq!(removed, self.map.remove(&key));
        assert_eq!(removed.is_some(), self.bare.remove(&key).is_some());
    }

    fn pop_first(&mut self) {
        let popped = self.set.pop_first();
        assert_eq!(popped, self.map.pop_first());
        assert_eq!(popped.map(|(key, _)| (key, ())), self.bare.pop_first());
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Insert(key, time) => self.insert((key.into(), 0), time.into()),
            Step::InsertRun { from, count, down } => {
                for i in 0..u64::from(count) {
                    let second = if down { 255 - i } else { i };
                    self.insert((from.into(), second), scrambled(i) % 50);
                }
            }
            Step::Append(count) => {
                for i in 0..u64::from(count) {
                    let last = self.map.last_key_value().map_or(0, |(key, _)| key.0);
                    self.insert((last + 1, 0), i % 50);
                }
            }
            Step::Remove(key) => self.remove((key.into(), 0)),
            Step::RemoveRun { from, count } => {
                let from = (u64::from(from), 0);
                let keys = self.map.range(from..).map(|(key, _)| *key);
                for key in keys.take(count.into()).collect::<Vec<_>>() {
                    self.remove(key);
                }
            }
            Step::RemoveFirst(count) => {
                let keys = self.map.keys().copied().take(count.into());
                keys.collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|key| self.remove(key));
            }
            Step::PopFirst(count) => (0..count).for_each(|_| self.pop_first()),
            Step::Drain(count) => {
                let dropped = self.set.drain_some(count.into());
                assert_eq!(dropped, self.bare.drain_some(count.into()));
                assert_eq!(dropped, self.map.len().min(count.into()));
                (0..dropped).for_each(|_| _ = self.map.pop_first());
            }
            Step::Rebuild => {
                self.set = self.set.clone();
                self.bare = self.bare.clone();
            }
            Step::Clear => {
                self.set.clear();
                self.bare.clear();
                self.map.clear();
            }
        }
    }

    fn compare(&self, probe: Key, limit: u64) {
        check(&self.set);
        check(&self.bare);
        assert!(self
            .bare
            .iter()
            .map(|(key, ())| key)
            .eq(self.map.keys().copied()));
        let entry = |(key, time): (&Key, &MinTime)| (*key, *time);
        assert!(self.set.iter().eq(self.map.iter().map(entry)));
        assert_eq!(self.set.first(), self.map.first_key_value().map(entry));
        assert_eq!(self.set.last(), self.map.last_key_value().map(entry));
        assert_eq!(self.set.get(&probe), self.map.get(&probe).copied());
        assert_eq!(self.set.contains(&probe), self.map.contains_key(&probe));
        for low in [Bound::Included(probe), Bound::Excluded(probe)] {
            let expected = self.map.range((low, Bound::Unbounded)).map(entry);
            assert!(self.set.range_from(low).eq(expected));
        }
        let below = self.map.range(..probe).rev().map(entry);
        assert!(self.set.back_from(probe).eq(below));
        let above = (Bound::Excluded(probe), Bound::Unbounded);
        let next = self.map.range(above).next().map(entry);
        assert_eq!(self.set.next_after(&probe), next);
        assert_eq!(self.set.min_measure(), self.map.values().min().copied());
        let due = self.map.iter().map(entry).find(|due| due.1 .0 <= limit);
        assert_eq!(self.set.first_at_most(limit), due);
        let below = self.map.range(..probe).map(|(_, time)| *time).min();
        assert_eq!(self.set.least_before(&probe), below);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_set_equals_a_standard_map_after_any_steps(
        steps in vec((step(), 0..4500u64, 0..256u64, 0..50u64), 1..80),
    ) {
        let mut twin = Twin::default();
        for (step, first, second, limit) in steps {
            twin.apply(&step);
            twin.compare((first, second), limit);
        }
    }

    #[test]
    fn a_set_is_built_from_entries_in_any_order(
        keys in vec((0..3000u64, 0..9u64), 0..600),
        sort in any::<bool>(),
    ) {
        let mut entries: Vec<_> = keys.iter().map(|&(k, v)| ((k, 7), MinTime(v))).collect();
        if sort {
            entries.sort();
        }
        let set = OrderedSet::from_sorted(entries.iter().copied());
        check(&set);
        let map: BTreeMap<_, _> = entries.into_iter().collect();
        prop_assert!(set.iter().eq(map));
    }
}
