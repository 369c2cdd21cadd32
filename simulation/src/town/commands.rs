//! The commands of producers and consumers.

use dq_queue::op::{DueTime, Fetch, NewSchedule, Send};
use dq_queue::schedule::recurrence::Recurrence;
use dq_queue::schedule::{Missed, Overlap};
use dq_queue::{Done, Millis, Op};

use super::{Bug, Held, Town, CROWD, LEASE, MOST_RECEIPTS};

impl Town {
    /// A client of a random queue.
    pub(super) fn command(&mut self) -> Result<(), String> {
        let place = self.rng.usize(0..self.places.len());
        match self.rng.u8(0..16) {
            0..6 => {
                let delay = self.rng.u64(0..3) * self.rng.u64(0..200);
                self.send(place, delay)
            }
            6..10 => self.fetch(place),
            10 if self.rng.bool() => self.schedule(place),
            _ => self.ack(),
        }
    }

    pub(super) fn send_to_many(&mut self) -> Result<(), String> {
        let first = self.rng.usize(0..self.places.len());
        let most = CROWD.min(self.places.len());
        for number in first..first + most {
            let place = number % self.places.len();
            self.send(place, 50)?;
            self.places[place].waiting += u32::from(self.rng.bool());
        }
        Ok(())
    }

    fn send(&mut self, place: usize, delay: Millis) -> Result<(), String> {
        self.sent += 1;
        let id = format!("m{}", self.sent).into_bytes();
        let mut send = Send::plain(b"x");
        send.id = Some(id.clone().into());
        send.due = DueTime::After(delay);
        if self.is_refusing {
            return match self.has(Bug::DoesWhatItRefuses) {
                true => self.change(place, &Op::Send(send)).map(drop),
                false => Ok(()),
            };
        }
        self.may_come
            .insert(id, (place, self.watch_us + delay * 1000));
        self.change(place, &Op::Send(send)).map(drop)
    }

    fn schedule(&mut self, place: usize) -> Result<(), String> {
        if self.is_refusing || self.places[place].queue.schedules().len() > 0 {
            return Ok(());
        }
        let op = Op::Schedule(NewSchedule {
            name: b"s"[..].into(),
            rule: Recurrence::Every {
                period: self.rng.u64(100..1_000),
                start: self.us / 1000,
                start_given: false,
            },
            send: Send::plain(b"fired"),
            missed: Missed::Once,
            overlap: Overlap::Skip,
            limits: None,
        });
        self.change(place, &op).map(drop)
    }

    fn fetch(&mut self, place: usize) -> Result<(), String> {
        if self.is_refusing {
            return Ok(());
        }
        if !self.deliver(place)? && self.places[place].waiting < 3 {
            self.places[place].waiting += 1;
        }
        Ok(())
    }

    /// Delivers one message. Returns whether there was one.
    pub(super) fn deliver(&mut self, place: usize) -> Result<bool, String> {
        let Some(Done::Fetched(given)) = self.change(place, &Op::fetch(Fetch::one()))? else {
            return Ok(false);
        };
        let Some(one) = given.first() else {
            return Ok(false);
        };
        self.delivered += 1;
        let of = &self.places[place];
        let message = of.queue.message(one.seq);
        let id = message.map(|message| of.queue.id_of(one.seq, message).as_bytes().to_vec());
        if let Some((sent_to, at_us)) = id.and_then(|id| self.may_come.get(&id)) {
            if *sent_to != place {
                return Err(format!(
                    "a message of queue {sent_to} came from queue {place}"
                ));
            }
            // Delays are counted in ms.
            if *at_us > self.watch_us + 1_000 {
                let early = (*at_us - self.watch_us) / 1000;
                return Err(format!("a message of queue {place} came {early} ms early"));
            }
        }
        if !of.came_ahead && one.receipt > self.latest_us + MOST_RECEIPTS {
            return Err(format!(
                "receipts of queue {place} are far ahead of the clock"
            ));
        }
        self.held.push(Held {
            place,
            receipt: one.receipt,
            until_us: self.watch_us + LEASE * 1000,
        });
        Ok(true)
    }

    /// A worker acks its message.
    fn ack(&mut self) -> Result<(), String> {
        if self.held.is_empty() || self.is_refusing {
            return Ok(());
        }
        let held = self.held.swap_remove(self.rng.usize(0..self.held.len()));
        self.ack_of(&held, self.watch_us)
    }

    /// Acks a delivery. The ack was sent at a time of the worker's watch.
    pub(super) fn ack_of(&mut self, held: &Held, asked_us: u64) -> Result<(), String> {
        let op = Op::Ack {
            receipts: [held.receipt].into_iter().collect(),
            result: None,
        };
        let done = self.change(held.place, &op)?;
        let in_time = asked_us + 1_000 < held.until_us;
        match done {
            Some(Done::Count(0)) if in_time => Err(format!(
                "an ack in queue {} that was in time did not count",
                held.place
            )),
            _ => Ok(()),
        }
    }
}
