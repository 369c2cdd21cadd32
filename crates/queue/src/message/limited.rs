//! The options LIMITS and COST of a message.

/// The most limits that a message names.
pub const MAX_LIMITS: usize = 8;

/// The limits that a message needs room in, and its cost for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    /// The names of the limits, in the order given: at most 8, each once. None where only a
    /// COST was given.
    pub names: Box<[Box<[u8]>]>,
    /// The cost of a delivery for each limit; 1 by default.
    pub cost: u64,
}

impl Limited {
    /// A key that messages with the same limits have in common: their names in the order
    /// of their bytes, each behind its length.
    pub fn key(&self) -> Vec<u8> {
        let mut names: Vec<&[u8]> = self.names.iter().map(|name| &**name).collect();
        names.sort_unstable();
        let mut key = Vec::new();
        for name in names {
            key.extend_from_slice(&(name.len() as u16).to_be_bytes());
            key.extend_from_slice(name);
        }
        key
    }

    /// Bytes that the names have allocated.
    pub fn heap_bytes(&self) -> usize {
        use crate::collections::footprint::allocated;
        let names = self.names.iter().map(|name| allocated(name.len()));
        allocated(self.names.len() * size_of::<Box<[u8]>>()) + names.sum::<usize>()
    }
}
