//! Compares the results of operations with the promises of the queue: no message is
//! delivered early or leased twice at once, no receipt is given out twice, no id is made
//! twice, no message comes or goes without being counted, and each option does what it
//! says. One file has the rules of one thing.

mod batches;
mod before;
mod breakers;
mod closed;
mod counts;
mod found;
mod handed_back;
mod ids;
mod leases;
mod options;
mod parents;
mod parks;
mod reruns;
mod spans;
mod step;
mod texts;

use dq_queue::op::{Deliveries, Fetch};
use dq_queue::{Done, Millis, Op, Queue, Receipt};

use batches::HeldMessages;
pub use before::Before;
use breakers::{Failures, Probes};
use closed::Closed;
pub use found::check_search;
use handed_back::HandedBack;
use ids::Ids;
use leases::Leases;
use options::Options;
use parents::Parents;
use parks::Parks;
pub use spans::Spans;
pub use step::Step;
use texts::Notes;

/// Every 8th delivery also runs the checks that are O(n).
const CHECKED: u64 = 8;

/// The facts that clients can know about a queue.
#[derive(Default)]
pub struct Oracle {
    leases: Leases,
    handed_back: HandedBack,
    held: HeldMessages,
    parks: Parks,
    parents: Parents,
    notes: Notes,
    options: Options,
    closed: Closed,
    probes: Probes,
    failures: Failures,
    ids: Ids,
}

impl Oracle {
    /// Draws a receipt that was given out, whether its lease has ended or not. One
    /// in 256 was never given out.
    pub fn receipt(&self, rng: &mut fastrand::Rng) -> Receipt {
        self.leases.receipt(rng)
    }

    /// Remembers a receipt that was given out.
    pub fn note_receipt(&mut self, receipt: Receipt) {
        self.leases.note(receipt);
    }

    /// Begins anew with a queue that was just made or loaded: after a crash or a failover
    /// it may lack some of the last operations.
    pub fn begin(&mut self, queue: &Queue, now: Millis) {
        self.leases.forget();
        self.handed_back = HandedBack::default();
        self.held.forget();
        self.parks.forget();
        self.parents.forget();
        self.notes.forget();
        self.options.forget();
        self.closed.begin(queue);
        self.probes.forget();
        self.failures.forget(queue.settings().breaker, now);
    }

    /// Leases that would end before `to` (Unix ms) end at `to`.
    pub fn spare(&mut self, to: Millis) {
        self.leases.spare(to);
    }

    /// Records in `before` the state that an operation is about. It is called after time
    /// has advanced for it, in which `fired` schedules fired, and right before it is
    /// done.
    pub fn inspect(
        &self,
        before: &mut Before,
        queue: &Queue,
        op: &Op<'_>,
        now: Millis,
        fired: u64,
    ) {
        before.inspect(queue, &self.leases, op, now, fired);
    }

    /// Checks the results of an operation.
    ///
    /// # Errors
    /// A sentence that says which promise is broken.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        self.handed_back.check(step)?;
        self.notes.check(step)?;
        texts::check_results(step)?;
        self.options.check(step)?;
        self.closed.check(step)?;
        reruns::check(step)?;
        self.held.check(step)?;
        self.parks.check(step)?;
        self.parents.check(step)?;
        self.failures.check(step)?;
        self.leases.check_ends(step)?;
        if let (Op::Fetch(fetch), Some(Done::Fetched(given))) = (step.op, step.done) {
            self.check_fetch(step, fetch, given)?;
        }
        self.probes.update(step.queue, step.now);
        self.check_ids(step.queue, step.op, step.done)?;
        found::check_done(step)?;
        if self.leases.fetches.is_multiple_of(CHECKED) {
            batches::check(step.queue)?;
            self.notes.check_all(step.queue)?;
        }
        counts::check(step)
    }

    /// Checks that no queue has made the ids of an operation before.
    ///
    /// # Errors
    /// A sentence that names the id.
    pub fn check_ids(
        &mut self,
        queue: &Queue,
        op: &Op<'_>,
        done: Option<&Done>,
    ) -> Result<(), String> {
        self.ids.check(queue, op, done)
    }

    /// Checks the deliveries of a FETCH, unless it repeats an earlier delivery.
    fn check_fetch(
        &mut self,
        step: &Step<'_>,
        fetch: &Fetch<'_>,
        given: &Deliveries,
    ) -> Result<(), String> {
        if self.leases.check_repetition(step, fetch, given)? {
            return Ok(());
        }
        self.leases.fetches += 1;
        for one in given {
            let gone = one.gone.as_deref().map(|gone| &gone.message);
            let message = gone.or_else(|| step.queue.message(one.seq));
            let message = message.ok_or("a delivered message is not there")?;
            let view = step.queue.view_delivered(one, step.now);
            let group = view.and_then(|view| view.group);
            // A message with limits and without a group is in a hidden group.
            if group.is_some() != message.group.is_some() && message.limited().is_none() {
                return Err(format!("{} does not show its group: {group:?}", one.seq));
            }
            if message.due > step.now {
                let (due, now) = (message.due, step.now);
                return Err(format!("{} was due at {due}, now is {now}", one.seq));
            }
            self.handed_back.check_delivery(step, one.seq, group)?;
            self.options.check_delivery(step, one.seq)?;
            self.failures.check_delivery(step.now, one.seq, group)?;
            self.leases.check_delivery(step, one)?;
        }
        self.probes
            .check(step.queue, &step.before.breakers, given, step.now)?;
        self.leases.note_token(fetch, given);
        Ok(())
    }
}
