//! Draws searches.

use std::borrow::Cow;

use super::{one_of, Ops};
use dq_queue::glob::Glob;
use dq_queue::message::state::State;
use dq_queue::op::FindAct;
use dq_queue::queue::inspect::find::Search;
use dq_queue::Millis;

/// A name in a command of a client.
type Name = Cow<'static, [u8]>;

/// The conditions of a search, with the names in them.
pub struct Conditions {
    state: State,
    id: Option<Glob>,
    label: Option<Name>,
    group: Option<Name>,
    batch: Option<Name>,
    parent: Option<(&'static [u8], Name)>,
    header: Option<(Name, Name)>,
    error: Option<Glob>,
    payload: Option<Glob>,
    since: Option<Millis>,
    until: Option<Millis>,
    reverse: bool,
    count: usize,
}

impl Conditions {
    /// The search by the conditions.
    pub fn search(&self) -> Search<'_> {
        Search {
            state: self.state,
            id: self.id.clone(),
            label: self.label.as_deref(),
            group: self.group.as_deref(),
            batch: self.batch.as_deref(),
            parent: self.parent.as_ref().map(|(key, id)| (*key, &**id)),
            header: self
                .header
                .as_ref()
                .map(|(field, value)| (&**field, &**value)),
            error: self.error.clone(),
            payload: self.payload.clone(),
            since: self.since,
            until: self.until,
            reverse: self.reverse,
            cursor: None,
            count: self.count,
        }
    }
}

impl Ops<'_> {
    /// Draws the conditions of a search that is for `act`.
    pub fn conditions(&mut self, act: FindAct) -> Conditions {
        Conditions {
            state: match act {
                FindAct::Redrive => State::Dead,
                _ => *one_of(self.rng, &State::ALL),
            },
            id: self.maybe(6, |a| {
                Glob::new(one_of::<&[u8]>(a.rng, &[b"i*", b"*1*", b"*-*"]))
            }),
            label: self.maybe(8, Self::id),
            group: self.maybe(8, Self::group),
            batch: self.maybe(8, |a| Cow::Owned(vec![b'a' + a.rng.u8(0..4)])),
            parent: self.maybe(8, |a| (a.key(), a.id())),
            header: self.maybe(12, |a| (a.text(), a.text())),
            error: self.maybe(8, |a| {
                Glob::new(one_of::<&[u8]>(a.rng, &[b"*", b"*e*", b"x"]))
            }),
            payload: self.maybe(4, |_| Glob::new(b"*e*")),
            since: self.maybe(4, |a| a.some_time()),
            until: self.maybe(4, |a| a.some_time()),
            reverse: self.one_in(2),
            count: self.rng.usize(1..2 + self.profile.batch),
        }
    }

    /// Draws a time that is not far from now.
    fn some_time(&mut self) -> Millis {
        let from = self.now.saturating_sub(2 * self.profile.ms);
        from + self.rng.u64(0..4 * self.profile.ms)
    }
}
