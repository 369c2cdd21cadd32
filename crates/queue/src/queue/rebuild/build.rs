//! The builder that makes a queue from its parts, for example from a snapshot.
//!
//! A snapshot may be damaged or forged, so every part is checked before it is used.

use super::batches::{enter_held, ReleasedPart};
use super::check;
use super::lists::{index, lanes, own_records, Lists};
use super::{Checked, Known, Marks, Names, SavedPosition, Term, Whole};
use crate::consumer::{Consumers, TokenDelivery};
use crate::groups::backlog::{Backlog, Member};
use crate::groups::breaker::{Circuit, Lets};
use crate::groups::group::GroupSettings;
use crate::index::leases::{Batch, Leases};
use crate::index::ready_line::{Join, Position, ReadyLine};
use crate::index::records::{Record, Records};
use crate::index::waiting::Waiting;
use crate::limits::{ensure, exact, name, schedule_name, token, Invalid, MAX_TOKEN_COUNT};
use crate::message::body::Content;
use crate::message::state::StoredState;
use crate::message::{Choices, Message};
use crate::op::Effects;
use crate::queue::finish::record;
use crate::queue::moves::{member, order_key};
use crate::schedule::{Schedule, Schedules};
use crate::settings::OnRetry;
use crate::{ConsumerIx, GroupIx, Millis, Queue, Receipt, Seq};

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
    earlier: Earlier,
    running: Vec<check::Running>,
    batches: Vec<Batch>,
    /// Messages with ids given by clients, by the hash of the id.
    given: Vec<(u64, Seq)>,
    /// Salts of generated ids, each with the first message number for which it
    /// holds.
    salts: Vec<(Seq, u64)>,
    last_seq: Seq,
    /// Named batches, by the number in the snapshot.
    pub(super) named_batches: Vec<Seq>,
    held: Vec<Seq>,
    pub(super) released: Vec<ReleasedPart>,
}

/// What earlier versions had begun and not completed. It is completed when all else is
/// built.
#[derive(Debug, Default)]
struct Earlier {
    /// When and by which command messages were redriven.
    redriven: Join,
    /// Those of them that are still among the dead: whether each is grouped, its priority
    /// and its number, the order in which they were to be made pending.
    redriving: Vec<(bool, i8, Seq)>,
    /// When and by which command messages were purged of which their groups had not heard.
    purged: Join,
    /// Those groups.
    purged_of: Vec<GroupIx>,
}

/// A group as it is read from a snapshot.
#[derive(Debug, Clone, Default)]
pub struct GroupPart {
    /// Settings made by GROUPSET.
    pub settings: Option<Box<GroupSettings>>,
    /// End of the pause in Unix ms; NEVER for a pause without end.
    pub paused_until: Option<Millis>,
    /// Dead messages that hold the group: numbers and ids.
    pub held_by: Vec<(Seq, Box<[u8]>)>,
    /// Position of the group in the ready line, if it can give.
    pub line: Option<SavedPosition>,
    /// Messages given in the present turn.
    pub turn: u64,
    /// When the group must be checked again although nothing happens to it, in Unix
    /// ms.
    pub wake: Option<Millis>,
    /// Its breaker, unless that is closed and remembers no failure.
    pub breaker: Option<Circuit>,
}

#[derive(Debug)]
struct NewGroup {
    ix: GroupIx,
    part: GroupPart,
    pending: Vec<(StoredState, Member)>,
}

