//! The beginning of every change: the clock of the queue, leases that are spared, due events.

use super::deliver::Outbox;
use super::{Step, World};
use dq_queue::op::Before;
use dq_queue::queue::{Progress, MAX_LEAD};
use dq_queue::seeded::settles_late;
use dq_queue::settings::Clock;
use dq_queue::{Moment, Op, Queue};

/// How long a lease that has ended is spared after a standstill, in ms.
const SPARE_MS: u64 = 20;

/// The beginning of a change.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// The moment of the change, by the clock of the queue.
    pub moment: Moment,
    /// The changes before the operation, which the log entry repeats.
    pub before: Before,
}

impl Begun {
    /// A change without any work before it.
    pub fn at(moment: Moment) -> Begun {
        Begun {
            moment,
            before: Before::default(),
        }
    }

    /// Processes due events, at most `most` of them.
    pub fn advance(&mut self, queue: &mut Queue, most: u64) -> Progress {
        let progress = queue.advance(queue.now(self.moment), most);
        self.before.steps += progress.steps;
        progress
    }
}

impl World {
    /// Begins a change of a queue without processing due events.
    pub(super) fn begin_without_events(&mut self, key: &[u8]) -> Begun {
        let server = self.moment();
        let spares = self.spares;
        let Some(place) = self.places.get_mut(key) else {
            return Begun::at(server);
        };
        let queue = &mut place.queue;
        let mut begun = Begun::at(queue.follow(server));
        let lead = begun.moment.ms().saturating_sub(server.ms());
        if lead > MAX_LEAD {
            begun.moment = server;
            begun.before.cut = lead;
            queue.prepare(&begun.before, server);
        }
        let cut = begun.before.cut;
        let now = queue.now(begun.moment);
        let to = now + SPARE_MS;
        if spares && queue.has_lease_before(now + 1) && queue.clock() == Clock::Server {
            queue.spare_leases(to);
            begun.before.spare = to;
        }
        place.prepare_model(cut, begun.before.spare, now);
        begun
    }

    /// Begins a change by a command: processes due events, up to the limit of the world, and
    /// settles what they owe to other keys.
    pub(super) fn begin(&mut self, key: &[u8], step: &mut Step) -> Begun {
        let mut left = self.most_events;
        loop {
            let mut begun = self.begin_without_events(key);
            let Some(place) = self.places.get_mut(key) else {
                return begun;
            };
            if place.queue.has_work(place.queue.now(begun.moment)) {
                left -= begun.advance(&mut place.queue, left).steps;
            }
            if !place.queue.owes() || settles_late() {
                return begun;
            }
            let mut outbox = Outbox::default();
            let _ = self.apply(key, begun, &Op::Tick, &mut outbox, step);
            self.deliver(key, outbox, step);
        }
    }
}
