//! The small types by which other types refer to things: numbers of messages, deliveries,
//! groups and consumers, and times.

use std::num::NonZeroU32;

/// A duration in milliseconds, or a point of time as Unix time in milliseconds.
pub type Millis = u64;
/// The sequence number of a message in its queue: 1, 2, 3 ... in send order.
pub type Seq = u64;
/// The number of one delivery. It grows over the life of a queue and is never
/// reused.
pub type Receipt = u64;

/// The largest value of an argument in milliseconds, a receipt or a limit: 2^53 -
/// 1, which every client language can represent exactly.
pub const MAX_EXACT: u64 = (1 << 53) - 1;
/// A point of time that never comes. It means that something has no end, or has not happened.
pub const NEVER: Millis = u64::MAX;

/// The number of a group in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIx(
    /// The number of its slot plus one. It is never 0, so an `Option` of a position
    /// in the ready line takes no more room than the position.
    NonZeroU32,
);

impl GroupIx {
    /// No group.
    pub const NONE: GroupIx = GroupIx(NonZeroU32::MAX);

    /// The group in this slot.
    pub(crate) fn in_slot(slot: usize) -> GroupIx {
        let number = u32::try_from(slot)
            .ok()
            .and_then(|slot| slot.checked_add(1));
        number
            .and_then(NonZeroU32::new)
            .map_or(GroupIx::NONE, GroupIx)
    }

    /// The slot of the group.
    pub(crate) fn slot(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Whether this is a group, not [`GroupIx::NONE`].
    pub fn is_some(self) -> bool {
        self != GroupIx::NONE
    }

    /// The number of its slot, which is stable as long as the group exists.
    pub fn number(self) -> u64 {
        u64::from(self.0.get()) - 1
    }
}

/// The number of a consumer in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerIx(pub(crate) u32);

impl ConsumerIx {
    /// No consumer: the fetch named none.
    pub const NONE: ConsumerIx = ConsumerIx(u32::MAX);

    /// The number of its slot.
    pub fn number(self) -> u64 {
        u64::from(self.0)
    }
}

/// The number of a limit with a name in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitIx(u32);

impl LimitIx {
    /// The limit in this slot.
    pub(crate) fn in_slot(slot: usize) -> LimitIx {
        LimitIx(u32::try_from(slot).unwrap_or(u32::MAX))
    }

    /// The slot of the limit.
    pub(crate) fn slot(self) -> usize {
        self.0 as usize
    }

    /// The number of its slot, which is stable as long as the limit exists.
    pub fn number(self) -> u64 {
        self.0.into()
    }
}
