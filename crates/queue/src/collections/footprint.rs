//! Estimates of what an allocation really takes, for the memory counts of the
//! queue.

/// The bytes that an allocation of this size takes, rounded up to the size classes
/// of jemalloc (its manual, "size classes"): 8, multiples of 16 up to 128, then
/// four classes to each doubling. 0 for no bytes.
pub const fn allocated(bytes: usize) -> usize {
    if bytes <= 8 {
        return if bytes == 0 { 0 } else { 8 };
    }
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
    }
    let step = bytes.next_power_of_two() / 8;
    bytes.next_multiple_of(step)
}

/// The bytes that room for this many elements takes, rounded up likewise.
pub const fn array<T>(capacity: usize) -> usize {
    allocated(capacity * size_of::<T>())
}

/// The bytes that a `BTreeMap` with entries of this size takes, an estimate. A node has room for 11
/// entries. Nodes are split 6 to 4 where keys come in ascending order, and the entry between
/// them goes one level up, so 7 entries come to a node; in any other order up to a sixth more.
pub const fn tree(entry: usize, len: usize) -> usize {
    const ROOM: usize = 11;
    const EACH: usize = 7;
    let leaf = allocated(ROOM * entry + 2 * size_of::<usize>());
    if len <= ROOM {
        return if len == 0 { 0 } else { leaf };
    }
    let inner = allocated(ROOM * entry + (ROOM + 3) * size_of::<usize>());
    let leaves = len.div_ceil(EACH);
    leaves * leaf + leaves.div_ceil(EACH - 1) * inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_jemalloc_classes() {
        let cases = [
            (0, 0),
            (1, 8),
            (9, 16),
            (16, 16),
            (100, 112),
            (128, 128),
            (129, 160),
            (160, 160),
            (257, 320),
            (320, 320),
            (321, 384),
            (1025, 1280),
        ];
        for (asked, taken) in cases {
            assert_eq!(allocated(asked), taken, "{asked}");
        }
    }
}
