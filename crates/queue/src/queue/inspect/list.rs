//! DQ.LIST: the messages of a state, page by page.

use super::cursor::Cursor;
use super::walk::Range;
use crate::message::state::State;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

/// The filters of a listing.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// Only messages in this state.
    pub state: State,
    /// Only messages behind this cursor, in the direction of the listing.
    pub cursor: Option<Cursor>,
    /// Whether the last message comes first.
    pub reverse: bool,
    /// Maximum number of messages to return.
    pub count: usize,
    /// Only messages of this group.
    pub group: Option<&'a [u8]>,
    /// Only messages with this TYPE label.
    pub label: Option<&'a [u8]>,
}

impl Queue {
    /// The next messages of a listing, and the cursor of the next page; `None` at
    /// the end. A message that stays in the state meanwhile is in exactly one page, wherever
    /// it moves.
    ///
    /// A call examines up to 10 x `count` messages, or up to 1,000 if that is more.
    /// It may therefore return fewer than `count`, or none, where a filter lets few
    /// through.
    pub fn list(&self, wanted: Listing, now: Millis) -> (Option<Cursor>, Vec<Seq>) {
        let group = match wanted.group {
            Some(name) => match self.state.groups.find(name) {
                Some(ix) => Some(ix),
                None => return (None, Vec::new()),
            },
            None => None,
        };
        let most = wanted.count.saturating_mul(10).max(1000);
        let range = Range::new(None, None, wanted.cursor, wanted.reverse);
        let pages = self.notes.pages.take(wanted.cursor, wanted.state, now);
        let walk = self.walk(wanted.state, range, now);
        let mut walk = walk.of_pages(pages.as_ref(), range);
        let (mut last, mut found) = (None, Vec::new());
        for (cursor, seq) in walk.by_ref().take(most) {
            last = Some(cursor);
            if self.is_wanted(seq, &wanted, group, now) {
                found.push(seq);
                if found.len() == wanted.count {
                    break;
                }
            }
        }
        let next = last.filter(|_| walk.has_more());
        drop(walk);
        let newest = match wanted.state {
            State::Running => self.state.last_receipt,
            _ => self.state.next_seq,
        };
        let next = next.map(|mut cursor| {
            cursor.pages = self.notes.pages.keep(pages, wanted.state, newest, now);
            cursor
        });
        (next, found)
    }

    fn is_wanted(&self, seq: Seq, wanted: &Listing, group: Option<GroupIx>, now: Millis) -> bool {
        let Some(message) = self.state.store.get(seq) else {
            return false;
        };
        let label = || {
            message
                .choices()
                .and_then(|choices| choices.label.as_deref())
        };
        self.state_of(message, now) == wanted.state
            && group.is_none_or(|ix| message.group == ix)
            && wanted.label.is_none_or(|wanted| label() == Some(wanted))
    }
}
