//! DQ.LIST: the messages of a state, a page at a time.

use std::fmt;
use std::iter::Peekable;
use std::ops::Bound;

use crate::message::state::{State, StoredState};
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq, TimeIndex, NEVER};

/// Where the next page of a listing begins: after this time and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    time: Millis,
    number: u64,
}

impl Cursor {
    /// Parses a cursor sent by a client. "0" is the start of the listing,
    /// `Some(None)`. Returns `None` if the text is no cursor.
    pub fn parse(text: &[u8]) -> Option<Option<Cursor>> {
        if text == b"0" {
            return Some(None);
        }
        let text = std::str::from_utf8(text).ok()?;
        let (time, number) = text.split_once('-')?;
        Some(Some(Cursor {
            time: time.parse().ok()?,
            number: number.parse().ok()?,
        }))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}-{}", self.time, self.number)
    }
}

/// The filters of a listing.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// Only messages in this state.
    pub state: State,
    /// Only messages after this cursor.
    pub cursor: Option<Cursor>,
    /// Maximum number of messages to return.
    pub count: usize,
    /// Only messages of this group.
    pub group: Option<&'a [u8]>,
    /// Only messages with this TYPE label.
    pub label: Option<&'a [u8]>,
}

type Source<'a> = Peekable<Box<dyn Iterator<Item = (Millis, u64)> + 'a>>;

impl Queue {
    /// The next messages of a listing, and the cursor of the next page; `None` at
    /// the end.
    ///
    /// A call examines up to 10 x `count` messages, or up to 1,000 if that is more.
    /// It may therefore return fewer than `count`, or none, where a filter lets few
    /// through.
    pub fn list(&self, wanted: Listing, now: Millis) -> (Option<Cursor>, Vec<Seq>) {
        let mut found = Vec::new();
        let group = match wanted.group {
            Some(name) => match self.groups.find(name) {
                Some(ix) => Some(ix),
                None => return (None, found),
            },
            None => None,
        };
        let most = wanted.count.saturating_mul(10).max(1000);
        let mut sources = self.sources(wanted.state, wanted.cursor, now);
        let mut last = None;
        for _ in 0..most {
            let Some((time, number)) = next_of(&mut sources) else {
                return (None, found);
            };
            last = Some(Cursor { time, number });
            let seq = match wanted.state {
                State::Running => self.leases.find(number).map(|lease| lease.seq),
                _ => Some(number),
            };
            if let Some(seq) = seq.filter(|seq| self.is_wanted(*seq, &wanted, group, now)) {
                found.push(seq);
                if found.len() == wanted.count {
                    break;
                }
            }
        }
        let more = sources.iter_mut().any(|source| source.peek().is_some());
        (last.filter(|_| more), found)
    }

    fn is_wanted(&self, seq: Seq, wanted: &Listing, group: Option<GroupIx>, now: Millis) -> bool {
        let Some(message) = self.store.get(seq) else {
            return false;
        };
        let label = || {
            message
                .choices()
                .and_then(|choices| choices.label.as_deref())
        };
        self.state_of(message, now) == wanted.state
            && !self.is_purged(seq)
            && group.is_none_or(|ix| message.group == ix)
            && wanted.label.is_none_or(|wanted| label() == Some(wanted))
    }

    /// The indexes that hold the messages of a state, each sorted. A message whose
    /// due time has come counts as due, even if it was not promoted yet.
    fn sources(&self, state: State, cursor: Option<Cursor>, now: Millis) -> Vec<Source<'_>> {
        let from = match cursor {
            Some(cursor) => Bound::Excluded((cursor.time, cursor.number)),
            None => Bound::Unbounded,
        };
        let ahead = match cursor {
            Some(cursor) if cursor.time > now => from,
            _ => Bound::Excluded((now, Seq::MAX)),
        };
        let records = |stored| {
            let index = self.records.at(stored).into_iter();
            index.map(|index| source(index, from, NEVER)).collect()
        };
        match state {
            State::Delayed => self.not_yet_due(StoredState::Delayed, ahead),
            State::Retry => self.not_yet_due(StoredState::Retry, ahead),
            State::Ready | State::Blocked => self.due(state, from, now),
            State::Running => vec![boxed(self.leases.by_end(from))],
            State::Finished => records(StoredState::Finished),
            State::Dead => records(StoredState::Dead),
            State::Cancelled => records(StoredState::Cancelled),
        }
    }

    fn not_yet_due(&self, stored: StoredState, ahead: Bound<(Millis, u64)>) -> Vec<Source<'_>> {
        let indexes = self.waiting.indexes(stored);
        indexes.map(|index| source(index, ahead, NEVER)).collect()
    }

    fn due(&self, state: State, from: Bound<(Millis, u64)>, now: Millis) -> Vec<Source<'_>> {
        let mut sources = Vec::new();
        for (stored, until) in [
            (StoredState::Due, NEVER),
            (StoredState::Delayed, now),
            (StoredState::Retry, now),
        ] {
            if state == State::Ready {
                let plain = self.waiting.plain.indexes(stored);
                sources.extend(plain.map(|index| source(index, from, until)));
            }
            let grouped = self.waiting.grouped.indexes(stored);
            sources.extend(grouped.map(|index| source(index, from, until)));
        }
        sources
    }
}

/// The keys of an index after a bound, up to and including a time.
fn source(index: &TimeIndex, from: Bound<(Millis, u64)>, until: Millis) -> Source<'_> {
    let keys = index.range_from(from).map(|(key, ())| key);
    boxed(keys.take_while(move |(time, _)| *time <= until))
}

fn boxed<'a>(keys: impl Iterator<Item = (Millis, u64)> + 'a) -> Source<'a> {
    let keys: Box<dyn Iterator<Item = (Millis, u64)> + 'a> = Box::new(keys);
    keys.peekable()
}

/// Takes the smallest of the sources' next keys.
fn next_of(sources: &mut [Source]) -> Option<(Millis, u64)> {
    let (_, at) = sources
        .iter_mut()
        .enumerate()
        .filter_map(|(at, source)| Some((*source.peek()?, at)))
        .min()?;
    sources.get_mut(at)?.next()
}
