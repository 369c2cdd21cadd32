//! What the entries of a set are made of: keys and measures.

/// A value kept beside a key, of which inner nodes keep the least in their
/// subtree.
///
/// `()` stands for "no measure" and takes no memory.
pub trait Measure: Copy + Ord {}

impl Measure for () {}

/// A time in milliseconds as a measure; see [`OrderedSet::first_at_most`](super::OrderedSet::first_at_most).
///
/// It takes eight bytes an entry beside a key aligned to eight bytes, such as
/// `(u64, u64)`, but sixteen beside a `u128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinTime(pub u64);

impl Measure for MinTime {}

/// What a set is in the order of.
pub trait Key: Copy + Ord {
    /// Whether it is lower than another: a search asks that of a dozen keys a
    /// node. Where two numbers compare as one, that takes no branches.
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

impl Key for (i8, u64) {}