impl Builder {
    /// Begins a queue with the part that exists once.
    ///
    /// Errors: a value is out of range.
    pub fn new(whole: Whole) -> Result<Builder, Invalid> {
        check::whole(&whole)?;
        let mut queue = Queue::new(whole.settings, whole.clock, whole.salt);
        queue.last = whole.last;
        queue.next_seq = whole.next_seq;
        queue.last_receipt = whole.last_receipt;
        queue.totals = whole.totals;
        queue.lateness = whole.lateness;
        queue.window = whole.window;
        queue.paused_until = whole.paused_until;
        let (time, ticket) = whole.redriven;
        queue.plain_position = whole.plain_position.map(|at| at.key(GroupIx::NONE));
        Ok(Builder {
            queue,
            groups: Vec::new(),
            consumers: Vec::new(),
            lanes: [vec![Lists::default(); 256], vec![Lists::default(); 256]],
            expiring: Vec::new(),
            ended: Default::default(),
            own: Vec::new(),
            grouped_records: 0,
            earlier: Earlier {
                redriven: Join { time, ticket },
                ..Earlier::default()
            },
            running: Vec::new(),
            batches: Vec::new(),
            given: Vec::new(),
            salts: Vec::new(),
            last_seq: 0,
            named_batches: Vec::new(),
            held: Vec::new(),
            released: Vec::new(),
        })
    }

    /// Sets the salt of the generated ids of all messages that follow.
    pub fn salt(&mut self, salt: u64) {
        self.salts.push((self.last_seq + 1, salt));
    }

    /// Adds a group. Messages refer to it by the number of groups added before it.
    ///
    /// Errors: the part is out of range, or a group has this name already.
    pub fn group(&mut self, group: &[u8], part: GroupPart) -> Checked {
        name(group)?;
        check::group(&part, self.queue.next_seq, self.queue.last)?;
        let ix = self.queue.groups.find_or_add(group);
        // A new group gets the next slot, so its slot number tells whether the name
        // is new.
        let is_new = ix.number() == self.groups.len() as u64;
        ensure(is_new, "two groups have one name")?;
        self.groups.push(NewGroup {
            ix,
            part,
            pending: Vec::new(),
        });
        Ok(())
    }

    /// Adds the breaker of a group, or of the ungrouped messages (`None`). It comes
    /// after its group.
    ///
    /// Errors: the breaker is out of range, or there is one already.
    pub fn breaker(&mut self, group: Option<u64>, circuit: Circuit) -> Checked {
        check::breaker(&circuit, &self.queue)?;
        let is_new = match group {
            None => {
                let breaker = &mut self.queue.plain_breaker;
                breaker.replace(Box::new(circuit)).is_none()
            }
            Some(number) => {
                let group =
                    at_mut(&mut self.groups, number).ok_or(Invalid("there is no such group"))?;
                group.part.breaker.replace(circuit).is_none()
            }
        };
        ensure(is_new, "two breakers are of one group")
    }

    /// Adds a consumer, known or only named by messages. Messages refer to it by
    /// the number of consumers added before it.
    pub fn consumer(&mut self, consumer: &[u8], known: Option<Known>) -> Checked {
        name(consumer)?;
        if let Some((last_seen, counts)) = known {
            exact(last_seen)?;
            counts.into_iter().try_for_each(exact)?;
            self.queue.consumers.restore(consumer, last_seen, counts);
        }
        self.consumers.push(consumer.into());
        Ok(())
    }

    /// Adds the last delivery of a known consumer, which asked for it with a token.
    pub fn token(&mut self, consumer: &[u8], delivery: TokenDelivery) -> Checked {
        token(&delivery.token)?;
        let end = delivery.first.saturating_add(delivery.count);
        ensure(
            delivery.first > 0 && (1..=MAX_TOKEN_COUNT).contains(&delivery.count),
            "a delivery with a token is impossible",
        )?;
        ensure(
            end <= self.queue.last_receipt + 1,
            "a delivery with a token lies in the future",
        )?;
        ensure(
            self.queue.consumers.restore_token(consumer, delivery),
            "a token of no consumer",
        )
    }

    /// Adds the end that a lease had before its connection closed. Leases come in the
    /// order of their receipts.
    pub fn old_end(&mut self, receipt: Receipt, end: Millis) -> Checked {
        exact(end)?;
        let ends = &mut self.queue.old_ends;
        ensure(
            ends.last_key_value()
                .is_none_or(|(last, _)| *last < receipt),
            "ends of leases are out of order",
        )?;
        ends.insert(receipt, end);
        Ok(())
    }

