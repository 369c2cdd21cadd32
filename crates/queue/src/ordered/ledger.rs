//! What the nodes of one set have allocated, and how their lists grow and
//! shrink.

/// Counts the bytes of a set's allocations. Every list of a node changes its
/// capacity here and nowhere else, so that the total is known without a walk.
pub(super) struct Ledger {
    bytes: usize,
}

impl Ledger {
    pub(super) const EMPTY: Self = Self { bytes: 0 };

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records a boxed struct of type `T`.
    pub(super) fn add_box<T>(&mut self) {
        self.bytes += size_of::<T>();
    }

    /// Records that a boxed struct of type `T` goes.
    pub(super) fn drop_box<T>(&mut self) {
        self.bytes -= size_of::<T>();
    }

    /// Makes room for `more` items. The list must grow by no more than that
    /// before the next call.
    pub(super) fn reserve<T>(&mut self, list: &mut Vec<T>, more: usize) {
        let need = list.len() + more;
        if need > list.capacity() {
            self.resize(list, |list| {
                list.reserve_exact(roomy(need) - list.len());
            });
        }
    }

    /// Gives memory back once more than half of it is unused. What stays
    /// leaves some room, so that a list whose length swings by one does not
    /// move each time.
    pub(super) fn trim<T>(&mut self, list: &mut Vec<T>) {
        if list.len() * 2 < list.capacity() {
            let keep = roomy(list.len() + list.len() / 2);
            self.resize(list, |list| list.shrink_to(keep));
        }
    }

    /// Gives back all memory beyond the next step of growth.
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

/// The capacity for a list of `len` items: very many groups have a handful of
/// messages each, so that a small list has little room to spare, but the second
/// item does not move the first; then in steps of eight. That is where the size
/// classes of common allocators lie for items of sixteen bytes.
fn roomy(len: usize) -> usize {
    match len {
        0 => 0,
        1..=12 => len.next_multiple_of(2),
        13..=16 => 16,
        _ => len.next_multiple_of(8),
    }
}
