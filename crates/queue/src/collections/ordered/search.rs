//! Searching for a key in the list of a node.

use super::Key;

/// How many items at the front have keys for which `below` holds. The list is
/// sorted, and `below` must hold for no key above one for which it does not.
#[inline]
pub(super) fn rank<K, V>(items: &[(K, V)], below: impl Fn(&K) -> bool) -> usize {
    // The ends are compared first: growing keys belong at the end of every list on their
    // path, and entries that are processed in order are removed at the front.
    if items.last().is_some_and(|last| below(&last.0)) {
        return items.len();
    }
    match items {
        [first, ..] if !below(&first.0) => 0,
        [_, second, ..] if !below(&second.0) => 1,
        _ => search(items, below),
    }
}

/// [`rank`] for a key in the middle of a list.
///
/// In a binary search each step depends on the one before, so it would wait for
/// memory at each. Comparing every eighth item and then the eight in question waits
/// twice.
fn search<K, V>(items: &[(K, V)], below: impl Fn(&K) -> bool) -> usize {
    const STRIDE: usize = 8;
    let strides = items.chunks_exact(STRIDE);
    let skipped = STRIDE
        * strides
            .filter(|stride| matches!(stride, [.., end] if below(&end.0)))
            .count();
    let rest = items.get(skipped..).unwrap_or_default();
    let rest = rest.get(..STRIDE).unwrap_or(rest);
    skipped + rest.iter().filter(|item| below(&item.0)).count()
}

/// The index of `key` in a sorted list.
#[inline]
pub(super) fn find<K: Key, V>(items: &[(K, V)], key: &K) -> Option<usize> {
    let at = rank(items, |other| other.goes_before(key));
    items.get(at).filter(|item| item.0 == *key).map(|_| at)
}
