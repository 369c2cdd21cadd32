//! Time: the clock moves to what is due next, the timer comes early or late, the clock is set back,
//! the server stands still.

use super::deliver::Outbox;
use super::{Step, World};
use dq_queue::op::Op;
use dq_queue::queue::bulk::Step as Slice;
use dq_queue::{Done, Millis};

/// Due events between two looks at the clock.
const STEPS: u64 = 64;
/// Messages in a slice of a bulk operation, so that a small one has several.
const OF_A_SLICE: u64 = 1;

impl World {
    /// When the clock of the server shows what is due next in a queue and is not due yet.
    pub fn next_due(&self) -> Option<Millis> {
        let server = self.moment();
        let wakes = self.places.values().filter_map(|place| {
            let waits = !self.waiting.is_empty();
            let wake = place.queue.next_wake(place.queue.time(server), waits)?;
            Some(place.queue.server_time(wake))
        });
        wakes.filter(|at| *at > self.ms).min()
    }

    /// Moves the clock to what is due next. Returns whether anything is.
    pub(super) fn clock(&mut self) -> bool {
        let next = self.next_due();
        self.ms = next.unwrap_or(self.ms);
        next.is_some()
    }

    /// Whether the timer has work in a queue.
    pub fn is_due(&self, key: &[u8]) -> bool {
        self.places.get(key).is_some_and(|place| {
            let now = place.queue.time(self.moment());
            place.queue.has_work(now) || !place.plans.is_empty()
        })
    }

    /// The timer: due events of a queue, then a slice of a bulk operation.
    pub(super) fn timer(&mut self, key: &[u8], step: &mut Step) {
        while self.part_of_slice(key, step) {}
    }

    /// Does a part of a slice, up to an event that owes something to other keys. Returns whether the
    /// slice goes on.
    fn part_of_slice(&mut self, key: &[u8], step: &mut Step) -> bool {
        let mut begun = self.begin_without_events(key);
        let Some(place) = self.places.get_mut(key) else {
            return false;
        };
        loop {
            let progress = begun.advance(&mut place.queue, STEPS);
            let ends = progress.caught_up || progress.ticked.fired > 0 || progress.steps == 0;
            if ends || place.queue.owes() || place.queue.tells_many() {
                break;
            }
        }
        let goes_on = place.queue.owes();
        let now = place.queue.now(begun.moment);
        let mut op = Op::Tick;
        if let Some(plan) = place.plans.first_mut().filter(|_| !goes_on) {
            match plan.next(&place.queue, OF_A_SLICE, now) {
                Slice::Do(slice) => op = *slice,
                Slice::Look => {}
                Slice::Done => drop(place.plans.remove(0)),
            }
        }
        let mut outbox = Outbox::default();
        let done = self.apply(key, begun, &op, &mut outbox, step);
        if let Ok(Done::Count(count)) = done {
            step.reply = format!("a slice of {count}");
        }
        self.deliver(key, outbox, step);
        goes_on
    }

    /// Ends the leases of a closed connection, each at once or after its grace.
    pub(super) fn close(&mut self, key: &[u8], step: &mut Step) {
        let bound = self.places.get_mut(key);
        let bound = bound.map(|place| std::mem::take(&mut place.bound));
        for (receipt, grace) in bound.unwrap_or_default() {
            let receipts = [receipt].into_iter().collect();
            let op = match grace {
                0 => Op::EndLeases { receipts },
                ms => Op::Grace { ms, receipts },
            };
            let begun = self.begin(key, step);
            let mut outbox = Outbox::default();
            let _ = self.apply(key, begun, &op, &mut outbox, step);
            self.deliver(key, outbox, step);
        }
    }
}

/// How often the timer comes at most until a world is at rest.
const MOST_TURNS: usize = 100;

impl World {
    /// Whether the timer has work in any queue.
    pub fn is_any_due(&self) -> bool {
        self.places.keys().any(|key| self.is_due(key))
    }

    /// Whether slices of a bulk operation are to come.
    pub fn has_plans(&self) -> bool {
        self.places.values().any(|place| !place.plans.is_empty())
    }

    /// Lets the timer do all that is due in one queue.
    pub fn settle_queue(&mut self, key: &[u8]) {
        for _ in 0..MOST_TURNS {
            if !self.is_due(key) {
                return;
            }
            self.timer(key, &mut Step::default());
        }
    }

    /// Lets the timer do all that is due.
    pub fn settle(&mut self) {
        for _ in 0..MOST_TURNS {
            let due = self.places.keys().find(|key| self.is_due(key)).cloned();
            let Some(key) = due else {
                return;
            };
            let mut step = Step::default();
            self.timer(&key, &mut step);
            self.serve(&mut step);
        }
    }
}
