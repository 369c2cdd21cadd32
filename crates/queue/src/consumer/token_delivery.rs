//! The last delivery of a consumer that asks with tokens.

use crate::collections::footprint::allocated;
use crate::Receipt;

/// A delivery that was asked for with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenDelivery {
    /// The token.
    pub token: Box<[u8]>,
    /// The first of its receipts, which are consecutive.
    pub first: Receipt,
    /// How many receipts it has; at least 1, and 0 only with `applied`.
    pub count: u64,
    /// The effects that the FETCH has applied (APPLY), as [`effect`](crate::codec::effect) writes
    /// it.
    pub applied: Option<Box<[u8]>>,
}

impl TokenDelivery {
    /// Its receipts.
    pub fn receipts(&self) -> std::ops::Range<Receipt> {
        self.first..self.first.saturating_add(self.count)
    }

    /// The bytes of its token and of what its effects have replied.
    pub(super) fn heap_bytes(&self) -> usize {
        let applied = self.applied.as_ref().map_or(0, |applied| applied.len());
        allocated(self.token.len()) + allocated(applied)
    }
}
