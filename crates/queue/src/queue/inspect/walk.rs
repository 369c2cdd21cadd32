//! Goes over the messages of a state in the order in which they are listed.

use std::iter::Peekable;
use std::ops::Bound::Included;

use super::cursor::Cursor;
use super::pages::Pages;
use crate::message::state::{State, StoredState};
use crate::queue::Queue;
use crate::{Millis, Seq, TimeIndex, NEVER};

/// The part of a state to go over, and the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The lower end, which is included.
    low: Cursor,
    /// The upper end, which is not included.
    high: Cursor,
    is_reverse: bool,
}

impl Range {
    /// The times from `since` on and before `until`, behind the cursor in the
    /// direction of the walk: from the first to the last, or the other way if
    /// `is_reverse` is set.
    pub fn new(
        since: Option<Millis>,
        until: Option<Millis>,
        cursor: Option<Cursor>,
        is_reverse: bool,
    ) -> Range {
        let mut range = Range {
            low: Cursor::start_of(since.unwrap_or(0)),
            high: Cursor::start_of(until.unwrap_or(NEVER)),
            is_reverse,
        };
        match cursor {
            Some(cursor) if is_reverse => range.high = range.high.min(cursor),
            Some(cursor) => range.low = range.low.max(cursor.next()),
            None => {}
        }
        range
    }

    /// The part of the range whose time is after `now`.
    fn after(self, now: Millis) -> Range {
        let first = Cursor::start_of(now.saturating_add(1));
        Range {
            low: self.low.max(first),
            ..self
        }
    }

    /// The part of the range whose time is `now` or before.
    fn by(self, now: Millis) -> Range {
        let end = Cursor::start_of(now.saturating_add(1));
        Range {
            high: self.high.min(end),
            ..self
        }
    }
}

type Keys<'a> = Peekable<Box<dyn Iterator<Item = (Millis, u64)> + 'a>>;

/// A walk over the messages that may be in a state. The caller filters by the state
/// itself, because an index may hold messages of two states.
pub(in crate::queue) struct Walk<'a> {
    queue: &'a Queue,
    sources: Vec<Keys<'a>>,
    is_running: bool,
    is_reverse: bool,
    /// The walk page by page to which this one belongs.
    pages: Option<&'a Pages>,
    /// The source with the places that moved messages had when that walk began.
    of_moved: usize,
}

/// Stands for a message that has moved since, where it is now. No message has this number.
const MOVED: Seq = 0;

impl<'a> Walk<'a> {
    /// Goes over the messages that have moved since a walk page by page began in the places
    /// that they had then. Where they are now it gives [`MOVED`].
    pub fn of_pages(mut self, pages: Option<&'a Pages>, range: Range) -> Walk<'a> {
        if let Some(pages) = pages.filter(|pages| !pages.moved.is_empty()) {
            self.pages = Some(pages);
            self.of_moved = self.sources.len();
            self.sources.push(keys(&pages.places, range));
        }
        self
    }

    /// Whether there are further messages. O(1).
    pub fn has_more(&mut self) -> bool {
        self.sources.iter_mut().any(|keys| keys.peek().is_some())
    }
}

/// The position of each message, and its number.
impl Iterator for Walk<'_> {
    type Item = (Cursor, Seq);

    fn next(&mut self) -> Option<(Cursor, Seq)> {
        loop {
            let sources = self.sources.iter_mut().enumerate();
            let heads = sources.filter_map(|(at, keys)| Some((*keys.peek()?, at)));
            let (_, at) = match self.is_reverse {
                true => heads.max()?,
                false => heads.min()?,
            };
            let (time, number) = self.sources.get_mut(at)?.next()?;
            let has_moved = |pages: &Pages| pages.moved.contains(&number);
            let seq = match self.is_running {
                _ if at != self.of_moved && self.pages.is_some_and(has_moved) => Some(MOVED),
                true => self.queue.state.leases.find(number).map(|lease| lease.seq),
                false => Some(number),
            };
            if let Some(seq) = seq {
                let cursor = Cursor {
                    time,
                    number,
                    pages: 0,
                };
                return Some((cursor, seq));
            }
        }
    }
}

impl Queue {
    /// Goes over the messages of a state at `now`. A message whose due time has come
    /// counts as due, even if it was not promoted yet. O(log n) to start, then O(1)
    /// for each message.
    pub(in crate::queue) fn walk(&self, state: State, range: Range, now: Millis) -> Walk<'_> {
        let records = |stored| {
            let indexes = self.state.records.indexes(stored);
            indexes.map(|index| keys(index, range)).collect()
        };
        let not_yet_due = |stored| {
            let indexes = self.indexes.waiting.indexes(stored);
            indexes.map(|index| keys(index, range.after(now))).collect()
        };
        let sources = match state {
            State::Delayed => not_yet_due(StoredState::Delayed),
            State::Retry => not_yet_due(StoredState::Retry),
            State::Ready | State::Blocked => self.due(state, range, now),
            State::Running => vec![self.ends_of_leases(range)],
            State::Finished => records(StoredState::Finished),
            State::Dead => records(StoredState::Dead),
            State::Cancelled => records(StoredState::Cancelled),
            State::Held => vec![keys(&self.indexes.held.all, range)],
        };
        Walk {
            queue: self,
            sources,
            is_running: state == State::Running,
            is_reverse: range.is_reverse,
            pages: None,
            of_moved: 0,
        }
    }

    fn due(&self, state: State, range: Range, now: Millis) -> Vec<Keys<'_>> {
        let mut sources = Vec::new();
        for (stored, range) in [
            (StoredState::Due, range),
            (StoredState::Delayed, range.by(now)),
            (StoredState::Retry, range.by(now)),
        ] {
            if state == State::Ready {
                let plain = self.indexes.waiting.plain.indexes(stored);
                sources.extend(plain.map(|index| keys(index, range)));
            }
            let grouped = self.indexes.waiting.grouped.indexes(stored);
            sources.extend(grouped.map(|index| keys(index, range)));
        }
        sources
    }

    fn ends_of_leases(&self, range: Range) -> Keys<'_> {
        let (low, high) = (range.low.key(), range.high.key());
        if range.is_reverse {
            let ends = self.state.leases.by_end_back(high);
            boxed(ends.take_while(move |end| *end >= low))
        } else {
            let ends = self.state.leases.by_end(Included(low));
            boxed(ends.take_while(move |end| *end < high))
        }
    }
}

/// The keys of an index within a range, in its direction.
fn keys(index: &TimeIndex, range: Range) -> Keys<'_> {
    let (low, high) = (range.low.key(), range.high.key());
    if range.is_reverse {
        let keys = index.back_from(high).map(|(key, ())| key);
        boxed(keys.take_while(move |key| *key >= low))
    } else {
        let keys = index.range_from(Included(low)).map(|(key, ())| key);
        boxed(keys.take_while(move |key| *key < high))
    }
}

fn boxed<'a>(keys: impl Iterator<Item = (Millis, u64)> + 'a) -> Keys<'a> {
    let keys: Box<dyn Iterator<Item = (Millis, u64)> + 'a> = Box::new(keys);
    keys.peekable()
}
