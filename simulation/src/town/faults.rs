//! Faults of the server, of its clock and of its queues.

use super::{Bug, Town};
use crate::{loaded, saved};
use dq_queue::op::{DueTime, Fetch, Send};
use dq_queue::{Moment, Op};

const SECOND_US: u64 = 1_000_000;
/// The distances by which a clock may be wrong: seconds to days.
const WRONG_US: [u64; 4] = [
    2 * SECOND_US,
    40 * SECOND_US,
    600 * SECOND_US,
    3 * 86_400 * SECOND_US,
];

impl Town {
    /// The server stands still. Commands of workers in this time are done when the server
    /// continues, before leases end.
    pub(super) fn stand_still(&mut self) -> Result<(), String> {
        let stood = self.rng.u64(30..2_000) * 1000;
        let mut asked = Vec::new();
        if !self.is_refusing {
            let most = self.held.len().min(5);
            for held in self.held.split_off(self.held.len() - most) {
                let at_us = self.watch_us + self.rng.u64(0..stood);
                asked.push((held, at_us));
            }
        }
        self.pass(stood);
        self.is_sparing = true;
        if self.has(Bug::EndsLeasesInAStandstill) {
            self.turn()?;
        }
        asked
            .into_iter()
            .try_for_each(|(held, at_us)| self.ack_of(&held, at_us))
    }

    /// The clock of the server is set back. Each queue makes of it what it must.
    pub(super) fn set_back(&mut self) {
        self.us -= WRONG_US[self.rng.usize(0..WRONG_US.len())];
        if self.has(Bug::IsLateAfterAStepBack) {
            return;
        }
        let now = self.us / 1000;
        self.index.clear();
        for (number, place) in self.places.iter_mut().enumerate() {
            place.due = Some(now);
            self.index.insert((now, number));
        }
    }

    /// A queue comes from a server whose clock is ahead, in the place of one that is empty.
    pub(super) fn arrive(&mut self) {
        let number = self.rng.usize(0..self.places.len());
        if self.places[number].queue.live() > 0 || self.is_refusing {
            return;
        }
        self.held.retain(|held| held.place != number);
        let ahead_us = WRONG_US[self.rng.usize(0..WRONG_US.len())];
        let us = self.us + ahead_us;
        let there = Moment { us, receipt: us };
        let mut place = self.place(number);
        self.sent += 1;
        let id = format!("m{}", self.sent).into_bytes();
        let mut send = Send::plain(b"from elsewhere");
        send.id = Some(id.clone().into());
        send.due = DueTime::After(100);
        self.may_come.insert(id, (number, self.watch_us + 100_000));
        place.queue.apply(&Op::Send(send), there).ok();
        // A message that was delivered there has a receipt of that time.
        place
            .queue
            .apply(&Op::Send(Send::plain(b"delivered there")), there)
            .ok();
        place.queue.apply(&Op::fetch(Fetch::one()), there).ok();
        place.queue.take_effects();
        if let Ok(moved) = loaded(&saved(&place.queue), 1_000) {
            (place.replica, place.queue) = (moved.clone(), moved);
        }
        place.came_ahead = true;
        if let Some(due) = self.places[number].due {
            self.index.remove(&(due, number));
        }
        place.waiting = self.places[number].waiting;
        place.due = Some(self.us / 1000);
        self.index.insert((self.us / 1000, number));
        self.places[number] = place;
        if self.has(Bug::MovesTheClock) {
            self.us += ahead_us;
        }
    }

    /// The server dies, and its replica takes over.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        self.compare()?;
        self.index.clear();
        let now = self.us / 1000;
        for (number, place) in self.places.iter_mut().enumerate() {
            place.queue = place.replica.clone();
            place.waiting = 0;
            place.due = Some(now);
            self.index.insert((now, number));
        }
        Ok(())
    }
}
