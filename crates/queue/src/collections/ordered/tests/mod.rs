mod twin;

use super::node::{Node, FULL};
use super::{Measure, MinTime, OrderedSet};

type Key = (u64, u64);

/// The result of a walk over a subtree.
struct Found<K, V> {
    entries: Vec<(K, V)>,
    bytes: usize,
    depth: usize,
}

fn list_bytes<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// Checks all invariants of the nodes.
fn check_node<K: super::Key, V: Measure>(node: &Node<K, V>) -> Found<K, V> {
    assert!(node.len() <= FULL);
    match node {
        Node::Leaf(entries) => Found {
            entries: entries.clone(),
            bytes: list_bytes(entries),
            depth: 0,
        },
        Node::Inner(inner) => {
            assert_eq!(inner.heads.len(), inner.children.len());
            assert!(!node.is_empty());
            let mut whole = Found {
                entries: Vec::new(),
                bytes: size_of_val(inner.as_ref())
                    + list_bytes(&inner.heads)
                    + list_bytes(&inner.children),
                depth: 0,
            };
            for (at, (head, child)) in inner.heads.iter().zip(&inner.children).enumerate() {
                assert!(!child.is_empty());
                let found = check_node(child);
                assert!(found.entries.iter().all(|entry| head.0 <= entry.0));
                assert!(whole.entries.iter().all(|entry| entry.0 < head.0));
                assert!(found.entries.iter().map(|entry| entry.1).min() == Some(head.1));
                assert!(at == 0 || whole.depth == found.depth + 1);
                whole.depth = found.depth + 1;
                whole.bytes += found.bytes;
                whole.entries.extend(found.entries);
            }
            whole
        }
    }
}

