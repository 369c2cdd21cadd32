//! Data that others leave with a message while it is in the queue: the note of a
//! consumer, a signal, and the message that is to be sent in its place when its run has
//! ended.

use super::rerun::Rerun;
use crate::collections::footprint::allocated;
use crate::Receipt;

/// The data that is left with a message. Most such messages have nothing but a note.
#[derive(Debug, Clone, PartialEq)]
pub enum Left {
    /// The note of a consumer; never empty.
    Note(Box<[u8]>),
    /// Other data than a note alone.
    More(Box<More>),
}

/// All data that can be left with a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct More {
    /// The note that a consumer leaves for the next attempt; never empty.
    pub note: Option<Box<[u8]>>,
    /// The signal that came last.
    pub signal: Option<Signal>,
    /// The message that is sent in its place when its run has ended.
    pub rerun: Option<Box<Rerun>>,
}

/// A signal to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Its text, which may be empty.
    pub text: Box<[u8]>,
    /// The receipt of the delivery that was running when the signal came, and so has not
    /// got it; 0 if there was none.
    pub during: Receipt,
}

impl Left {
    /// The shortest form; `None` if no data is left.
    fn of(more: More) -> Option<Box<Left>> {
        let has_more = more.signal.is_some() || more.rerun.is_some();
        match (more.note, has_more) {
            (note, true) => Some(Left::More(Box::new(More { note, ..more }))),
            (note, false) => note.map(Left::Note),
        }
        .map(Box::new)
    }

    /// Changes the data that is left with a message.
    pub fn change(left: &mut Option<Box<Left>>, change: impl FnOnce(&mut More)) {
        let mut more = match left.take().map(|left| *left) {
            None => More::default(),
            Some(Left::Note(text)) => More {
                note: Some(text),
                ..More::default()
            },
            Some(Left::More(more)) => *more,
        };
        change(&mut more);
        *left = Left::of(more);
    }

    /// The note.
    pub fn note(&self) -> Option<&[u8]> {
        match self {
            Left::Note(text) => Some(text),
            Left::More(more) => more.note.as_deref(),
        }
    }

    /// The signal that came last.
    pub fn signal(&self) -> Option<&Signal> {
        match self {
            Left::Note(_) => None,
            Left::More(more) => more.signal.as_ref(),
        }
    }

    /// The message that is sent in its place when its run has ended.
    pub fn rerun(&self) -> Option<&Rerun> {
        match self {
            Left::Note(_) => None,
            Left::More(more) => more.rerun.as_deref(),
        }
    }

    /// Bytes allocated, including its own allocation.
    pub fn heap_bytes(&self) -> usize {
        let text = |text: Option<&[u8]>| text.map_or(0, |text| allocated(text.len()));
        let more = match self {
            Left::Note(_) => 0,
            Left::More(_) => allocated(size_of::<More>()),
        };
        let rerun = self.rerun().map_or(0, Rerun::heap_bytes);
        let signal = text(self.signal().map(|signal| &*signal.text));
        allocated(size_of::<Left>()) + more + text(self.note()) + signal + rerun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_takes_no_more_room_than_its_text_and_16_bytes() {
        assert_eq!(size_of::<Left>(), 16);
        let mut left = None;
        Left::change(&mut left, |more| {
            more.note = Some(b"note".as_slice().into())
        });
        assert!(matches!(left.as_deref(), Some(Left::Note(_))));
        Left::change(&mut left, |more| more.note = None);
        assert_eq!(left, None);
    }
}
