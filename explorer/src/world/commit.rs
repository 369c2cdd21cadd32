//! A change of one queue: the operation, its log entry, and the replica that repeats it.

use std::collections::BTreeSet;

use super::begin::Begun;
use super::deliver::Outbox;
use super::known::model_of;
use super::{Key, Place, Step, World, SALT};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::op::Sent;
use dq_queue::queue::ends::Owed;
use dq_queue::settings::{Changes, Clock, DefaultBackoff, Settings};
use dq_queue::{Done, Error, Op, Queue};

/// The creation of a queue with these changes of the defaults.
pub fn creation(changes: &Changes, clock: Clock) -> Creation {
    Creation {
        settings: Settings::default().created(changes, DefaultBackoff::NONE),
        clock,
        salt: SALT,
    }
}

impl World {
    /// Applies an operation to the queue in a key, with the beginning of the change, and replicates
    /// it. Adds to `outbox` what other keys are owed for it.
    ///
    /// Error: the operation is refused, or there is no queue.
    pub(super) fn apply(
        &mut self,
        key: &[u8],
        begun: Begun,
        op: &Op<'_>,
        outbox: &mut Outbox,
        step: &mut Step,
    ) -> Result<Done, Error> {
        let Some(place) = self.places.get_mut(key) else {
            return Err(Error::Closed);
        };
        // Where due events were processed before it, they may have noted something already.
        let reach = (!place.queue.tells()).then(|| {
            let keys = place.queue.keys_for(op, place.queue.time(begun.moment));
            keys.into_iter().map(Key::from).collect::<BTreeSet<_>>()
        });
        let expected = place.expect(op, begun.moment);
        let done = place.queue.apply(op, begun.moment);
        step.faults.extend(place.meet(expected, &done));
        let entry = replicated(op, done.as_ref().ok());
        let entry = LogEntry::of(begun.moment, begun.before, None, entry);
        let written = self.commit(key, &entry, outbox, step);
        if let Some(reach) = reach {
            for key in written.difference(&reach) {
                let key = String::from_utf8_lossy(key);
                step.faults
                    .push(format!("reach: {} writes to {key}", op.verb()));
            }
        }
        done
    }

    /// Like [`World::apply`], on a new queue that is put into the key.
    ///
    /// Error: the operation is refused. Then there is no queue.
    pub(super) fn apply_to_new(
        &mut self,
        key: &[u8],
        creation: Creation,
        op: &Op<'_>,
        outbox: &mut Outbox,
        step: &mut Step,
    ) -> Result<Done, Error> {
        let moment = self.moment();
        let queue = creation.queue();
        let mut place = Place {
            model: model_of(&queue, SALT, moment.ms()),
            queue,
            replica: self.replicates.then(|| creation.queue()),
            plans: Vec::new(),
            bound: Vec::new(),
        };
        let expected = place.expect(op, moment);
        let done = place.queue.apply(op, moment);
        step.faults.extend(place.meet(expected, &done));
        let done = done?;
        place.queue.made_at(moment);
        self.places.insert(key.into(), place);
        let entry = LogEntry::of(moment, 0, Some(creation), replicated(op, Some(&done)));
        self.commit(key, &entry, outbox, step);
        Ok(done)
    }

    /// Returns the other keys that it means something for.
    fn commit(
        &mut self,
        key: &[u8],
        entry: &LogEntry<'_, '_>,
        outbox: &mut Outbox,
        step: &mut Step,
    ) -> BTreeSet<Key> {
        let Some(place) = self.places.get_mut(key) else {
            return BTreeSet::new();
        };
        let effects = place.queue.take_effects();
        let owed = place.queue.take_owed(key);
        let mut written = keys_of(owed.as_ref());
        outbox.owed = outbox.owed.take().or(owed);
        if let Some(told) = effects.told {
            let events = place.queue.settings().events.as_deref();
            written.extend(
                events
                    .filter(|_| !told.transitions.is_empty())
                    .map(Key::from),
            );
            let stuck = told.stuck.into_iter();
            step.faults
                .extend(stuck.map(|what| format!("{what} made no progress")));
            outbox.transitions.extend(told.transitions);
            self.ended(key, told.endings, step);
        }
        let Some(place) = self.places.get_mut(key) else {
            return written;
        };
        if let Some(replica) = place.replica.as_mut().filter(|_| effects.changed) {
            if let Err(why) = repeat(replica, entry) {
                step.faults.push(format!("the replica: {why}"));
            }
        }
        place.queue.free_garbage(usize::MAX);
        self.receipt = self.receipt.max(place.queue.last_receipt() + 1);
        written
    }
}

/// The keys to which something is owed.
fn keys_of(owed: Option<&Owed>) -> BTreeSet<Key> {
    let letters = owed.and_then(|owed| owed.letters.as_ref());
    let letters = letters.filter(|letters| !letters.letters.is_empty());
    let reports = owed.iter().flat_map(|owed| &owed.reports);
    let mut keys: BTreeSet<Key> = reports.map(|report| report.key.clone()).collect();
    keys.extend(letters.map(|letters| letters.to.clone()));
    keys
}

/// Writes a log entry, reads it, and repeats it on the replica.
fn repeat(replica: &mut Queue, entry: &LogEntry<'_, '_>) -> Result<(), String> {
    let mut bytes = Vec::new();
    entry.encode_into(&mut bytes);
    let read = LogEntry::decode(&bytes)?;
    let done = read.replay(replica);
    if read.created.is_some() {
        replica.made_at(read.moment());
    }
    replica.forget_lead();
    replica.take_effects();
    replica.free_garbage(usize::MAX);
    done.map(|_| ())
}

/// The operation that a replica repeats.
fn replicated<'o, 'a>(op: &'o Op<'a>, done: Option<&Done>) -> &'o Op<'a> {
    match done {
        None => &Op::Tick,
        Some(done) if done.is_duplicate() => &Op::Duplicate,
        Some(Done::Sent(sent)) if sent.contains(&Sent::NoGroup) => &Op::Tick,
        Some(_) => op,
    }
}
