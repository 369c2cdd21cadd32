//! SEND: adds messages, checks the limits of the queue, and replaces messages with
//! REPLACE.

use smallvec::SmallVec;

use crate::error::Error;
use crate::message::body::Content;
use crate::message::given::GivenId;
use crate::message::packing::Payload;
use crate::message::state::{Reason, StoredState};
use crate::message::{Choices, Message};
use crate::op::{Done, DueTime, Happened, Send, Sent};
use crate::queue::batches::rings::Rings;
use crate::queue::moves::IndexKeys;
use crate::queue::ops::id_use::IdUse;
use crate::queue::ops::start::Start;
use crate::queue::Queue;
use crate::transition::Kind;
use crate::{GroupIx, Millis, Seq, MAX_EXACT};

/// The last number for which SEND adds a message. Only a dump can say that so many were used. The
/// numbers behind it are for what was accepted before: what waits for the end of a run.
const MOST_NUMBERED: Seq = MAX_EXACT - (1 << 32);

impl Queue {
    /// Sends all payloads or none, also none if IFGROUP does not hold. O(log n) a
    /// message.
    ///
    /// Errors: the queue is closed, MAXLEN or MAXBYTES does not allow it, one of its limits never
    /// allows its cost, or batches would wait for each other.
    pub(in crate::queue) fn send(&mut self, send: &Send, now: Millis) -> Result<Done, Error> {
        if !self.may_send(send) {
            return Ok(Done::Sent(smallvec::smallvec![Sent::NoGroup]));
        }
        if self.earlier_of(send, now).is_some() {
            self.count_duplicate();
            return Ok(Done::Sent(smallvec::smallvec![Sent::Duplicate]));
        }
        let id_use = match &send.id {
            Some(id) => self.id_use(id, send, now),
            None => IdUse::Free,
        };
        if matches!(id_use, IdUse::Taken) {
            self.count_duplicate();
            return Ok(Done::Sent(smallvec::smallvec![Sent::Taken]));
        }
        self.check_room(send, &id_use)?;
        self.check_cost(&send.choices)?;
        if self.state.seldom.has_batches() {
            Rings::new(self).add(send, id_use.waiting())?;
        }
        Ok(Done::Sent(self.put(send, id_use, None, now)))
    }

    /// Sends one message without checking the limits. It is not added where its id
    /// is taken or IFGROUP does not hold. O(log n).
    pub(in crate::queue) fn send_unchecked(&mut self, send: &Send, now: Millis) -> Sent {
        if !self.may_send(send) {
            // The messages after it may have to generate their ids with the new salt.
            self.renew_salt(send.new_salt);
            return Sent::NoGroup;
        }
        if self.earlier_of(send, now).is_some() {
            self.renew_salt(send.new_salt);
            self.count_duplicate();
            return Sent::Duplicate;
        }
        let id_use = match &send.id {
            Some(id) => self.id_use(id, send, now),
            None => IdUse::Free,
        };
        if matches!(id_use, IdUse::Taken) {
            self.count_duplicate();
            return Sent::Taken;
        }
        let sent = self.put(send, id_use, None, now);
        sent.first().copied().unwrap_or(Sent::Taken)
    }

    /// Adds the messages of a SEND whose id is not taken. `replaced` is when the first was
    /// sent (Unix ms) of a row of sends before it, if one was.
    #[inline(always)]
    pub(in crate::queue) fn put(
        &mut self,
        send: &Send,
        id_use: IdUse,
        replaced: Option<Millis>,
        now: Millis,
    ) -> SmallVec<[Sent; 1]> {
        let sent = match id_use {
            IdUse::Free | IdUse::Taken => self.put_new(send, replaced, now),
            id_use => self.put_over(send, id_use, replaced, now),
        };
        if send.dedup.is_some() {
            self.remember_dedup_id(send, &sent, now);
        }
        sent
    }

    /// Like [`Queue::put`], where a message or a record has the id.
    fn put_over(
        &mut self,
        send: &Send,
        id_use: IdUse,
        mut replaced: Option<Millis>,
        now: Millis,
    ) -> SmallVec<[Sent; 1]> {
        let mut counted = None;
        match id_use {
            IdUse::Record(seq) => {
                if self.state.seldom.has_siblings()
                    && send.replace
                    && !self.is_at(seq, StoredState::Finished)
                {
                    self.replace_child(seq, &send.choices);
                }
                self.drop_record(seq);
            }
            IdUse::Waiting(seq) => {
                replaced = self.first_sent_at(seq);
                counted = self
                    .state
                    .store
                    .get(seq)
                    .and_then(Message::children)
                    .cloned();
                self.replace(seq, &send.choices, now);
            }
            IdUse::Ended(seq) => self.replace_ended(seq, &send.choices, now),
            IdUse::Running(seq) => {
                self.wait_for_run(seq, send, now);
                return SmallVec::from_buf([Sent::Waits(seq)]);
            }
            IdUse::Free | IdUse::Taken => {}
        }
        let sent = self.put_new(send, replaced, now);
        if let (Some(counted), Some(&Sent::Added(seq))) = (counted, sent.first()) {
            self.take_over_children(seq, counted, now);
        }
        sent
    }