    /// Adds a schedule. Schedules come in the order of their creation.
    pub fn schedule(&mut self, name: &[u8], mut schedule: Schedule) -> Checked {
        schedule_name(name)?;
        check::schedule(&schedule, self.queue.next_seq)?;
        let schedules: &mut Schedules = &mut self.queue.schedules;
        ensure(schedules.get(name).is_none(), "two schedules have one name")?;
        schedule.number = schedules.len() as u64;
        schedules.restore(name, schedule);
        Ok(())
    }

    /// Says when messages with [`Marks::purged`] were purged, and the rank of that command.
    pub fn purged(&mut self, time: Millis, rank: u64) -> Checked {
        exact(time)?;
        exact(rank)?;
        self.earlier.purged = Join { time, ticket: rank };
        Ok(())
    }

    /// Adds an id that DEDUP keeps taken.
    pub fn dedup(&mut self, id: &[u8], ended_at: Millis) -> Checked {
        name(id)?;
        exact(ended_at)?;
        let dedup = &mut self.queue.records.dedup;
        ensure(dedup.ended_at(id).is_none(), "an id is remembered twice")?;
        dedup.remember(id, ended_at);
        Ok(())
    }

    /// Adds a batch of more than one message. Batches come in the order of their
    /// receipts.
    pub fn batch(&mut self, first: Receipt, len: u64) -> Checked {
        let before = self.batches.last().map_or(0, |batch| batch.last);
        check::batch(first, len, before, self.queue.last_receipt)?;
        self.batches.push(Batch::new(first, len));
        Ok(())
    }

    /// Adds a message with its content. Messages come in the order of their
    /// numbers.
    ///
    /// Errors: the message is out of order, out of range, or names a group or
    /// consumer that was not added.
    pub fn message(
        &mut self,
        seq: Seq,
        mut message: Message,
        content: Content,
        Names {
            group,
            consumer,
            batch,
        }: Names,
        term: Option<Term>,
        marks: Marks,
    ) -> Checked {
        ensure(
            seq > self.last_seq && seq < self.queue.next_seq,
            "the number of a message is out of order",
        )?;
        self.last_seq = seq;
        if let Some(number) = group {
            let group =
                at_mut(&mut self.groups, number).ok_or(Invalid("there is no such group"))?;
            message.group = group.ix;
        }
        check::content(content)?;
        check::message(&message, term, marks, self.queue.last_receipt)?;
        ensure(
            message.stored != StoredState::Due || message.due <= self.queue.last,
            "a message is due before its time",
        )?;
        if message.stored == StoredState::Running {
            let running = check::Running::of(seq, &message, group, term, marks.purged);
            self.running.extend(running);
        }
        if marks.purged {
            self.earlier.purged_of.push(message.group);
            return Ok(());
        }
        if let Some(group) = group.and_then(|number| at_mut(&mut self.groups, number)) {
            let known = self.queue.groups.get_mut(group.ix);
            let known = known.ok_or(Invalid("there is no such group"))?;
            known.members += 1;
            if message.stored == StoredState::Running {
                known.running += 1;
                self.queue.grouped_running += 1;
            }
            if message.stored.is_pending() && message.stored != StoredState::Held {
                group.pending.push((message.stored, member(seq, &message)));
            }
        }
        if let Some(batch) = batch {
            self.enter_named_batch(seq, &message, batch)?;
        }
        let size = message.payload_len();
        let (stored, due) = (message.stored, message.due);
        let own_retain = message.choices().and_then(Choices::retain);
        self.queue.has_own_retain |= own_retain.is_some();
        match stored {
            StoredState::Delayed | StoredState::Due | StoredState::Retry => {
                let [plain, grouped] = &mut self.lanes;
                let lanes = if group.is_some() { grouped } else { plain };
                if let Some(lists) = lanes.get_mut(usize::from(message.priority as u8 ^ 0x80)) {
                    lists.push(stored, due, seq);
                }
                if let Some(at) = self.queue.expiry(&message) {
                    self.expiring.push((at, seq));
                }
                self.queue.bytes = self.queue.bytes.saturating_add(size);
            }
            StoredState::Held => {
                self.held.push(seq);
                if let Some(at) = self.queue.expiry(&message) {
                    self.expiring.push((at, seq));
                }
                self.queue.bytes = self.queue.bytes.saturating_add(size);
            }
            StoredState::Running => {
                self.queue.running_bytes = self.queue.running_bytes.saturating_add(size);
                self.queue.bytes = self.queue.bytes.saturating_add(size);
            }
            StoredState::Finished | StoredState::Dead | StoredState::Cancelled => {
                if message.group.is_some() {
                    let key = order_key(seq, &message);
                    self.queue.groups.enter_record(message.group, stored, key);
                    self.grouped_records += 1;
                }
                if marks.redriving {
                    let order = (group.is_some(), message.priority, seq);
                    self.earlier.redriving.push(order);
                }
                let list = self
                    .ended
                    .get_mut(stored as usize - StoredState::Finished as usize);
                if stored != StoredState::Dead && own_retain.is_some() {
                    self.own.push((stored, record(seq, &message)));
                } else if let Some(list) = list {
                    list.push((message.ended_at(), seq));
                }
            }
        }
        message.history.set_consumer(match consumer {
            None => ConsumerIx::NONE,
            Some(number) => {
                let consumer = at_mut(&mut self.consumers, number);
                let consumer = consumer.ok_or(Invalid("there is no such consumer"))?;
                let consumers: &mut Consumers = &mut self.queue.consumers;
                consumers.mention(consumer, stored == StoredState::Running)
            }
        });
        if let Some(id) = content.id {
            self.given.push((self.queue.ids.hash_of(id), seq));
        }
        self.queue.store.insert(seq, message, content);
        if let Some(first) = marks.first_sent {
            exact(first)?;
            self.queue.store.set_first_sent(seq, first);
        }
        Ok(())
    }

