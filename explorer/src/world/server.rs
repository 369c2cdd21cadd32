//! Commands of the server itself: COPY, RENAME and DEL of a key.

use super::{Place, World};
use dq_queue::queue::model::Model;
use dq_queue::Queue;

impl World {
    /// COPY with REPLACE.
    pub(super) fn copy(&mut self, from: &[u8], to: &[u8]) {
        let Some(place) = self.places.get(from) else {
            return;
        };
        let copy = Place {
            queue: place.queue.copy(),
            replica: place.replica.as_ref().map(Queue::copy),
            model: place.model.as_ref().map(Model::copy),
            plans: Vec::new(),
            bound: Vec::new(),
        };
        self.lose(to);
        self.places.insert(to.into(), copy);
        self.knows_all(to);
    }

    /// RENAME.
    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Some(mut place) = self.places.remove(from) {
            place.plans.clear();
            place.bound.clear();
            self.lose(to);
            self.watching.retain(|(key, _)| **key != *from);
            self.told.remove(from);
            self.places.insert(to.into(), place);
            self.knows_all(to);
        }
    }

    /// DEL.
    pub(super) fn delete(&mut self, key: &[u8]) {
        self.places.remove(key);
        self.lose(key);
    }

    /// Tells the clients that wait for messages of a queue that is gone.
    fn lose(&mut self, key: &[u8]) {
        self.watching.retain(|(of, _)| **of != *key);
        self.told.remove(key);
    }
}