    /// Adds the messages of a SEND whose id is free. `replaced` as in [`Queue::put`].
    #[inline(always)]
    fn put_new(
        &mut self,
        send: &Send,
        replaced: Option<Millis>,
        now: Millis,
    ) -> SmallVec<[Sent; 1]> {
        self.renew_salt(send.new_salt);
        let mut due = send.due.from(now);
        if let Some(wait) = send.choices.max_wait() {
            let latest = replaced.unwrap_or(now).saturating_add(wait);
            due = due.min(latest).max(now);
        }
        let mut sent = SmallVec::with_capacity(send.payloads.len());
        for payload in &send.payloads {
            let content = Content {
                id: send.id.as_deref().map(GivenId::Text),
                payload: Payload::Plain(payload),
            };
            let mut message = Message::new(content, now, due);
            message.priority = send.priority;
            message.set_due_at_point(send.due == DueTime::At(due));
            let group = send.group.as_deref();
            let seq = self.add(message, content, group, &send.choices, now);
            if let Some(first) = replaced {
                self.state.store.set_first_sent(seq, first);
            }
            sent.push(Sent::Added(seq));
        }
        sent
    }

    /// Generates ids with another salt from now on, if there is one.
    #[inline]
    fn renew_salt(&mut self, new_salt: Option<u64>) {
        if let Some(salt) = new_salt {
            self.state
                .ids
                .renew(&self.state.store, self.state.next_seq, salt);
            self.notes.effects.changed = true;
        }
    }

    /// Counts a SEND whose id was taken.
    pub(in crate::queue) fn count_duplicate(&mut self) -> Done {
        self.state.totals.duplicates += 1;
        self.notes.effects.changed = true;
        Done::Ok
    }

    /// Adds one new message without checking the limits.
    pub(in crate::queue) fn add(
        &mut self,
        mut message: Message,
        content: Content,
        group: Option<&[u8]>,
        choices: &Choices,
        now: Millis,
    ) -> Seq {
        if content.id.is_none() {
            // A client may have guessed the id that would be generated next and
            // used it.
            while self.is_given(self.state.next_seq, now) {
                self.state.next_seq += 1;
            }
        }
        let seq = self.state.next_seq;
        self.state.next_seq += 1;
        let has_choices = !choices.is_default();
        if has_choices {
            self.indexes.has_own_retain |= choices.retain().is_some();
            if let Some(stored) = choices.stored() {
                message.extension_mut().choices = Some(stored);
            }
        }
        // One check for a message with none of the options that few messages have.
        let rare = choices.rare.is_some().then_some(choices);
        let start = rare.map_or(Start::Pending, |choices| self.start_of(choices));
        let joins = match group {
            Some(name) => Some(self.state.groups.find_or_add(name)),
            None => rare.and_then(|choices| self.hidden_group_of(choices)),
        };
        if let Some(group) = joins {
            message.group = group;
            if let Some(group) = self.state.groups.get_mut(message.group) {
                group.members += 1;
                group.backlog.expect_one();
            }
        }
        let group = message.group;
        let keys = match start {
            Start::Pending => Some(IndexKeys::begin(
                seq,
                &mut message,
                self.state.settings.ttl,
                now,
            )),
            _ => {
                message.stored = StoredState::Held;
                None
            }
        };

        self.indexes.bytes += message.payload_len();
        self.state.totals.sent += 1;
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        self.notes.effects.happened.add(Happened::SENT);
        self.state.store.insert(seq, message, content);
        if content.id.is_some() {
            self.state.ids.insert(&self.state.store, seq);
        }
        self.note_sent(seq, now);
        if let Some(choices) = rare {
            self.count_rare(seq, choices, start);
        }
        let Some(keys) = keys else {
            self.enter_start(seq, choices, start, now);
            return seq;
        };
        if keys.has_expired(now) {
            // The EXPIREAT of the message has passed already.
            self.die(seq, Reason::Expired, now);
            self.refresh(group, now, self.join(now));
        } else if !self.enter(keys) {
            // If the message comes behind another one that is due, the next message of its
            // group does not change. Otherwise it may.
            self.refresh(group, now, self.join(now));
        }
        seq
    }