    /// Builds the queue. The first [`Queue::advance`] then looks for due events.
    ///
    /// Errors: the parts contradict each other. O(n log n); O(n) where messages
    /// came in the order of their due times.
    pub fn finish(mut self) -> Result<Queue, Invalid> {
        let running = check::batches(&mut self.running, &self.batches)?;
        for (number, first) in running.of_groups {
            let ix = at_mut(&mut self.groups, number).map(|group| group.ix);
            if let Some(group) = ix.and_then(|ix| self.queue.groups.get_mut(ix)) {
                group.open_batch(first);
            }
        }
        let leases = self.running.iter().filter(|running| !running.purged);
        let batches = running.batches.iter().filter(|(_, purged)| !purged);
        self.queue.leases = Leases::from_parts(
            leases.map(|running| running.lease).collect(),
            batches.map(|(batch, _)| *batch).collect(),
        );
        let (held, released) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.released),
        );
        enter_held(&mut self.queue, held, released)?;
        self.enter_groups()?;
        let ids = &mut self.queue.ids;
        ids.restore_salts(self.salts, self.queue.next_seq);
        ensure(
            ids.insert_all(&self.queue.store, &self.given),
            "two messages have one id",
        )?;

        let [plain, grouped] = self.lanes.map(lanes);
        self.queue.waiting = Waiting { plain, grouped };
        self.queue.expiring = index(self.expiring);
        let [finished, dead, cancelled] = self.ended;
        self.queue.records = Records {
            finished: index(finished),
            dead: index(dead),
            cancelled: index(cancelled),
            own: own_records(self.own),
            dedup: std::mem::take(&mut self.queue.records.dedup),
            grouped: self.grouped_records,
        };
        self.queue.wake = 0;
        // Operations rely on this position being right, and a forged snapshot may
        // give a wrong one.
        self.queue.plain_position = self.queue.plain_key(self.queue.last);
        self.earlier.complete(&mut self.queue);
        Ok(self.queue)
    }

    /// Gives the groups their messages, settings and positions, and builds the
    /// ready line.
    fn enter_groups(&mut self) -> Checked {
        self.earlier.purged_of.sort_unstable();
        let queue = &mut self.queue;
        let mut lines: [Vec<Position>; 2] = Default::default();
        check::probe(queue, queue.plain_breaker.as_deref(), GroupIx::NONE)?;
        let rule = queue.settings.breaker;
        for new in self.groups.drain(..) {
            let pending = new.pending;
            queue.groups.with(new.ix, |group| {
                group.backlog = Backlog::from_members(pending)
            });
            let Some(group) = queue.groups.get_mut(new.ix) else {
                continue;
            };
            let ext = group.ext_mut();
            ext.settings = new.part.settings;
            ext.paused_until = new.part.paused_until;
            for (seq, id) in new.part.held_by {
                let message = queue.store.get(seq);
                let is_there = |m: &Message| m.stored == StoredState::Dead && m.group == new.ix;
                match message.is_some_and(is_there) {
                    true => ext.holds.add(seq),
                    false => ext.holds.add_pruned(seq, &id),
                }
            }
            ext.turn = new.part.turn;
            if let (Some(circuit), Some(rule)) = (new.part.breaker, &rule) {
                check::probe(queue, Some(&circuit), new.ix)?;
                queue.groups.set_breaker(new.ix, circuit, rule);
            }
            let last = queue.last;
            let Some(group) = queue.groups.get_mut(new.ix) else {
                continue;
            };
            if let Some(position) = new.part.line {
                let key = position.key(new.ix);
                group.set_positions(Some(key), &[]);
                group.counted = true;
                queue.grouped_ready += group.backlog.all().count_at(StoredState::Due);
                let [steady, half_open] = &mut lines;
                match group.lets(last) {
                    Lets::Probe => half_open.push(key),
                    Lets::Any | Lets::None => steady.push(key),
                }
            }
            let Some(group) = queue.groups.get(new.ix) else {
                continue;
            };
            let blocked = queue.settings.on_retry == OnRetry::Block
                && queue.waits_for_retry(group, queue.last);
            let can_give = !group.backlog.all().is_empty()
                && !blocked
                && !queue.is_held_by_dead(group)
                && group.batch_count() < queue.concurrency(group)
                && !group.is_paused(queue.last)
                && group.lets(queue.last) != Lets::None;
            ensure(
                can_give || !group.is_in_line(),
                "a group stands in line that can give nothing",
            )?;
            // A group with nothing to give and no pause is not checked again,
            // whatever the snapshot says.
            let wake = new
                .part
                .wake
                .filter(|_| !group.backlog.all().is_empty() || group.ext().paused_until.is_some());
            queue.groups.wake_at(new.ix, wake);
            // What a purge has let go joins the line as of the purge.
            if self.earlier.purged_of.binary_search(&new.ix).is_err() {
                queue.expect_next(new.ix);
            }
            queue.groups.settle(new.ix);
        }
        let keys = lines.iter().flatten().chain(&queue.plain_position);
        let others = [self.earlier.redriven, self.earlier.purged];
        let joins = keys.map(|key| key.join).chain(others);
        queue.ticket = joins.map(|join| join.ticket).max().unwrap_or(0);
        queue.ready_line = ReadyLine::from_positions(lines);
        Ok(())
    }
}

impl Earlier {
    /// Completes what was redriven and purged, as of when that was.
    fn complete(mut self, queue: &mut Queue) {
        self.redriving.sort_unstable();
        for (_, _, seq) in self.redriving {
            queue.redrive_one(seq, self.redriven);
        }
        self.purged_of.dedup();
        for ix in self.purged_of.into_iter().filter(|ix| ix.is_some()) {
            queue.refresh(ix, queue.last, self.purged);
        }
        queue.effects = Effects::default();
    }
}

fn at_mut<T>(list: &mut [T], number: u64) -> Option<&mut T> {
    list.get_mut(usize::try_from(number).ok()?)
}
