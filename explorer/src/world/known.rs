//! The slow model beside a queue: it does what the queue does, and must reply the same.

use std::panic::{catch_unwind, AssertUnwindSafe};

use super::{Place, World};
use dq_queue::op::AckSend;
use dq_queue::queue::model::compare::{told, Compared};
use dq_queue::queue::model::Model;
use dq_queue::settings::Clock;
use dq_queue::{Done, Error, Millis, Moment, Op, Queue};

/// A model of a queue that is made at `now` (Unix ms), if the model knows queues like it.
pub fn model_of(queue: &Queue, salt: u64, now: Millis) -> Option<Model> {
    let settings = queue.settings();
    let manual = match queue.clock() {
        Clock::Server => None,
        Clock::Manual(at) => Some(at),
    };
    let mut model =
        Model::knows_settings(settings).then(|| Model::new(settings.clone(), manual, salt))?;
    model.now = manual.unwrap_or(now);
    Some(model)
}

/// The model behind an operation, and the reply that it gives.
pub struct Expected {
    model: Model,
    reply: Result<Done, Error>,
}

impl Place {
    /// The model behind an operation that the queue is going to do. `None` if it does not know the
    /// operation, or the queue has not caught up: what it does then depends on how much it has
    /// processed.
    pub(super) fn expect(&self, op: &Op<'_>, moment: Moment) -> Option<Expected> {
        let now = self.queue.now(moment);
        let is_late = self.queue.has_work(now) && self.queue.clock() == Clock::Server;
        let mut model = self.model.clone()?;
        if is_late || !model.knows(op) {
            return None;
        }
        let reply = unless_panics(|| {
            model.advance(now);
            model.apply(op, moment)
        });
        let reply = reply.ok()?;
        Some(Expected { model, reply })
    }

    /// Compares the reply of the queue with that of the model, which goes on from here. Returns the
    /// difference in words.
    pub(super) fn meet(
        &mut self,
        expected: Option<Expected>,
        done: &Result<Done, Error>,
    ) -> Option<String> {
        let Some(Expected { model, reply }) = expected else {
            self.model = None;
            return None;
        };
        // The time of a queue stays where an operation had no effect.
        if self.queue.last_moment().ms() >= model.now {
            self.model = Some(model);
        }
        let done = told(done.clone());
        (done != reply).then(|| format!("model: {done:?} in place of {reply:?}"))
    }

    /// Sets the clock of the model back by `cut` ms to `now` (Unix ms), and lets leases last until
    /// `spare`, where these are not 0.
    pub(super) fn prepare_model(&mut self, cut: Millis, spare: Millis, now: Millis) {
        if let Some(model) = &mut self.model {
            if cut > 0 {
                model.cut(cut);
                model.now = now;
            }
            model.spare(spare);
        }
    }

    /// Whether the model can do an ACKSEND, which is asked about before it is done. `None` if there is
    /// no model.
    pub(super) fn model_lets(
        &self,
        op: &AckSend<'_>,
        moment: Moment,
    ) -> Option<Result<bool, Error>> {
        let expected = self.expect(&Op::AckSend(op.clone()), moment)?;
        let done = expected.reply;
        Some(done.map(|done| matches!(done, Done::AckSent(Some(_)))))
    }
}

impl World {
    /// Compares the queues with their models.
    ///
    /// # Errors
    /// The first difference.
    pub fn check_models(&self) -> Result<(), String> {
        for place in self.places.values() {
            let queue = &place.queue;
            let now = queue.time(self.moment());
            let Some(mut model) = place.model.clone().filter(|_| !queue.has_work(now)) else {
                continue;
            };
            unless_panics(|| {
                model.advance(now);
                let model = &model;
                Compared { queue, model, now }.all();
            })?;
        }
        Ok(())
    }
}

/// # Errors
/// The text of the panic.
fn unless_panics<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default()
    })
}
