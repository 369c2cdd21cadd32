//! The reasons why GROUPS lists a group.

use crate::purges::{Known, Purged, Purges};

/// The set of reasons why a group is listed. Each but `OTHER` is one that a
/// purge over all groups can take from all of them at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons(u8);

impl Reasons {
    /// It has delayed messages.
    pub const DELAYED: u8 = 1;
    /// It has messages that are ready.
    pub const READY: u8 = 2;
    /// It has messages that are blocked.
    pub const BLOCKED: u8 = 4;
    /// Dead messages hold it.
    pub const HELD: u8 = 8;
    /// It has anything else: failed messages, leases or settings.
    pub const OTHER: u8 = 16;
    /// The number of possible sets.
    pub const ALL: usize = 32;

    /// This set, with `reason` added if `is` is true.
    pub fn with(self, reason: u8, is: bool) -> Reasons {
        Reasons(if is { self.0 | reason } else { self.0 })
    }

    /// The set with this number, below [`Reasons::ALL`].
    pub fn numbered(number: usize) -> Reasons {
        Reasons(number as u8)
    }

    /// Whether `reason` is in the set.
    pub fn has(self, reason: u8) -> bool {
        self.0 & reason != 0
    }

    /// The number of the set; 0 if it is empty.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The set that is left after a purge over all groups.
    pub fn without(self, purged: Purged) -> Reasons {
        let bit = match purged {
            Purged::Delayed => Reasons::DELAYED,
            Purged::Ready => Reasons::READY,
            Purged::Blocked => Reasons::BLOCKED,
            Purged::Holds => Reasons::HELD,
        };
        Reasons(self.0 & !bit)
    }

    /// The set that is left of this one, which counted the purges up to
    /// `known`, after all later ones.
    pub fn since(self, known: Known, purges: &Purges) -> Reasons {
        if known == purges.all() {
            return self;
        }
        let took = |purged: &Purged| purges.took(*purged, known);
        let taken = Purged::ALL.into_iter().filter(took);
        taken.fold(self, Reasons::without)
    }
}
