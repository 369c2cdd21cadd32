//! The messages of a queue that is built from its parts.

use super::{at_mut, Builder};
use crate::consumer::Consumers;
use crate::limits::{ensure, exact, Invalid};
use crate::message::body::Content;
use crate::message::state::StoredState;
use crate::message::{Choices, Message};
use crate::queue::ends::records::record;
use crate::queue::moves::{first_due, member, order_key};
use crate::queue::rebuild::{check, leases, Checked, Names, Term};
use crate::{ConsumerIx, Millis, Seq};

impl Builder {
    /// Adds a message with its content. Messages come in the order of their
    /// numbers. `first_sent` is when the first send was done (Unix ms) of the row that it
    /// ends, each of which replaced the one before.
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
            siblings,
        }: Names,
        term: Option<Term>,
        first_sent: Option<Millis>,
    ) -> Checked {
        ensure(
            seq > self.last_seq && seq < self.queue.state.next_seq,
            "messages must be in the order of their numbers",
        )?;
        self.last_seq = seq;
        if let Some(number) = group {
            let group = at_mut(&mut self.groups, number)
                .ok_or(Invalid("a message names a group that is missing"))?;
            message.group = group.ix;
        }
        check::content(content)?;
        check::message(&message, term, self.queue.state.last_receipt)?;
        ensure(
            message.stored != StoredState::Due || message.due <= self.queue.state.last,
            "a message is stored as due before its due time",
        )?;
        if message.stored == StoredState::Running {
            let running = leases::Running::of(seq, &message, group, term);
            self.running.extend(running);
        }
        self.limits_of(&message, message.stored == StoredState::Running)?;
        if let Some(group) = group.and_then(|number| at_mut(&mut self.groups, number)) {
            let known = self.queue.state.groups.get_mut(group.ix);
            let known = known.ok_or(Invalid("a message names a group that is missing"))?;
            known.members += 1;
            if message.stored == StoredState::Running {
                known.running += 1;
                self.queue.indexes.grouped_running += 1;
            }
            if message.stored.is_pending() && message.stored != StoredState::Held {
                group.pending.push((message.stored, member(seq, &message)));
            }
        }
        if let Some(batch) = batch {
            self.enter_named_batch(seq, &message, batch)?;
        }
        if let Some(set) = siblings {
            self.enter_set(seq, message.stored, set)?;
        }
        let size = message.payload_len();
        let (stored, due) = (message.stored, message.due);
        let own_retain = message.choices().and_then(Choices::retain);
        self.queue.indexes.has_own_retain |= own_retain.is_some();
        self.queue.indexes.has_reruns |= message.rerun().is_some();
        match stored {
            StoredState::Delayed | StoredState::Due | StoredState::Retry => {
                let [plain, grouped] = &mut self.lanes;
                let lanes = if group.is_some() { grouped } else { plain };
                if let Some(lists) = lanes.get_mut(usize::from(message.priority as u8 ^ 0x80)) {
                    lists.push(stored, due, seq);
                }
                if let Some(at) = first_due(&message) {
                    self.queue.indexes.first_dues.insert(at);
                }
                if let Some(at) = self.queue.expiry(&message) {
                    self.expiring.push((at, seq));
                }
                self.queue.indexes.bytes = self.queue.indexes.bytes.saturating_add(size);
            }
            StoredState::Held => {
                self.held.push(seq);
                if let Some(at) = self.queue.expiry(&message) {
                    self.expiring.push((at, seq));
                }
                self.queue.indexes.bytes = self.queue.indexes.bytes.saturating_add(size);
            }
            StoredState::Leaving => self.queue.owe_letter(seq),
            StoredState::Running => {
                self.queue.indexes.running_bytes =
                    self.queue.indexes.running_bytes.saturating_add(size);
                self.queue.indexes.bytes = self.queue.indexes.bytes.saturating_add(size);
            }
            StoredState::Finished | StoredState::Dead | StoredState::Cancelled => {
                if message.group.is_some() {
                    let key = order_key(seq, &message);
                    self.queue
                        .state
                        .groups
                        .enter_record(message.group, stored, key);
                    self.grouped_records += 1;
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
                let consumer =
                    consumer.ok_or(Invalid("a message names a consumer that is missing"))?;
                let consumers: &mut Consumers = &mut self.queue.state.consumers;
                consumers.mention(consumer, stored == StoredState::Running)
            }
        });
        if let Some(id) = content.id.filter(|_| stored != StoredState::Leaving) {
            let hash = self.queue.state.ids.hash_of(id.id().as_bytes());
            self.given.push((hash, seq));
        }
        self.queue.state.store.insert(seq, message, content);
        if let Some(first) = first_sent {
            exact(first)?;
            self.queue.state.store.set_first_sent(seq, first);
        }
        Ok(())
    }
}