    /// Whether this SEND may add messages with regard to IFGROUP.
    fn may_send(&self, send: &Send) -> bool {
        !send.if_group || self.live_of_group(send.group.as_deref()) > 0
    }

    /// Number of pending and running messages of a group.
    pub(in crate::queue) fn live_of_group(&self, name: Option<&[u8]>) -> u64 {
        let ix = name.and_then(|name| self.state.groups.find(name));
        let group = ix.and_then(|ix| self.state.groups.get(ix));
        group.map_or(0, |group| {
            group.backlog.all().len() + u64::from(group.running) + group.ext().held
        })
    }

    /// Checks that there are numbers for further messages.
    pub(in crate::queue) fn check_numbers(&self) -> Result<(), Error> {
        match self.state.next_seq > MOST_NUMBERED {
            true => Err(Error::FullLength {
                limit: MOST_NUMBERED,
            }),
            false => Ok(()),
        }
    }

    /// Checks that SENDS, MAXLEN and MAXBYTES allow this SEND. They refuse only what
    /// grows, because ALTER may have made a limit smaller than what is already in the
    /// queue.
    fn check_room(&self, send: &Send, id_use: &IdUse) -> Result<(), Error> {
        self.check_numbers()?;
        let (limit, max_bytes) = (self.state.settings.max_len, self.state.settings.max_bytes);
        if limit == 0 && max_bytes == 0 && !self.state.settings.closed {
            return Ok(());
        }
        let replaced = match id_use {
            IdUse::Waiting(seq) => self.state.store.get(*seq),
            IdUse::Running(seq) => return self.check_rerun(*seq, send, [self.indexes.bytes; 2]),
            _ => None,
        };
        if replaced.is_none() && self.state.settings.closed {
            return Err(Error::Closed);
        }
        let len = self.live().saturating_add(send.payloads.len() as u64);
        if replaced.is_none() && limit > 0 && len > limit {
            return Err(Error::FullLength { limit });
        }
        let sizes = send.payloads.iter().map(|payload| payload.len() as u64);
        self.check_bytes(replaced, sizes.fold(0, u64::saturating_add))
    }

    /// Checks that the limits of a message with these options allow its cost at some time.
    pub(in crate::queue) fn check_cost(&self, choices: &Choices) -> Result<(), Error> {
        let (Some(limits), Some(limited)) = (self.limits(), choices.limited()) else {
            return Ok(());
        };
        match limits.never(limited) {
            Some((_, most)) => Err(Error::CostsTooMuch {
                cost: limited.cost,
                most,
            }),
            None => Ok(()),
        }
    }

    /// Checks that MAXBYTES allows `after` payload bytes, in addition to the others or
    /// instead of the pending message `replaced`. A payload that is not larger than the
    /// replaced one always fits.
    pub(in crate::queue) fn check_bytes(
        &self,
        replaced: Option<&Message>,
        after: u64,
    ) -> Result<(), Error> {
        let limit = self.state.settings.max_bytes;
        let before = replaced.map_or(0, Message::payload_len);
        let others = self.indexes.bytes - before;
        let is_full = limit > 0 && others.saturating_add(after) > limit;
        match is_full && after > before {
            true => Err(Error::FullBytes { limit }),
            false => Ok(()),
        }
    }

    /// Removes a pending message that is replaced. Clients that wait for the end of
    /// its id keep waiting.
    fn replace(&mut self, seq: Seq, by: &Choices, now: Millis) {
        if self.state.seldom.has_siblings() {
            self.replace_child(seq, by);
        }
        self.note(seq, Kind::Replaced);
        self.leave_pending(seq);
        let group = match self.state.store.get(seq) {
            Some(message) => {
                self.indexes.bytes -= message.payload_len();
                message.group
            }
            None => GroupIx::NONE,
        };
        self.forget(seq);
        self.refresh(group, now, self.join(now));
    }

    /// Removes a dead or cancelled message that is replaced. It holds its group no
    /// longer. Its id is not remembered: the new message has it.
    fn replace_ended(&mut self, seq: Seq, by: &Choices, now: Millis) {
        if self.bring_up_to_date(seq, now).is_none() {
            return;
        }
        if self.state.seldom.has_siblings() {
            self.replace_child(seq, by);
        }
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        self.note(seq, Kind::Replaced);
        self.leave_record(seq);
        self.unhold(seq, group);
        self.forget(seq);
        self.refresh(group, now, self.join(now));
    }
}
