//! The parts of a set's entry: a key, and a measure whose minimum the tree
//! maintains.

/// A value beside a key. Inner nodes know the least one in each subtree.
///
/// `()` means that there is no measure, and takes no memory.
pub trait Measure: Copy + Ord {}

impl Measure for () {}

/// A time in milliseconds as a measure; see [`OrderedSet::first_at_most`](super::OrderedSet::first_at_most).
///
/// It takes eight bytes an entry beside a key aligned to eight bytes, such as
/// `(u64, u64)`, but sixteen beside a `u128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinTime(pub u64);

impl Measure for MinTime {}

/// The key of an entry, which determines the order of a set.
pub trait Key: Copy + Ord {
    /// Whether this key is lower than the other. A search compares about a dozen
    /// keys in each node; keys of two numbers are compared as one, without
    /// branches.
    #[inline]
    fn goes_before(&self, other: &Self) -> bool {
        self < other
    }
}

impl Key for (u64, u64) {
    #[inline]
    fn goes_before(&self, other: &Self) -> bool {
        let joined = |(high, low): &(u64, u64)| u128::from(*high) << 64 | u128::from(*low);
        joined(self) < joined(other)
    }
}

impl Key for u64 {}
