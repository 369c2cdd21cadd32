//! DQ.FIND: the messages of a state that meet conditions, in steps.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::walk::Range;
use crate::glob::Glob;
use crate::message::state::State;
use crate::message::Message;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

/// A payload is matched up to this many bytes.
pub const MOST_OF_PAYLOAD: usize = 64 * 1024;
/// A step ends after it has matched this many bytes of text.
pub const MOST_TEXT: usize = 4 * 1024 * 1024;

/// The conditions of a search: a message is found if all given conditions hold. A message
/// that has no such text or value does not meet a condition on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Search<'a> {
    /// Only messages in this state.
    pub state: State,
    /// Its id matches this pattern.
    pub id: Option<Glob>,
    /// The message has this TYPE label.
    pub label: Option<&'a [u8]>,
    /// The message is of this group.
    pub group: Option<&'a [u8]>,
    /// The message is in this batch.
    pub batch: Option<&'a [u8]>,
    /// The message is a child of the message with this id in the queue with this key.
    pub parent: Option<(&'a [u8], &'a [u8])>,
    /// The message has a header of this field and value.
    pub header: Option<(&'a [u8], &'a [u8])>,
    /// The last error of the message matches this pattern.
    pub error: Option<Glob>,
    /// The first [`MOST_OF_PAYLOAD`] bytes of the message's payload match this pattern.
    pub payload: Option<Glob>,
    /// The message's time, by which the state is ordered, is at or after this one, in Unix ms.
    pub since: Option<Millis>,
    /// The message's time, by which the state is ordered, is before this one, in Unix ms.
    pub until: Option<Millis>,
    /// Whether to begin with the last message.
    pub reverse: bool,
    /// Only messages behind this cursor, in the direction of the search.
    pub cursor: Option<Cursor>,
    /// Maximum number of messages that a step examines.
    pub count: usize,
}

impl Queue {
    /// One step of a search: the messages that it found, and the cursor of the next
    /// step; `None` at the end.
    ///
    /// O(count), and up to 16 operations for each byte of the text that it matches,
    /// which is at most [`MOST_TEXT`] bytes and the texts of one message. A text
    /// without sets is found many bytes at a time.
    pub fn search(&self, wanted: &Search, now: Millis) -> (Option<Cursor>, Vec<Seq>) {
        let mut found = Vec::new();
        let group = match wanted.group.map(|name| self.state.groups.find(name)) {
            Some(None) => return (None, found),
            Some(ix) => ix,
            None => None,
        };
        if wanted
            .parent
            .is_some_and(|parent| !self.has_children_of(parent))
        {
            return (None, found);
        }
        let range = Range::new(wanted.since, wanted.until, wanted.cursor, wanted.reverse);
        let mut walk = self.walk(wanted.state, range, now);
        let (mut last, mut text) = (None, 0);
        for (cursor, seq) in walk.by_ref().take(wanted.count) {
            last = Some(cursor);
            let message = self.state.store.get(seq);
            let meets = |message| self.meets(seq, message, wanted, group, now, &mut text);
            if message.is_some_and(meets) {
                found.push(seq);
            }
            if text >= MOST_TEXT {
                break;
            }
        }
        (last.filter(|_| walk.has_more()), found)
    }

    /// Whether a message meets all conditions. Adds the bytes of text that were
    /// matched to `text`.
    fn meets(
        &self,
        seq: Seq,
        message: &Message,
        wanted: &Search,
        group: Option<GroupIx>,
        now: Millis,
        text: &mut usize,
    ) -> bool {
        let choices = message.choices();
        let label = || choices.and_then(|choices| choices.label.as_deref());
        let has_header = |(field, value): (&[u8], &[u8])| {
            let mut headers = choices.iter().flat_map(|choices| choices.headers.iter());
            headers.any(|(f, v)| **f == *field && **v == *value)
        };
        if self.state_of(message, now) != wanted.state
            || group.is_some_and(|ix| message.group != ix)
            || wanted.batch.is_some() && self.batch_of(seq) != wanted.batch
            || wanted
                .parent
                .is_some_and(|parent| !self.is_child_of(seq, parent))
            || wanted.label.is_some_and(|wanted| label() != Some(wanted))
            || wanted.header.is_some_and(|header| !has_header(header))
        {
            return false;
        }
        let mut matches = |glob: &Option<Glob>, of: Option<&[u8]>| match (glob, of) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(glob), Some(of)) => {
                *text += of.len();
                glob.matches(of)
            }
        };
        let error = message.texts().and_then(|texts| texts.error.as_deref());
        let payload = match wanted.payload {
            Some(_) => self.content(message).payload.bytes(),
            None => Cow::default(),
        };
        let payload = payload.get(..MOST_OF_PAYLOAD).unwrap_or(&payload);
        matches(&wanted.id, Some(self.id_of(seq, message).as_bytes()))
            && matches(&wanted.error, error)
            && matches(&wanted.payload, Some(payload))
    }
}
