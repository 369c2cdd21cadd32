//! The walks of clients that list a state page by page.
//!
//! A message that moves within its state, because its lease or its due time moves, would be
//! missed by such a walk or seen twice. So while a walk is under way, it notes the places
//! that moved messages had when it began, and goes over them in these. A walk is a note of
//! this server: it is neither replicated nor saved.

use std::cell::RefCell;

use hashbrown::HashSet;

use super::cursor::Cursor;
use crate::collections::rare::{unused, Rare};
use crate::message::id::NameHasher;
use crate::message::state::State;
use crate::{Millis, TimeIndex};

/// How many walks of a queue may be under way. One more ends another: one that has never gone
/// on if there is any, because most of those who look at a first page want no second one.
const MOST: usize = 16;
/// A walk ends if its next page is not asked for within this time, in ms.
const IDLE: Millis = 60_000;
/// The states within which messages move.
const MOVING: [State; 6] = [
    State::Delayed,
    State::Ready,
    State::Blocked,
    State::Retry,
    State::Held,
    State::Running,
];

/// A walk over a state that is under way.
#[derive(Debug, Clone)]
pub(in crate::queue) struct Pages {
    number: u64,
    state: State,
    /// The time of its last page, in Unix ms.
    used_at: Millis,
    /// Whether it has gone on behind its first page.
    has_gone_on: bool,
    /// The last number that anything in the state had when it began. What came later need not
    /// be noted, so the notes of a walk are bounded.
    newest: u64,
    /// The places that moved messages had when it began: a time, and the number of a message
    /// or, if the state is running, a receipt.
    pub(super) places: TimeIndex,
    /// The numbers in these places.
    pub(super) moved: HashSet<u64, NameHasher>,
}

impl Pages {
    fn is_over(&self, now: Millis) -> bool {
        self.used_at.saturating_add(IDLE) < now
    }
}

unused!(Vec<Pages>);

/// All walks of a queue that are under way.
#[derive(Debug, Clone, Default)]
pub(in crate::queue) struct AllPages {
    /// The walk that was used last comes last.
    open: RefCell<Rare<Vec<Pages>>>,
}

impl AllPages {
    /// Takes the walk of a cursor out of the list, for its next page. `None` if there is none.
    pub(super) fn take(&self, cursor: Option<Cursor>, state: State, now: Millis) -> Option<Pages> {
        let number = cursor?.pages;
        let mut open = self.open.try_borrow_mut().ok()?;
        open.retain(|pages| !pages.is_over(now));
        let is_it = |pages: &Pages| pages.number == number && pages.state == state;
        let at = open.iter().position(is_it)?;
        Some(open.remove(at))
    }

    /// Puts a walk back after a page, or begins one behind its first page. `newest` is the last
    /// number of a message or, if the state is running, the last receipt. Returns the number
    /// of the walk, 0 if it needs none.
    pub(super) fn keep(&self, pages: Option<Pages>, state: State, newest: u64, now: Millis) -> u64 {
        let Ok(mut open) = self.open.try_borrow_mut() else {
            return 0;
        };
        if !MOVING.contains(&state) {
            return 0;
        }
        if open.len() == MOST {
            let first = open.iter().position(|pages| !pages.has_gone_on);
            open.remove(first.unwrap_or(0));
        }
        let has_gone_on = pages.is_some();
        let pages = pages.unwrap_or_else(|| {
            // A number that no walk has had, on another server or before a restart either.
            let last = open.iter().map(|pages| pages.number).max();
            Pages {
                number: now.max(last.unwrap_or(0) + 1),
                state,
                used_at: now,
                has_gone_on,
                newest,
                places: TimeIndex::new(),
                moved: HashSet::default(),
            }
        });
        let number = pages.number;
        open.push(Pages {
            used_at: now,
            has_gone_on,
            ..pages
        });
        number
    }

    /// Notes that a message moves within one of these states from its place, a time and a
    /// number. O(1) if no walk is under way.
    #[inline]
    pub(in crate::queue) fn note(&mut self, states: &[State], place: (Millis, u64), now: Millis) {
        let open = self.open.get_mut();
        if open.is_empty() {
            return;
        }
        open.retain(|pages| !pages.is_over(now));
        let is_in = |of: &&mut Pages| states.contains(&of.state) && place.1 <= of.newest;
        for pages in open.iter_mut().filter(is_in) {
            if pages.moved.insert(place.1) {
                pages.places.insert(place, ());
            }
        }
    }

    /// Whether any walk is under way.
    pub(in crate::queue) fn is_empty(&mut self) -> bool {
        self.open.get_mut().is_empty()
    }

    /// Bytes allocated, an estimate.
    pub(super) fn memory_bytes(&self) -> usize {
        let open = self.open.try_borrow().ok();
        let of_one = |pages: &Pages| {
            size_of::<Pages>() + pages.places.memory_bytes() + pages.moved.allocation_size()
        };
        open.map_or(0, |open| {
            open.box_bytes() + open.iter().map(of_one).sum::<usize>()
        })
    }
}
