//! A change of one of the queues: the operation, its log entry, and the replica that repeats it.

use super::{Bug, Neighbours, Place, KEYS};
use crate::disk::{apply_entry, Disk};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::codec::verbatim;
use dq_queue::effect::plain::PlainKeys;
use dq_queue::op::{AckSend, Before};
use dq_queue::queue::MAX_LEAD;
use dq_queue::settings::Clock;
use dq_queue::{Done, Error, Moment, Op};

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
}

impl Neighbours {
    /// Begins a change without processing due events.
    pub(super) fn begin_without_events(&mut self, key: &'static [u8]) -> Begun {
        let server = self.moment();
        let spares = self.rng.u8(0..16) == 0;
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
        let now = queue.now(begun.moment);
        if spares && queue.has_lease_before(now + 1) && queue.clock() == Clock::Server {
            begun.before.spare = now + 20;
            queue.spare_leases(begun.before.spare);
        }
        begun
    }

    /// Begins a change: processes some due events, and settles what they owe to other keys.
    pub(super) fn begin(&mut self, key: &'static [u8]) -> Result<Begun, String> {
        let most = [0, 1, 3, 16, 512][self.rng.usize(0..5)];
        loop {
            let mut begun = self.begin_without_events(key);
            let Some(place) = self.places.get_mut(key) else {
                return Ok(begun);
            };
            let now = place.queue.now(begun.moment);
            if place.queue.has_work(now) {
                begun.before.steps += place.queue.advance(now, most).steps;
            }
            if !place.queue.owes() {
                return Ok(begun);
            }
            let _ = self.apply(key, begun, &Op::Tick);
            self.deliver(key);
            self.failure()?;
        }
    }

    /// Applies an operation to a queue with the beginning of the change, and replicates it.
    ///
    /// Error: the operation is refused.
    pub(super) fn apply(
        &mut self,
        key: &'static [u8],
        begun: Begun,
        op: &Op<'_>,
    ) -> Result<Done, Error> {
        let receipt = self.moment().receipt;
        let Some(place) = self.places.get_mut(key) else {
            return Err(Error::Closed);
        };
        let Begun { moment, before } = begun;
        let of_command = match before.is_nothing() {
            true => verbatim::moment(&place.queue, op, moment, receipt - 1),
            false => None,
        };
        let done = place.queue.apply(op, of_command.unwrap_or(moment));
        let as_command = of_command.is_some() && done.is_ok();
        let logged = match &done {
            Err(_) => &Op::Tick,
            Ok(done) if !as_command && done.is_duplicate() => &Op::Duplicate,
            Ok(_) => op,
        };
        let is_lost = match self.bug {
            Some(Bug::LogsNoReports) => matches!(op, Op::Children(_)),
            Some(Bug::LogsNoMoves) => matches!(op, Op::Moved(_)),
            _ => false,
        };
        let entry = LogEntry::of(moment, before, None, logged);
        if !is_lost {
            self.commit(key, &entry, as_command);
        }
        done
    }

    /// Applies an operation to a new queue, which is put into the key.
    ///
    /// Error: the operation is refused. Then there is no queue.
    pub(super) fn make(
        &mut self,
        key: &'static [u8],
        creation: Creation,
        op: &Op<'_>,
    ) -> Result<Done, Error> {
        let moment = self.moment();
        let mut queue = creation.queue();
        let done = queue.apply(op, moment)?;
        queue.made_at(moment);
        let place = Place {
            queue,
            replica: creation.queue(),
            disk: Disk::new(&creation.queue(), &PlainKeys::default(), false),
            bulk: None,
        };
        self.places.insert(key, place);
        let entry = LogEntry::of(moment, 0, Some(creation), op);
        self.commit(key, &entry, false);
        Ok(done)
    }

    fn commit(&mut self, key: &'static [u8], entry: &LogEntry<'_, '_>, as_command: bool) {
        let Some(place) = self.places.get_mut(key) else {
            return;
        };
        if place.queue.take_effects().changed {
            place.disk.append(entry, &[], as_command);
            let last = place.disk.records() - 1;
            let entry = place.disk.entry(last);
            if let Err(why) = apply_entry(&mut place.replica, &mut PlainKeys::default(), entry) {
                self.failed.get_or_insert(format!("the replica: {why}"));
            }
        }
        self.receipt = self.receipt.max(place.queue.last_receipt() + 1);
    }

    /// The fault that was found within a change.
    pub(super) fn failure(&mut self) -> Result<(), String> {
        match self.failed.take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// ACKSEND that finishes a job in one queue and sends to another: both or nothing.
    pub(super) fn ack_send_to(
        &mut self,
        key: &'static [u8],
        to: &'static [u8],
        ack_send: AckSend<'static>,
        begun: Begun,
    ) -> Result<(), String> {
        // The due events of both queues are settled before either of them is changed.
        self.finish(key, begun, Op::Tick)?;
        let begun = self.begin(to)?;
        self.finish(to, begun, Op::Tick)?;
        let first = AckSend {
            sends: Vec::new(),
            signals: Vec::new(),
            ..ack_send.clone()
        };
        let second = AckSend {
            receipt: None,
            result: None,
            ..ack_send
        };
        let mut parts = Vec::new();
        for (key, part) in [(key, first), (to, second)] {
            let Some(place) = self.places.get(key) else {
                return Ok(());
            };
            let moment = place.queue.moment(self.moment());
            if place.queue.can_ack_send(&part, moment) != Ok(true) {
                return Ok(());
            }
            parts.push((key, Begun::at(moment), Op::AckSend(part)));
        }
        for (key, begun, op) in &parts {
            if let Err(error) = self.apply(key, *begun, op) {
                return Err(format!("a part of ACKSEND was refused: {error:?}"));
            }
        }
        self.event("a job is done, and its messages go to another queue");
        KEYS.iter().for_each(|key| self.deliver(key));
        self.failure()
    }
}
