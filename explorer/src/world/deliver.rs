//! The consequences that a change of one queue has for others. The core settles them
//! ([`dq_queue::keyspace`]); this file opens the queues of this world for it.

use super::begin::Begun;
use super::commit::creation;
use super::{Key, Step, World};
use dq_queue::dead_letters::Stays;
use dq_queue::keyspace::{self, At, Keyspace, Opened};
use dq_queue::queue::ends::Owed;
use dq_queue::settings::{Changes, Clock};
use dq_queue::transition::Transition;
use dq_queue::{Done, Error, Moment, Op, Queue};

/// The consequences of the changes of one queue.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The debts of the queue to other keys.
    pub owed: Option<Owed>,
    /// The transitions of messages, for the queue's event stream.
    pub transitions: Vec<Transition>,
}

impl World {
    /// Delivers what the changes of the queue in `key` owe to others.
    pub(super) fn deliver(&mut self, key: &[u8], outbox: Outbox, step: &mut Step) {
        self.note_transitions(key, &outbox.transitions, step);
        if let Some(owed) = outbox.owed {
            keyspace::settle(&mut Keys { world: self, step }, key, owed);
        }
    }
}

struct Keys<'w> {
    world: &'w mut World,
    step: &'w mut Step,
}

impl Keyspace for Keys<'_> {
    fn change<R>(
        &mut self,
        key: &[u8],
        _: &[u8],
        change: impl FnOnce(&mut dyn Opened) -> R,
    ) -> Result<(R, Option<Owed>), Stays> {
        let mut opened = OpenedPlace {
            world: self.world,
            step: self.step,
            key: key.into(),
            begun: None,
            outbox: Outbox::default(),
        };
        let result = change(&mut opened);
        opened.end();
        let outbox = opened.outbox;
        self.world
            .note_transitions(key, &outbox.transitions, self.step);
        Ok((result, outbox.owed))
    }
}

/// A key that is open for what another change means for it.
struct OpenedPlace<'w> {
    world: &'w mut World,
    step: &'w mut Step,
    key: Key,
    begun: Option<Begun>,
    outbox: Outbox,
}

impl OpenedPlace<'_> {
    fn begin(&mut self) -> Begun {
        let world = &mut self.world;
        let key = &self.key;
        *self
            .begun
            .get_or_insert_with(|| world.begin_without_events(key))
    }

    /// Records the beginning of a change in which nothing was done.
    fn end(&mut self) {
        let begun = self.begun.filter(|begun| !begun.before.is_nothing());
        if let Some(begun) = begun {
            let _ = self
                .world
                .apply(&self.key, begun, &Op::Tick, &mut self.outbox, self.step);
        }
    }
}

impl Opened for OpenedPlace<'_> {
    fn queue(&mut self) -> Option<(&Queue, Moment)> {
        let moment = self.begin().moment;
        Some((self.world.queue(&self.key)?, moment))
    }

    fn apply(&mut self, op: &Op, at: At) -> Result<Option<Done>, Error> {
        let Some(queue) = self.world.queue(&self.key) else {
            if !matches!(op, Op::AckSend(_)) {
                return Ok(None);
            }
            let creation = creation(&Changes::default(), Clock::Server);
            let (world, outbox) = (&mut self.world, &mut self.outbox);
            let done = world.apply_to_new(&self.key, creation, op, outbox, self.step);
            return done.map(Some);
        };
        let begun = match at {
            At::LastChange => Begun::at(queue.last_moment()),
            At::Now => {
                let begun = self.begin();
                self.begun = Some(Begun::at(begun.moment));
                begun
            }
        };
        let (world, outbox) = (&mut self.world, &mut self.outbox);
        world
            .apply(&self.key, begun, op, outbox, self.step)
            .map(Some)
    }
}
