//! Faults of the server, none of which may change what a queue has.

use super::change::Begun;
use super::{Neighbours, KEYS, MOST_RECORDS};
use crate::disk::Disk;
use crate::{difference, loaded, saved};
use dq_queue::detached::Ties;
use dq_queue::effect::plain::PlainKeys;
use dq_queue::Op;

const HOUR_US: u64 = 3_600_000_000;

impl Neighbours {
    /// Draws a fault, in a few cases.
    pub(super) fn fault(&mut self) -> Result<(), String> {
        let key = KEYS[self.rng.usize(0..KEYS.len())];
        match self.rng.u32(0..1024) {
            0..48 => self.reload(key),
            48..56 => self.replay(key),
            56..60 => self.restart(),
            60..64 => self.promote(),
            64..68 => self.restore(key),
            68..70 => {
                self.event("a queue is deleted");
                self.places.remove(key);
                Ok(())
            }
            _ => {
                self.rewrite(key);
                Ok(())
            }
        }
    }

    /// The primary or the replica loads what it has saved.
    fn reload(&mut self, key: &'static [u8]) -> Result<(), String> {
        self.event("a queue is reloaded");
        let is_primary = self.rng.bool();
        let Some(place) = self.places.get_mut(key) else {
            return Ok(());
        };
        let queue = match is_primary {
            true => &mut place.queue,
            false => &mut place.replica,
        };
        let bytes = saved(queue);
        *queue = loaded(&bytes, 64 * 1024)?;
        place.bulk = None;
        match difference(&bytes, &saved(queue)) {
            None => Ok(()),
            Some(at) => Err(format!("the queue that was reloaded differs {at}")),
        }
    }

    /// Another server loads the whole log. It has what the replica has.
    fn replay(&mut self, key: &'static [u8]) -> Result<(), String> {
        let Some(place) = self.places.get(key) else {
            return Ok(());
        };
        let (replayed, _) = place.disk.recover()?;
        match difference(&saved(&replayed), &saved(&place.replica)) {
            None => Ok(()),
            Some(at) => Err(format!("the queue of the whole log differs {at}")),
        }
    }

    /// The server starts anew from its log. Its clock may have been set back.
    fn restart(&mut self) -> Result<(), String> {
        self.event("the server starts anew");
        for place in self.places.values_mut() {
            (place.queue, _) = place.disk.recover()?;
            place.bulk = None;
        }
        self.draw_clock();
        Ok(())
    }

    /// The replicas are promoted.
    fn promote(&mut self) -> Result<(), String> {
        self.event("the replica is promoted");
        for place in self.places.values_mut() {
            place.queue = place.replica.clone();
            place.bulk = None;
        }
        self.draw_clock();
        Ok(())
    }

    fn draw_clock(&mut self) {
        if self.rng.u8(0..4) == 0 {
            self.us -= self.rng.u64(0..HOUR_US);
        }
    }

    /// A queue comes back by RESTORE, and loses some of its ties to other keys.
    fn restore(&mut self, key: &'static [u8]) -> Result<(), String> {
        self.event("a queue is restored without its ties");
        let ties = Ties {
            events: self.rng.bool(),
            dead_to: self.rng.bool(),
            parents: self.rng.bool(),
        };
        let Some(place) = self.places.get_mut(key) else {
            return Ok(());
        };
        place.queue = loaded(&saved(&place.queue), 64 * 1024)?;
        place.bulk = None;
        let begun = Begun::at(place.queue.last_moment());
        self.apply(key, begun, &Op::Detach(ties))
            .map_err(|error| format!("a cut was refused: {error:?}"))?;
        self.failure()
    }

    /// Rewrites a log that has become long: it begins with a new snapshot.
    fn rewrite(&mut self, key: &'static [u8]) {
        let as_commands = self.rng.bool();
        if let Some(place) = self.places.get_mut(key) {
            if place.disk.records() > MOST_RECORDS {
                place.disk = Disk::new(&place.queue, &PlainKeys::default(), as_commands);
            }
        }
    }
}
