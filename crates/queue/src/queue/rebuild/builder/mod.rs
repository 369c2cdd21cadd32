//! The builder that makes a queue from its parts, for example from a snapshot.
//!
//! A snapshot may be damaged or forged, so every part is checked before it is used.

mod groups;
mod limits;
mod message;
mod siblings;

use std::sync::Arc;

use super::batch_members::{enter_held, ReleasedPart};
use super::lists::{index, lanes, own_records, Lists};
use super::{check, leases};
use super::{Checked, Known, Whole};
use crate::collections::rare::Rare;
use crate::consumer::TokenDelivery;
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::index::leases::{Batch, Leases};
use crate::index::records::{Record, Records};
use crate::index::waiting::Waiting;
use crate::limits::{ensure, exact, name, schedule_name, token, Invalid, MAX_TOKEN_COUNT};
use crate::message::kin::News;
use crate::message::packing::Dictionary;
use crate::message::state::StoredState;
use crate::schedule::{Schedule, Schedules};
use crate::stats::Totals;
use crate::{GroupIx, Millis, Queue, Receipt, Seq};
use groups::NewGroup;

pub use limits::LimitPart;

/// Makes a queue from parts that anyone may have written. Parts that no sequence of
/// operations can have led to are refused.
///
/// Parts may come in any order, except that a message comes after its group and its
/// consumer, and except where a method says otherwise.
#[derive(Debug)]
pub struct Builder {
    pub(super) queue: Queue,
    groups: Vec<NewGroup>,
    consumers: Vec<Box<[u8]>>,
    /// Pending messages: ungrouped and grouped, each by priority.
    lanes: [Vec<Lists>; 2],
    expiring: Vec<(Millis, Seq)>,
    /// Finished, dead and cancelled records, in the order of [`StoredState`].
    ended: [Vec<(Millis, Seq)>; 3],
    /// Finished and cancelled records with a RETAIN of their own.
    own: Vec<(StoredState, Record)>,
    grouped_records: usize,
    running: Vec<leases::Running>,
    batches: Vec<Batch>,
    /// Messages with ids given by clients, by the hash of the id.
    given: Vec<(u64, Seq)>,
    /// Salts of generated ids, each with the first message number for which it
    /// holds.
    salts: Vec<(Seq, u64)>,
    last_seq: Seq,
    /// Named batches, by the number in the snapshot.
    pub(super) named_batches: Vec<Seq>,
    /// Sets of siblings, by the number in the snapshot.
    siblings: Vec<Seq>,
    held: Vec<Seq>,
    pub(super) released: Vec<ReleasedPart>,
    /// Limits with their names.
    limits: Vec<(Box<[u8]>, LimitPart)>,
}

impl Builder {
    /// Begins a queue with the part that exists once.
    ///
    /// Errors: a value is out of range.
    pub fn new(whole: Whole) -> Result<Builder, Invalid> {
        check::whole(&whole)?;
        let mut queue = Queue::new(whole.settings, whole.clock, whole.salt);
        queue.state.last = whole.last;
        queue.state.next_seq = whole.next_seq;
        queue.state.last_receipt = whole.last_receipt;
        queue.state.totals = Rare::unless(whole.totals == Totals::default(), whole.totals);
        queue.state.lateness = Rare::unless(whole.lateness.max().is_none(), whole.lateness);
        queue.state.seldom.window = Rare::unless(whole.window.is_empty(), whole.window);
        queue.state.paused_until = whole.paused_until;
        queue.state.plain_position = whole.plain_position.map(|at| at.key(GroupIx::NONE));
        Ok(Builder {
            queue,
            groups: Vec::new(),
            consumers: Vec::new(),
            lanes: [vec![Lists::default(); 256], vec![Lists::default(); 256]],
            expiring: Vec::new(),
            ended: Default::default(),
            own: Vec::new(),
            grouped_records: 0,
            running: Vec::new(),
            batches: Vec::new(),
            given: Vec::new(),
            salts: Vec::new(),
            last_seq: 0,
            named_batches: Vec::new(),
            siblings: Vec::new(),
            held: Vec::new(),
            released: Vec::new(),
            limits: Vec::new(),
        })
    }

