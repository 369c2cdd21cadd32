//! Counts the memory of a set, and decides how the lists in its nodes grow and
//! shrink.

/// Counts the bytes that a set has allocated. Every list in a node changes its
/// capacity only here, so that the total is known without a walk over the tree.
pub(super) struct Ledger {
    bytes: usize,
}

impl Ledger {
    pub(super) const EMPTY: Self = Self { bytes: 0 };

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a boxed `T` that was allocated.
    pub(super) fn add_box<T>(&mut self) {
        self.bytes += size_of::<T>();
    }

    /// Counts a boxed `T` that is freed.
    pub(super) fn drop_box<T>(&mut self) {
        self.bytes -= size_of::<T>();
    }

    /// Reserves room for `more` items. The list must not grow by more than that
    /// before the next call.
    pub(super) fn reserve<T>(&mut self, list: &mut Vec<T>, more: usize) {
        let need = list.len() + more;
        if need > list.capacity() {
            self.resize(list, |list| {
                list.reserve_exact(roomy(need) - list.len());
            });
        }
    }

    /// Shrinks a list if less than half of its capacity is used. Some room is left,
    /// so that a list whose length changes by one back and forth is not copied each
    /// time.
    pub(super) fn trim<T>(&mut self, list: &mut Vec<T>) {
        if list.len() * 2 < list.capacity() {
            let keep = roomy(list.len() + list.len() / 2);
            self.resize(list, |list| list.shrink_to(keep));
        }
    }

    /// Shrinks a list to the smallest regular capacity for its length.
    pub(super) fn fit<T>(&mut self, list: &mut Vec<T>) {
        let keep = roomy(list.len());
        if keep < list.capacity() {
            self.resize(list, |list| list.shrink_to(keep));
        }
    }

    fn resize<T>(&mut self, list: &mut Vec<T>, change: impl FnOnce(&mut Vec<T>)) {
        let before = list.capacity();
        change(list);
        self.bytes += list.capacity() * size_of::<T>();
        self.bytes -= before * size_of::<T>();
    }
}

/// The capacity for a list of `len` items.
///
/// Very many groups have only a few messages, so a small list has little room to
/// spare, but enough for a second item. Longer lists grow in steps of eight. For
/// items of sixteen bytes these are the size classes of common allocators.
fn roomy(len: usize) -> usize {
    match len {
        0 => 0,
        1..=12 => len.next_multiple_of(2),
        13..=16 => 16,
        _ => len.next_multiple_of(8),
    }
}
