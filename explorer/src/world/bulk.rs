//! PURGE and REDRIVE ALL: at once, or in slices that the timer runs.

use super::{Step, World};
use dq_queue::{Error, Op};

impl World {
    /// Runs a bulk operation, or plans its slices.
    ///
    /// Error: the operation is refused.
    pub(super) fn bulk(&mut self, key: &[u8], op: &Op<'_>, step: &mut Step) -> Result<(), Error> {
        if self.plan(key, op) {
            self.run(key, &Op::Tick, false, step)?;
            let server = self.moment();
            if let Some(place) = self.places.get_mut(key) {
                if let Some(plan) = place.queue.plan(op, place.queue.time(server)) {
                    place.plans.push(plan);
                    step.reply = "in slices".to_owned();
                    return Ok(());
                }
            }
        }
        self.run(key, op, false, step).map(|_| ())
    }

    fn plan(&self, key: &[u8], op: &Op<'_>) -> bool {
        let queue = self.queue(key);
        queue.is_some_and(|queue| queue.plan(op, queue.time(self.moment())).is_some())
    }
}