    /// Adds a dictionary, with which payloads that follow are packed, under its number. `is_current`
    /// says whether payloads are packed with it from now on.
    ///
    /// Errors: its number is taken, or another one is current.
    pub fn dictionary(&mut self, number: u8, of: Arc<Dictionary>, is_current: bool) -> Checked {
        let is_added = self
            .queue
            .state
            .store
            .add_dictionary(number, of, is_current);
        ensure(
            is_added,
            "a queue has two dictionaries of one number, or two that are current",
        )
    }

    /// Sets the salt of the generated ids of all messages that follow.
    pub fn salt(&mut self, salt: u64) {
        self.salts.push((self.last_seq + 1, salt));
    }

    /// Adds a consumer, with its record or only as named by messages. Messages refer to
    /// it by the number of consumers added before it.
    pub fn consumer(&mut self, consumer: &[u8], known: Option<Known>) -> Checked {
        name(consumer)?;
        if let Some((last_seen, counts)) = known {
            exact(last_seen)?;
            self.queue
                .state
                .consumers
                .restore(consumer, last_seen, counts);
        }
        self.consumers.push(consumer.into());
        Ok(())
    }

    /// Adds the last delivery of a listed consumer, which asked for it with a token.
    pub fn token(&mut self, consumer: &[u8], delivery: TokenDelivery) -> Checked {
        token(&delivery.token)?;
        let end = delivery.first.saturating_add(delivery.count);
        let is_empty = delivery.applied.is_some() && (delivery.first, delivery.count) == (0, 0);
        ensure(
            is_empty || delivery.first > 0 && (1..=MAX_TOKEN_COUNT).contains(&delivery.count),
            "a delivery with a token must have a receipt and 1 to 1000 messages",
        )?;
        ensure(
            end <= self.queue.state.last_receipt + 1,
            "a delivery with a token has a receipt that was never given out",
        )?;
        ensure(
            self.queue.state.consumers.restore_token(consumer, delivery),
            "a token names a consumer that is missing",
        )
    }

    /// Adds the end that a lease had before its connection closed. Leases come in the
    /// order of their receipts.
    pub fn old_end(&mut self, receipt: Receipt, end: Millis) -> Checked {
        exact(end)?;
        let ends = &mut self.queue.state.seldom.old_ends;
        ensure(
            ends.last_key_value()
                .is_none_or(|(last, _)| *last < receipt),
            "the former ends of leases must be in the order of their receipts",
        )?;
        ends.insert(receipt, end);
        Ok(())
    }

    /// Sets the outcome of dead messages that were to go to another queue.
    ///
    /// Errors: that was said before, or says nothing.
    pub fn dead_letters(&mut self, letters: DeadLetters) -> Checked {
        let before = &mut self.queue.state.seldom.dead_letters;
        ensure(
            before.is_none() && letters != DeadLetters::default(),
            "what became of dead messages is told twice, or says nothing",
        )?;
        *before = Some(Box::new(letters));
        Ok(())
    }

    /// Sets the ties to other keys that the queue has lost. Its messages come before.
    ///
    /// Errors: that was said before, or says nothing, or a message that was cut from its parent is
    /// missing or has one.
    pub fn detached(&mut self, detached: Detached) -> Checked {
        let queue = &mut self.queue;
        let is_cut =
            |seq: &Seq| queue.state.store.get(*seq).is_some() && queue.parent_of(*seq).is_none();
        ensure(
            !queue.state.seldom.has_detached()
                && !detached.ties().is_nothing()
                && detached.children.iter().all(is_cut),
            "the lost ties to other keys are told twice, or say nothing, or are there",
        )?;
        queue.state.seldom.detached = Some(Box::new(detached));
        Ok(())
    }

    /// Adds a report to a parent that this has not counted yet. Reports come in their order.
    pub fn report(&mut self, report: News) {
        self.queue.owe_report(report);
    }

    /// Adds a schedule. Schedules come in the order of their creation.
    pub fn schedule(&mut self, name: &[u8], mut schedule: Schedule) -> Checked {
        schedule_name(name)?;
        check::schedule(&schedule, self.queue.state.next_seq)?;
        let schedules: &mut Schedules = &mut self.queue.state.seldom.schedules;
        ensure(
            schedules.get(name).is_none(),
            "two schedules have the same name",
        )?;
        schedule.number = schedules.len() as u64;
        schedules.restore(name, schedule);
        Ok(())
    }