fn check<K: super::Key, V: Measure>(set: &OrderedSet<K, V>) {
    let found = check_node(&set.root);
    assert!(found.entries.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(found.entries.len(), set.len());
    assert_eq!(found.bytes, set.memory_bytes());
    if let Node::Inner(inner) = &set.root {
        assert!(inner.children.len() > 1);
    }
    if set.is_empty() {
        assert_eq!(set.memory_bytes(), 0);
    }
}

/// Reproducible numbers that look random.
fn scrambled(n: u64) -> u64 {
    let mut x = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn bytes_per_entry<K: super::Key, V: Measure>(set: &OrderedSet<K, V>) -> f64 {
    set.memory_bytes() as f64 / set.len() as f64
}

/// Uses more levels than random steps ever reach.
#[test]
fn invariants_hold_while_a_set_grows_and_shrinks_through_all_heights() {
    const COUNT: u64 = 100_000;
    let mut set: OrderedSet<Key> = OrderedSet::new();
    for n in 0..COUNT {
        assert!(set.insert((scrambled(n), n), ()));
    }
    check(&set);
    for n in 0..COUNT - 100 {
        assert_eq!(set.remove(&(scrambled(n), n)), Some(()));
        if n % 20_000 == 0 {
            check(&set);
        }
    }
    check(&set);
    assert!(bytes_per_entry(&set) < 64.0);
    while set.pop_first().is_some() {
        check(&set);
    }
    assert_eq!(set.memory_bytes(), 0);
}

#[test]
fn invariants_hold_after_many_random_insertions_and_removals() {
    let mut set: OrderedSet<u64, MinTime> = OrderedSet::new();
    for n in 0..100_000 {
        let key = scrambled(n) % 20_000;
        if scrambled(!n) % 9 < 5 {
            set.insert(key, MinTime(n));
        } else {
            set.remove(&key);
        }
        if n % 4_000 == 0 {
            check(&set);
        }
    }
}

/// After a removal the key in a leaf's head may be below its first entry. If making
/// room raised that key, an entry between the two would go to the leaf before,
/// which may be full.
#[test]
fn a_key_between_a_head_and_its_first_entry_is_inserted_in_order() {
    let leaf = FULL as u64;
    for last in [3 * leaf - 20, 3 * leaf] {
        let mut set = OrderedSet::from_sorted((0..last).map(|n| (n * 10, ())));
        let second = leaf * 10;
        set.remove(&second);
        assert!(set.insert(second + 15, ()));
        assert!(set.insert(second + 5, ()));
        check(&set);
    }
}

#[test]
fn an_empty_set_allocates_nothing_and_finds_nothing() {
    const EMPTY: OrderedSet<Key, MinTime> = OrderedSet::new();
    let mut set = EMPTY;
    check(&set);
    assert!(set.is_empty());
    assert_eq!(set.first(), None);
    assert_eq!(set.last(), None);
    assert_eq!(set.pop_first(), None);
    assert_eq!(set.remove(&(1, 1)), None);
    assert_eq!(set.get(&(1, 1)), None);
    assert_eq!(set.next_after(&(0, 0)), None);
    assert_eq!(set.first_at_most(u64::MAX), None);
    assert_eq!(set.min_measure(), None);
    assert_eq!(set.drain_some(10), 0);
    assert_eq!(set.iter().next(), None);
}

#[test]
fn inserting_a_known_key_replaces_its_measure() {
    let mut set = OrderedSet::new();
    assert!(set.insert(1u64, MinTime(5)));
    assert!(!set.insert(1, MinTime(9)));
    assert_eq!(set.len(), 1);
    assert_eq!(set.min_measure(), Some(MinTime(9)));
    assert_eq!(format!("{set:?}"), "{1: MinTime(9)}");
}

#[test]
fn first_at_most_finds_the_lowest_key_not_the_least_time() {
    let entries = (0..10_000u64).map(|key| (key, MinTime(20_000 - key)));
    let set = OrderedSet::from_sorted(entries);
    assert_eq!(set.first_at_most(10_000), None);
    assert_eq!(set.first_at_most(10_001), Some((9_999, MinTime(10_001))));
    assert_eq!(set.first_at_most(15_000), Some((5_000, MinTime(15_000))));
    assert_eq!(set.first_at_most(u64::MAX), Some((0, MinTime(20_000))));
}

#[test]
fn the_first_entries_can_be_removed_as_a_set() {
    for (len, limit) in [(0, 5), (5, 0), (5, 5), (5, 9), (10_000, 1), (10_000, 6_789)] {
        let mut set: OrderedSet<u64> = OrderedSet::from_sorted((0..len).map(|key| (key, ())));
        let taken = set.take_first(limit as usize);
        let middle = len.min(limit);
        assert!(taken.iter().map(|(key, ())| key).eq(0..middle));
        assert!(set.iter().map(|(key, ())| key).eq(middle..len));
    }
}

#[test]
fn every_drained_slice_frees_memory() {
    let mut set = OrderedSet::from_sorted((0..100_000u64).map(|n| ((n, n), ())));
    let mut before = set.memory_bytes();
    while !set.is_empty() {
        assert_eq!(set.drain_some(1_000), 1_000);
        check(&set);
        assert!(set.memory_bytes() < before);
        before = set.memory_bytes();
    }
    assert_eq!(before, 0);
}

#[test]
fn tiny_sets_take_little_memory() {
    assert!(size_of::<OrderedSet<Key>>() <= 40);
    assert!(size_of::<OrderedSet<Key, MinTime>>() <= 40);
    let mut set: OrderedSet<Key> = OrderedSet::new();
    for (len, bytes) in [(1, 32), (2, 32), (4, 64), (8, 128), (16, 256), (48, 768)] {
        while set.len() < len {
            set.insert((set.len() as u64, 0), ());
        }
        assert_eq!(set.memory_bytes(), bytes);
    }
    while set.len() > 1 {
        set.pop_first();
    }
    assert!(set.memory_bytes() <= 64);
}

#[test]
fn large_sets_fill_their_leaves() {
    const COUNT: u64 = 200_000;
    let rising = |n| (n, 0);
    let falling = |n| (COUNT - n, 0);
    let random = |n| (scrambled(n), 0);
    // Due times that rise with some jitter, as those of messages with various
    // delays do.
    let jittery = |n| (n * 10 + scrambled(n) % 10_000, n);
    // Many ranges of keys, each growing at its own end.
    let interleaved = |n| (scrambled(n) % 1_000, n);
    type KeyOf<'a> = &'a dyn Fn(u64) -> Key;
    let cases: [(&str, KeyOf, f64); 5] = [
        ("rising", &rising, 17.0),
        ("falling", &falling, 20.0),
        ("random", &random, 20.0),
        ("jittery", &jittery, 20.0),
        ("interleaved", &interleaved, 20.0),
    ];
    for (name, key, limit) in cases {
        let mut set: OrderedSet<Key> = OrderedSet::new();
        (0..COUNT).for_each(|n| _ = set.insert(key(n), ()));
        check(&set);
        let cost = bytes_per_entry(&set);
        println!("{name}: {cost:.2} bytes an entry");
        assert!(cost <= limit, "{name}: {cost} bytes an entry");
        assert!(bytes_per_entry(&set.clone()) <= 17.0);
    }
}

#[test]
fn a_set_frees_memory_when_most_keys_are_removed() {
    const COUNT: u64 = 200_000;
    let mut set: OrderedSet<Key> = OrderedSet::new();
    (0..COUNT).for_each(|n| _ = set.insert((scrambled(n), n), ()));
    for n in 0..COUNT - COUNT / 10 {
        set.remove(&(scrambled(n), n));
    }
    check(&set);
    println!("after removals: {:.2}", bytes_per_entry(&set));
    assert!(bytes_per_entry(&set) <= 28.0);
}

#[test]
fn a_known_key_of_a_full_leaf_stays_the_only_one() {
    let last = FULL as u64 - 1;
    let mut set = OrderedSet::from_sorted((0..=last).map(|key| (key, MinTime(key))));
    for key in [0, last, 7] {
        assert!(!set.insert(key, MinTime(100)));
        assert_eq!(set.get(&key), Some(MinTime(100)));
        check(&set);
    }
    set.remove(&5);
    assert!(set.insert(5, MinTime(5)));
    check(&set);
}
