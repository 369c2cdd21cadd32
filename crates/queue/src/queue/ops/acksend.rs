//! ACKSEND: finishes a delivery and sends the messages and signals that follow from it, all or
//! nothing.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::error::Error;
use crate::message::id::NameHasher;
use crate::message::Choices;
use crate::op::{AckSend, Done, Moment, Send, Sent};
use crate::queue::batches::rings::Rings;
use crate::queue::batches::Hold;
use crate::queue::ops::id_use::IdUse;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{Millis, Receipt, Seq};

/// The meaning that an id will have once the earlier parts of an ACKSEND are done.
enum Planned<'q> {
    /// No message has the id.
    Free,
    /// A message that has finished keeps it taken.
    Taken,
    /// A dead message has the id, which is taken unless the message is replaced.
    Dead,
    /// A pending message has the id.
    Pending {
        /// Its payload bytes.
        size: u64,
        group: Option<&'q [u8]>,
    },
}

/// The room and the ids of a queue after the parts of an ACKSEND that were
/// planned so far.
struct Plan<'q> {
    queue: &'q Queue,
    now: Millis,
    /// Pending and running messages.
    len: u64,
    /// The payload bytes of the pending and running messages.
    bytes: u64,
    ids: HashMap<Box<[u8]>, Planned<'q>, NameHasher>,
    /// The deduplication ids of the messages that are sent.
    dedup_ids: HashSet<&'q [u8], NameHasher>,
    /// By how many pending and running messages groups have grown.
    groups: HashMap<&'q [u8], i64, NameHasher>,
}

impl Queue {
    /// Whether an ACKSEND can be done in this queue; false if its receipt is stale.
    /// Changes nothing. O(log n) a message.
    ///
    /// Errors: the queue is closed; MAXLEN or MAXBYTES does not allow one of the messages,
    /// although the finished one has left; a limit never allows its cost; or batches would wait
    /// for each other.
    pub fn can_ack_send<'q>(&'q self, op: &'q AckSend, moment: Moment) -> Result<bool, Error> {
        let now = self.now(moment);
        if op.receipt.is_some_and(|r| self.current(r, now).is_none()) {
            return Ok(false);
        }
        let (max_len, max_bytes) = (self.state.settings.max_len, self.state.settings.max_bytes);
        let uses_batches = op
            .sends
            .iter()
            .any(|send| send.choices.batching().is_some());
        self.check_numbers()?;
        let closed = self.state.settings.closed;
        if max_len == 0 && max_bytes == 0 && !uses_batches && !closed && self.limits().is_none() {
            return Ok(true);
        }
        let mut plan = Plan {
            queue: self,
            now,
            len: self.live(),
            bytes: self.indexes.bytes,
            ids: HashMap::default(),
            dedup_ids: HashSet::default(),
            groups: HashMap::default(),
        };
        let mut rings = Rings::new(self);
        // A limit refuses only growth, as for SEND.
        let (len, bytes) = (plan.len, plan.bytes);
        if let Some(receipt) = op.receipt {
            plan.ack(receipt);
        }
        for send in &op.sends {
            if plan.is_duplicate(send) {
                continue;
            }
            if let Some(seq) = plan.waits_for_run(send) {
                plan.remember(send);
                self.check_rerun(seq, send, [plan.bytes, bytes])?;
                self.check_cost(&send.choices)?;
                rings.add(send, None)?;
                continue;
            }
            let before = plan.len;
            let part = plan.send(send);
            if closed && plan.len > before {
                return Err(Error::Closed);
            }
            if max_len > 0 && plan.len > max_len && plan.len > len {
                return Err(Error::FullLength { limit: max_len });
            }
            if max_bytes > 0 && plan.bytes > max_bytes && plan.bytes > bytes {
                return Err(Error::FullBytes { limit: max_bytes });
            }
            if let Some(replaced) = part {
                plan.remember(send);
                self.check_cost(&send.choices)?;
                rings.add(send, replaced)?;
                if !seeded(Bug::AckSendCountsDead) {
                    plan.settle(send);
                }
            }
        }
        Ok(true)
    }

    /// Acks the delivery, then sends. Does nothing if the receipt is stale. O(log n)
    /// a message.
    pub(in crate::queue) fn ack_send(&mut self, op: &AckSend, now: Millis) -> Done {
        let lease = op.receipt.and_then(|receipt| self.current(receipt, now));
        // The messages that are sent count in their batch before the message has ended in its own.
        let kept = lease.and_then(|lease| self.keep_batch_open(lease.seq));
        if let Some(receipt) = op.receipt {
            if !self.ack_one(receipt, op.result.as_deref(), now) {
                return Done::AckSent(None);
            }
            // The message that waited for the end of the run takes the id before the messages that
            // are sent.
            self.send_reruns(now);
        }
        let mut sent = SmallVec::with_capacity(op.sends.len() + op.signals.len());
        sent.extend(op.sends.iter().map(|send| self.send_unchecked(send, now)));
        for signal in &op.signals {
            // Groups that join the ready line because of a signal join it behind the messages sent
            // before the signal.
            self.state.ticket += 1;
            let is_there = self.signal(&signal.id, &signal.text, now);
            sent.push(Sent::Signaled(is_there));
        }
        if let Some(batch) = kept {
            self.let_batch_close(batch, now);
        }
        Done::AckSent(Some(sent))
    }
}

