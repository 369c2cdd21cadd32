//! Why GROUPS lists a group.

use super::purges::{Known, Purged, Purges};

/// For what a group is listed: something that all groups can lose at once, or
/// something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons(u8);

impl Reasons {
    /// It has delayed messages.
    pub const DELAYED: u8 = 1;
    /// It has messages that are ready.
    pub const READY: u8 = 2;
    /// It has messages that are blocked.
    pub const BLOCKED: u8 = 4;
    /// It is held by dead messages.
    pub const HELD: u8 = 8;
    /// Anything else: failed messages, leases, settings.
    pub const OTHER: u8 = 16;
    /// How many combinations there are.
    pub const ALL: usize = 32;

    /// These and another one, if it `is` one.
    pub fn with(self, reason: u8, is: bool) -> Reasons {
        Reasons(if is { self.0 | reason } else { self.0 })
    }

    /// The combination with this number.
    pub fn numbered(number: usize) -> Reasons {
        Reasons(number as u8)
    }

    /// Whether this reason is one of them.
    pub fn has(self, reason: u8) -> bool {
        self.0 & reason != 0
    }

    /// Its number; 0 where there is no reason.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// Those that are left after a purge.
    pub fn without(self, purged: Purged) -> Reasons {
        let bit = match purged {
            Purged::Delayed => Reasons::DELAYED,
            Purged::Ready => Reasons::READY,
            Purged::Blocked => Reasons::BLOCKED,
            Purged::Holds => Reasons::HELD,
        };
        Reasons(self.0 & !bit)
    }

    /// Those that are left since the purges that were `known`.
    pub fn since(self, known: Known, purges: &Purges) -> Reasons {
        if known == purges.all() {
            return self;
        }
        let took = |purged: &Purged| purges.took(*purged, known);
        let taken = Purged::ALL.into_iter().filter(took);
        taken.fold(self, Reasons::without)
    }
}
