//! The work that a change of one queue owes to others: the core settles it
//! ([`dq_queue::keyspace`]).

use super::change::Begun;
use super::{Neighbours, KEYS};
use dq_queue::codec::log_entry::Creation;
use dq_queue::dead_letters::Stays;
use dq_queue::keyspace::{self, At, Keyspace, Opened};
use dq_queue::queue::ends::Owed;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Error, Moment, Op, Queue};

impl Neighbours {
    /// Delivers what the last changes of a queue owe to others.
    pub(super) fn deliver(&mut self, key: &'static [u8]) {
        let place = self.places.get_mut(key);
        let owed = place.and_then(|place| place.queue.take_owed(key));
        if let Some(owed) = owed {
            self.sent += 1;
            keyspace::settle(self, key, owed);
        }
    }
}

impl Keyspace for Neighbours {
    fn change<R>(
        &mut self,
        key: &[u8],
        _: &[u8],
        change: impl FnOnce(&mut dyn Opened) -> R,
    ) -> Result<(R, Option<Owed>), Stays> {
        let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
            return Err(Stays::Type);
        };
        let mut opened = OpenedPlace {
            server: self,
            key,
            begun: None,
        };
        let result = change(&mut opened);
        opened.end();
        let place = self.places.get_mut(key);
        Ok((result, place.and_then(|place| place.queue.take_owed(key))))
    }
}

/// A key that is open for what another change means for it.
struct OpenedPlace<'n> {
    server: &'n mut Neighbours,
    key: &'static [u8],
    begun: Option<Begun>,
}

impl OpenedPlace<'_> {
    fn begin(&mut self) -> Begun {
        let (server, key) = (&mut *self.server, self.key);
        *self
            .begun
            .get_or_insert_with(|| server.begin_without_events(key))
    }

    /// Records the beginning of a change in which nothing was done.
    fn end(&mut self) {
        if let Some(begun) = self.begun.filter(|begun| !begun.before.is_nothing()) {
            // A Tick is never refused.
            let _ = self.server.apply(self.key, begun, &Op::Tick);
        }
    }
}

impl Opened for OpenedPlace<'_> {
    fn queue(&mut self) -> Option<(&Queue, Moment)> {
        let moment = self.begin().moment;
        let place = self.server.places.get(self.key)?;
        Some((&place.queue, moment))
    }

    fn apply(&mut self, op: &Op, at: At) -> Result<Option<Done>, Error> {
        let Some(place) = self.server.places.get(self.key) else {
            if !matches!(op, Op::AckSend(_)) {
                return Ok(None);
            }
            let creation = Creation {
                settings: Settings::default(),
                clock: Clock::Server,
                salt: 7,
            };
            return self.server.make(self.key, creation, op).map(Some);
        };
        let begun = match at {
            At::LastChange => Begun::at(place.queue.last_moment()),
            At::Now => {
                let begun = self.begin();
                self.begun = Some(Begun::at(begun.moment));
                begun
            }
        };
        self.server.apply(self.key, begun, op).map(Some)
    }
}