impl<'q> Plan<'q> {
    fn ack(&mut self, receipt: Receipt) {
        let Some(lease) = self.queue.current(receipt, self.now) else {
            return;
        };
        let Some(message) = self.queue.state.store.get(lease.seq) else {
            return;
        };
        self.count(self.queue.state.groups.name(message.group), -1);
        self.len = self.len.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(message.payload_len());
        let id = self.queue.id_of(lease.seq, message).to_box();
        let after = match (message.rerun(), self.queue.state.settings.dedup) {
            (Some(rerun), _) => {
                // The other message is sent at once, in the place of this one.
                let (size, group) = (rerun.payload.len() as u64, rerun.group.as_deref());
                match self.dies_at_once(&rerun.choices) {
                    true => Planned::Dead,
                    false => {
                        self.len += 1;
                        self.bytes = self.bytes.saturating_add(size);
                        self.count(group, 1);
                        Planned::Pending { size, group }
                    }
                }
            }
            (None, 0) => Planned::Free,
            (None, _) => Planned::Taken,
        };
        self.ids.insert(id, after);
    }

    /// The running message for the end of whose run this one waits, if it does.
    fn waits_for_run(&self, send: &Send) -> Option<Seq> {
        let id = send.id.as_deref().filter(|_| send.rerun)?;
        if self.ids.contains_key(id) || !self.may_send(send) {
            return None;
        }
        match self.queue.id_use(id, send, self.now) {
            IdUse::Running(seq) => Some(seq),
            _ => None,
        }
    }

    /// Whether a message was sent with the same deduplication id, by this command or before.
    fn is_duplicate(&self, send: &Send) -> bool {
        let dedup = send.dedup.as_ref();
        self.queue.earlier_of(send, self.now).is_some()
            || dedup.is_some_and(|dedup| self.dedup_ids.contains(&*dedup.name))
    }

    /// Remembers the deduplication id of a message that is sent.
    fn remember(&mut self, send: &'q Send) {
        if let Some(dedup) = &send.dedup {
            self.dedup_ids.insert(&dedup.name);
        }
    }

    /// Whether this message may be added with regard to IFGROUP.
    fn may_send(&self, send: &Send) -> bool {
        let Some(group) = send.group.as_deref().filter(|_| send.if_group) else {
            return true;
        };
        let grown = self.groups.get(group).copied().unwrap_or(0);
        self.queue
            .live_of_group(Some(group))
            .saturating_add_signed(grown)
            > 0
    }

    /// Counts messages that join a group, or leave it.
    fn count(&mut self, group: Option<&'q [u8]>, by: i64) {
        if let Some(group) = group {
            *self.groups.entry(group).or_insert(0) += by;
        }
    }

    /// Whether a message with these options is dead as soon as it is sent.
    fn dies_at_once(&self, choices: &Choices) -> bool {
        let hold = choices.batching().map(|of| self.queue.hold_of(of));
        choices.expire_at().is_some_and(|at| at <= self.now) || matches!(hold, Some(Hold::Dies(_)))
    }

    /// Removes a message that was just planned if it will be dead at once: it needs no
    /// room.
    fn settle(&mut self, send: &'q Send) {
        if !self.dies_at_once(&send.choices) {
            return;
        }
        self.count(send.group.as_deref(), -1);
        let size = send.payloads.iter().map(|payload| payload.len() as u64);
        self.len = self.len.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size.fold(0, u64::saturating_add));
        if let Some(id) = &send.id {
            self.ids.insert((**id).into(), Planned::Dead);
        }
    }

    /// Plans one message. Returns the stored message that it replaces, if there is
    /// one; `None` if it is not sent, because its id is taken or IFGROUP does not hold.
    fn send(&mut self, send: &'q Send) -> Option<Option<Seq>> {
        if !self.may_send(send) {
            return None;
        }
        let size = send.payloads.iter().map(|payload| payload.len() as u64);
        let size = size.fold(0, u64::saturating_add);
        let group = send.group.as_deref();
        // The payload bytes and the group of the message that this one replaces.
        let (mut replaced, mut stored) = (None, None);
        if let Some(id) = &send.id {
            match self.ids.get(&**id) {
                Some(Planned::Free) => {}
                Some(Planned::Dead) if send.replace => {}
                Some(Planned::Pending { size, group }) if send.replace => {
                    replaced = Some((*size, *group));
                }
                Some(Planned::Pending { .. } | Planned::Dead | Planned::Taken) => return None,
                None => match self.queue.id_use(id, send, self.now) {
                    IdUse::Free | IdUse::Record(_) | IdUse::Ended(_) => {}
                    IdUse::Waiting(seq) => {
                        stored = Some(seq);
                        // A redriven message that is not moved yet is not counted in
                        // `bytes`, nor in its group.
                        let message = self.queue.state.store.get(seq);
                        let counted = message.filter(|message| message.stored.is_pending());
                        replaced = Some(counted.map_or((0, None), |message| {
                            let group = self.queue.state.groups.name(message.group);
                            (message.payload_len(), group)
                        }));
                    }
                    // A message that waits for a run was planned before.
                    IdUse::Running(_) | IdUse::Taken => return None,
                },
            }
            self.ids
                .insert((**id).into(), Planned::Pending { size, group });
        }
        self.len += u64::from(replaced.is_none());
        let (size_before, group_before) = replaced.unwrap_or((0, None));
        self.count(group_before, -1);
        self.count(group, 1);
        let others = self.bytes.saturating_sub(size_before);
        self.bytes = others.saturating_add(size);
        Some(stored)
    }
}
