//! Purges over all groups.
//!
//! They take O(1): each is only counted. A group that does not know of it yet
//! has lost what it took, and is rid of it when something is done to it or
//! when its turn comes.

use super::line::LineKey;

/// How often what all groups have in a state, or what holds them, was purged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purges {
    delayed: u32,
    ready: u32,
    blocked: u32,
    holds: u32,
}

/// What all groups have and can lose at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purged {
    /// What is not due yet and has not failed.
    Delayed,
    /// What is due in groups that stand in line.
    Ready,
    /// What is due in the other groups.
    Blocked,
    /// The dead messages that hold them. Only where all else is purged, too: none
    /// of them can give anything then, so that none has to join the line.
    Holds,
}

impl Purged {
    /// All of them.
    pub const ALL: [Purged; 4] = [
        Purged::Delayed,
        Purged::Ready,
        Purged::Blocked,
        Purged::Holds,
    ];
}

/// What a group has lost without knowing it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Its delayed messages.
    pub delayed: bool,
    /// Its due messages.
    pub due: bool,
    /// Its place in the line.
    pub line: bool,
    /// What held it.
    pub holds: bool,
}

impl Purges {
    /// Counts one more.
    pub fn count(&mut self, purged: Purged) {
        let count = match purged {
            Purged::Delayed => &mut self.delayed,
            Purged::Ready => &mut self.ready,
            Purged::Blocked => &mut self.blocked,
            Purged::Holds => &mut self.holds,
        };
        *count = count.wrapping_add(1);
    }

    /// Whether there was one of this state since those that `known` counts.
    pub fn took(&self, purged: Purged, known: &Purges) -> bool {
        match purged {
            Purged::Delayed => self.delayed != known.delayed,
            Purged::Ready => self.ready != known.ready,
            Purged::Blocked => self.blocked != known.blocked,
            Purged::Holds => self.holds != known.holds,
        }
    }

    /// What a group has lost that knows of `known` and has stood in line, or
    /// has not, since then.
    pub fn lost_since(&self, known: &Purges, line: Option<LineKey>) -> Lost {
        if self == known {
            return Lost::default();
        }
        let line = line.is_some();
        let due = match line {
            true => Purged::Ready,
            false => Purged::Blocked,
        };
        Lost {
            delayed: self.took(Purged::Delayed, known),
            due: self.took(due, known),
            line: line && self.took(Purged::Ready, known),
            holds: self.took(Purged::Holds, known),
        }
    }
}
