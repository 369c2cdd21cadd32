//! Purges over all groups.
//!
//! They take O(1): each is only counted. A group that does not know of it yet
//! has lost what it took, and is rid of it when something is done to it or
//! when its turn comes.

/// How often what all groups have in a state, or what holds them, was purged.
#[derive(Debug, Clone, Default)]
pub struct Purges {
    /// How many there were.
    count: u64,
    /// The number of the last of each kind, from 1 on; 0 where there was none.
    last: [u64; Purged::ALL.len()],
}

/// How many purges a group knows of: the low half of their count. Those that it
/// does not know of are never so many that it would be mistaken, since time lets
/// each group know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known(u32);

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
        self.count += 1;
        if let Some(last) = self.last.get_mut(purged as usize) {
            *last = self.count;
        }
    }

    /// All of them, as a group knows them.
    #[inline]
    pub fn all(&self) -> Known {
        Known(self.count as u32)
    }

    /// Whether there was one of this kind since those that are `known`.
    pub fn took(&self, purged: Purged, known: Known) -> bool {
        let unknown = self.all().0.wrapping_sub(known.0);
        let last = self.last.get(purged as usize).copied();
        last.is_some_and(|last| self.count - last < u64::from(unknown))
    }

    /// What a group has lost that knows of those that are `known` and since then
    /// stands in line, or does not.
    pub fn lost_since(&self, known: Known, in_line: bool) -> Lost {
        if self.all() == known {
            return Lost::default();
        }
        let due = match in_line {
            true => Purged::Ready,
            false => Purged::Blocked,
        };
        Lost {
            delayed: self.took(Purged::Delayed, known),
            due: self.took(due, known),
            line: in_line && self.took(Purged::Ready, known),
            holds: self.took(Purged::Holds, known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_lost_what_was_purged_since_it_was_told() {
        for before in [0, u64::from(u32::MAX) - 1, 1 << 40] {
            let mut purges = Purges {
                count: before,
                last: [0; 4],
            };
            let first = purges.all();
            assert_eq!(purges.lost_since(first, true), Lost::default());
            purges.count(Purged::Delayed);
            let second = purges.all();
            purges.count(Purged::Ready);
            let took = |known| Purged::ALL.map(|purged| purges.took(purged, known));
            assert_eq!(took(first), [true, true, false, false]);
            assert_eq!(took(second), [false, true, false, false]);
            assert_eq!(took(purges.all()), [false; 4]);
            let lost = purges.lost_since(second, true);
            assert_eq!((lost.delayed, lost.due, lost.line), (false, true, true));
            let lost = purges.lost_since(first, false);
            assert_eq!((lost.delayed, lost.due, lost.line), (true, false, false));
        }
    }
}
