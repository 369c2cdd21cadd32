//! Sets of byte values, as `[a-z]` in a pattern is one.

/// A set of byte values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(super) const NONE: ByteSet = ByteSet([0; 4]);
    pub(super) const ANY: ByteSet = ByteSet([u64::MAX; 4]);

    pub(super) fn of(byte: u8) -> ByteSet {
        let mut set = ByteSet::NONE;
        set.insert(byte);
        set
    }

    pub(super) fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    pub(super) fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6)).copied();
        word.unwrap_or_default() >> (byte & 63) & 1 == 1
    }

    /// Its only member, if it has no other.
    pub(super) fn only(&self) -> Option<u8> {
        let mut members = (0..=u8::MAX).filter(|byte| self.contains(*byte));
        members.next().filter(|_| members.next().is_none())
    }

    fn complement(self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }
}

/// Reads a set of bytes after its `[`, up to its `]` or to the end of the pattern.
pub(super) fn class(rest: &mut &[u8]) -> ByteSet {
    let is_negated = rest.first() == Some(&b'^');
    if is_negated {
        *rest = rest.get(1..).unwrap_or_default();
    }
    let mut set = ByteSet::NONE;
    loop {
        let len = match **rest {
            [] => break,
            [b'\\', byte, ..] => {
                set.insert(byte);
                2
            }
            [b']', ..] => {
                *rest = rest.get(1..).unwrap_or_default();
                break;
            }
            [from, b'-', to, ..] => {
                (from.min(to)..=from.max(to)).for_each(|byte| set.insert(byte));
                3
            }
            [byte, ..] => {
                set.insert(byte);
                1
            }
        };
        *rest = rest.get(len..).unwrap_or_default();
    }
    match is_negated {
        true => set.complement(),
        false => set,
    }
}
