//! Where a key stands in the list of a node.

use super::Key;

/// The number of items at the front whose keys are `below` something, in a
/// list in order of its keys.
#[inline]
pub(super) fn rank<K, V>(items: &[(K, V)], below: impl Fn(&K) -> bool) -> usize {
    // Keys that only grow belong at the end of every list on their way, and
    // what is worked off in order leaves from the front.
    if items.last().is_some_and(|last| below(&last.0)) {
        return items.len();
    }
    match items {
        [first, ..] if !below(&first.0) => 0,
        [_, second, ..] if !below(&second.0) => 1,
        _ => search(items, below),
    }
}

/// The same for what is somewhere in the middle.
///
/// A search by halves would wait for memory at each step, for each step
/// depends on the one before. Looking at every eighth item and then at the
/// eight in question waits twice.
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

/// The place of `key` in a list in order of its keys.
#[inline]
pub(super) fn find<K: Key, V>(items: &[(K, V)], key: &K) -> Option<usize> {
    let at = rank(items, |other| other.goes_before(key));
    items.get(at).filter(|item| item.0 == *key).map(|_| at)
}