    /// Adds an id that DEDUP keeps taken.
    pub fn dedup(&mut self, id: &[u8], ended_at: Millis) -> Checked {
        name(id)?;
        exact(ended_at)?;
        let dedup = &mut self.queue.state.records.dedup;
        ensure(dedup.ended_at(id).is_none(), "DEDUP remembers an id twice")?;
        dedup.remember(id, ended_at);
        Ok(())
    }

    /// Adds a deduplication id, the id of its first message and when it ends. They come in the
    /// order of their ends.
    pub fn dedup_id(&mut self, dedup_id: &[u8], id: &[u8], until: Millis) -> Checked {
        name(dedup_id)?;
        name(id)?;
        exact(until)?;
        let ids = self.queue.state.seldom.dedup_ids.get_or_insert_default();
        ensure(!ids.has(dedup_id), "a deduplication id is there twice")?;
        ids.remember(dedup_id, id, until);
        Ok(())
    }

    /// Adds a batch of more than one message. Batches come in the order of their
    /// receipts.
    pub fn batch(&mut self, first: Receipt, len: u64) -> Checked {
        let before = self.batches.last().map_or(0, |batch| batch.last);
        leases::batch(first, len, before, self.queue.state.last_receipt)?;
        self.batches.push(Batch::new(first, len));
        Ok(())
    }

    /// Builds the queue. The first [`Queue::advance`] then looks for due events.
    ///
    /// Errors: the parts contradict each other. O(n log n); O(n) where messages
    /// came in the order of their due times.
    pub fn finish(mut self) -> Result<Queue, Invalid> {
        let running = leases::batches(&mut self.running, &self.batches)?;
        for (number, first) in running.of_groups {
            let ix = at_mut(&mut self.groups, number).map(|group| group.ix);
            if let Some(group) = ix.and_then(|ix| self.queue.state.groups.get_mut(ix)) {
                if !group.is_hidden() {
                    group.open_batch(first);
                }
            }
        }
        let leases = self.running.iter().map(|running| running.lease);
        let leases = Leases::from_parts(leases.collect(), running.batches);
        self.queue.state.leases = Rare::unless(leases.len() == 0, leases);
        let (held, released) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.released),
        );
        enter_held(&mut self.queue, held, released)?;
        siblings::check_all(&self.queue)?;
        self.enter_groups()?;
        let ids = &mut self.queue.state.ids;
        ids.restore_salts(self.salts, self.queue.state.next_seq);
        ensure(
            ids.insert_all(&self.queue.state.store, &self.given),
            "two messages have the same id",
        )?;

        let [plain, grouped] = self.lanes.map(lanes);
        let waiting = Waiting { plain, grouped };
        self.queue.indexes.waiting = Rare::unless(waiting.is_empty(), waiting);
        self.queue.indexes.expiring = Rare::unless(self.expiring.is_empty(), index(self.expiring));
        let [finished, dead, cancelled] = self.ended;
        let records = Records {
            finished: index(finished),
            dead: index(dead),
            cancelled: index(cancelled),
            own: own_records(self.own),
            dedup: self.queue.state.records.give_up().dedup,
            grouped: self.grouped_records,
        };
        self.queue.state.records = Rare::unless(records.is_empty(), records);
        ensure(
            !self.queue.is_far_behind(),
            "the clock of a queue is ahead of too many fires of its schedules",
        )?;
        ensure(
            self.queue.state.settings.dead_to.is_some() || !self.queue.has_leaving(),
            "a message is on its way to another queue, and there is no other queue",
        )?;
        if let Some(store) = self.queue.state.store.used_mut() {
            store.drop_unused_dictionaries();
        }
        self.queue.indexes.wake = 0;
        // Operations rely on this position being right, and a forged snapshot may
        // give a wrong one.
        self.queue.state.plain_position = self.queue.plain_key(self.queue.state.last);
        Ok(self.queue)
    }
}

fn at_mut<T>(list: &mut [T], number: u64) -> Option<&mut T> {
    list.get_mut(usize::try_from(number).ok()?)
}
