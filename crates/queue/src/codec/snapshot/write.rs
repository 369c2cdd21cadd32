//! Writes a snapshot: the frames of a queue, one after the other, cut into blocks.

use crate::seeded::{seeded, Bug};
use hashbrown::HashMap;

use super::blocks::Blocks;
use super::children::put_report;
use super::dead_letters::put_dead_letters;
use super::detached::put_detached;
use super::frames::{
    put_breaker, put_consumer, put_group, put_limit, put_named_batch, put_released, put_schedule,
    put_usage, put_whole,
};
use super::history::put_history;
use super::{tag, Bases};
use crate::codec::options::put_parent;
use crate::codec::wire::{put_bytes, put_delta, put_fixed, put_flag, put_number};
use crate::message::history::History;
use crate::message::id::NameHasher;
use crate::message::packing::Payload;
use crate::message::state::StoredState;
use crate::queue::rebuild::{Known, Numbered, Parts, ReleasedPart};
use crate::{ConsumerIx, GroupIx, Queue, Seq};

/// The form in which a snapshot has payloads that are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payloads {
    /// As they were sent.
    Plain,
    /// As they are kept.
    Kept,
}

/// Writes a queue as blocks of `size` bytes; only the last block may be
/// shorter. O(n) in messages and O(n log n) in everything else. It takes up to
/// about 8 MiB of memory for blocks, 16 bytes for every 128 messages, and 4
/// bytes a group.
pub fn encode(queue: &Queue, size: usize, payloads: Payloads, emit: &mut dyn FnMut(&[u8])) {
    let parts = queue.parts();
    let mut writer = Writer {
        blocks: Blocks::new(size, emit),
        bases: Bases::default(),
        salt: parts.salt(),
        payloads,
        packed: None,
        groups: Numbers::default(),
        consumers: Numbers::default(),
        known: parts.consumers().collect(),
        named: HashMap::default(),
        siblings: HashMap::default(),
        parts,
    };
    writer.write();
}

struct Writer<'a, 'e> {
    parts: Parts<'a>,
    blocks: Blocks<'e>,
    bases: Bases,
    /// The salt that was written last.
    salt: u64,
    payloads: Payloads,
    /// The dictionary that was named last.
    packed: Option<u8>,
    groups: Numbers,
    consumers: Numbers,
    /// The known consumers that have not been written yet.
    known: HashMap<&'a [u8], Known, NameHasher>,
    /// The named batches that have been written, with their numbers here.
    named: HashMap<Seq, u64, NameHasher>,
    /// The sets of siblings that have been written, with their numbers here.
    siblings: HashMap<Seq, u64, NameHasher>,
}

impl<'a> Writer<'a, '_> {
    fn write(&mut self) {
        let whole = self.parts.whole();
        put_whole(self.blocks.begin(), &whole);
        self.blocks.end(&[]);
        if self.payloads == Payloads::Kept {
            for (number, dictionary, is_current) in self.parts.dictionaries() {
                let frame = self.blocks.begin();
                frame.push(tag::DICTIONARY);
                put_number(frame, number.into());
                put_flag(frame, is_current);
                self.blocks.end(dictionary.text());
            }
        }
        if let Some(circuit) = self.parts.plain_breaker() {
            put_breaker(self.blocks.begin(), None, circuit);
            self.blocks.end(&[]);
        }
        if let Some(fair) = self.parts.fair() {
            put_usage(self.blocks.begin(), None, &fair.plain, Some(fair));
            self.blocks.end(&[]);
        }
        for (name, schedule) in self.parts.schedules() {
            let frame = self.blocks.begin();
            frame.push(tag::SCHEDULE);
            put_schedule(frame, name, schedule);
            self.blocks.end(&schedule.template.payload);
        }
        for limit in self.parts.limits() {
            put_limit(self.blocks.begin(), limit);
            self.blocks.end(&limit.name);
        }
        for batch in self.parts.batches() {
            let frame = self.blocks.begin();
            frame.push(tag::BATCH);
            put_delta(frame, batch.first, self.bases.receipt);
            put_number(frame, batch.count());
            self.bases.receipt = batch.first;
            self.blocks.end(&[]);
        }
        let remembered: Vec<_> = self.parts.dedup().collect();
        for (id, ended_at) in remembered {
            if seeded(Bug::SnapshotForgetsDedup) {
                continue;
            }
            let frame = self.blocks.begin();
            frame.push(tag::DEDUP);
            put_number(frame, ended_at);
            self.blocks.end(id);
        }
        for (name, id, until) in self.parts.dedup_ids() {
            if seeded(Bug::SnapshotForgetsDedup) {
                continue;
            }
            let frame = self.blocks.begin();
            frame.push(tag::DEDUP_ID);
            put_number(frame, until);
            put_bytes(frame, name);
            self.blocks.end(id);
        }
        let messages = self.write_messages();
        self.write_others();
        if let Some(letters) = self.parts.dead_letters() {
            put_dead_letters(self.blocks.begin(), letters);
            self.blocks.end(&[]);
        }
        if let Some(detached) = self.parts.detached() {
            put_detached(self.blocks.begin(), detached);
            self.blocks.end(&[]);
        }
        for report in self.parts.reports() {
            put_report(self.blocks.begin(), report);
            self.blocks.end(&[]);
        }
        for (name, delivery) in self.parts.token_deliveries() {
            let frame = self.blocks.begin();
            frame.push(match delivery.applied {
                Some(_) => tag::APPLIED,
                None => tag::TOKEN,
            });
            put_bytes(frame, name);
            if let Some(applied) = &delivery.applied {
                put_bytes(frame, applied);
            }
            put_number(frame, delivery.first);
            put_number(frame, delivery.count);
            self.blocks.end(&delivery.token);
        }
        for (receipt, end) in self.parts.old_ends() {
            if seeded(Bug::SnapshotForgetsOldEnd) {
                continue;
            }
            let frame = self.blocks.begin();
            frame.push(tag::OLD_END);
            put_number(frame, receipt);
            put_number(frame, end);
            self.blocks.end(&[]);
        }
        for released in self.parts.released() {
            put_released(self.blocks.begin(), &ReleasedPart::of(released));
            self.blocks.end(&[]);
        }
        let frame = self.blocks.begin();
        frame.push(tag::END);
        put_number(frame, messages);
        self.blocks.end(&[]);
        self.blocks.flush();
    }

    fn write_messages(&mut self) -> u64 {
        let mut count = 0;
        // A `for` loop would copy each message.
        self.parts.messages().for_each(|numbered| {
            self.message(numbered);
            count += 1;
        });
        count
    }

    /// Writes the groups and consumers that no message names.
    fn write_others(&mut self) {
        for (ix, _) in self.parts.lasting_groups() {
            self.group(ix);
        }
        let mut known: Vec<_> = self.known.drain().collect();
        known.sort_unstable();
        for (name, known) in known {
            put_consumer(self.blocks.begin(), name, Some(known));
            self.blocks.end(&[]);
        }
    }

    fn message(&mut self, numbered: Numbered) {
        let (message, content) = (numbered.message, numbered.content);
        if content.id.is_none() {
            self.salt(self.parts.salt_of(numbered.seq));
        }
        let group = self.group(message.group);
        let consumer = self.consumer(message.history.consumer());
        let packed = match (self.payloads, content.payload) {
            (Payloads::Kept, Payload::Packed(packed)) => Some(packed),
            _ => None,
        };
        self.dictionary(packed.map(|packed| packed.number));
        let batch = numbered.batch.and_then(|batch| self.named_batch(batch));
        let siblings = numbered.siblings.and_then(|number| self.siblings(number));
        let has_more = numbered.first_sent.is_some()
            || batch.is_some()
            || siblings.is_some()
            || message.is_due_at_point();
        let has_history = message.history != History::None || has_more;
        let is_next = !has_history
            && numbered.seq == self.bases.seq + 1
            && message.sent_at == self.bases.sent_at;
        let stored = match message.stored {
            StoredState::Leaving => StoredState::Dead,
            stored => stored,
        } as u8;
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let flags = flag(group.is_some(), tag::GROUPED)
            | flag(content.id.is_some(), tag::ID)
            | flag(message.priority != 0, tag::PRIORITY);
        let frame = self.blocks.begin();
        if is_next {
            frame.push(tag::NEXT | stored << tag::STATE_OF_NEXT | flags);
        } else {
            let history = flag(has_history, tag::HISTORY);
            frame.push(tag::MESSAGE | stored << tag::STATE | history | flags);
            put_number(frame, numbered.seq.wrapping_sub(self.bases.seq));
            put_delta(frame, message.sent_at, self.bases.sent_at);
        }
        put_delta(frame, message.due, message.sent_at);
        self.bases.seq = numbered.seq;
        self.bases.sent_at = message.sent_at;
        if message.priority != 0 {
            frame.push(message.priority as u8);
        }
        if let Some(group) = group {
            put_number(frame, group);
        }
        if let Some(id) = content.id {
            put_bytes(frame, id.id().as_bytes());
        }
        if has_history {
            let sets = [batch, siblings];
            put_history(frame, numbered, consumer, sets, &mut self.bases);
        }
        match packed {
            None => self.blocks.end(&content.payload.bytes()),
            Some(packed) => {
                put_number(frame, packed.len as u64);
                self.blocks.end(packed.bytes);
            }
        }
    }

    /// Writes the dictionary of the payloads that follow, if it differs from the last one.
    #[inline]
    fn dictionary(&mut self, number: Option<u8>) {
        if number != self.packed {
            self.packed = number;
            let frame = self.blocks.begin();
            frame.push(tag::PACKED);
            put_number(frame, number.map_or(0, |number| u64::from(number) + 1));
            self.blocks.end(&[]);
        }
    }

    /// Writes the salt of the ids that follow, if it differs from the last one.
    #[inline]
    fn salt(&mut self, salt: u64) {
        if salt != self.salt {
            self.salt = salt;
            let frame = self.blocks.begin();
            frame.push(tag::SALT);
            put_fixed(frame, salt);
            self.blocks.end(&[]);
        }
    }

    /// Returns the number of a group; `None` for no group. A group that has not
    /// been written is written now.
    fn group(&mut self, ix: GroupIx) -> Option<u64> {
        if !ix.is_some() {
            return None;
        }
        let (number, is_new) = self.groups.of(ix.number());
        if is_new {
            let seen = self.parts.group(ix)?;
            let frame = self.blocks.begin();
            frame.push(match seen.group.is_hidden() {
                true => tag::HIDDEN,
                false => tag::GROUP,
            });
            put_group(frame, &seen);
            self.blocks.end(&seen.group.name);
            if let Some(circuit) = seen.breaker {
                put_breaker(self.blocks.begin(), Some(number), circuit);
                self.blocks.end(&[]);
            }
            if let Some(usage) = &seen.group.ext().usage {
                put_usage(self.blocks.begin(), Some(number), usage, None);
                self.blocks.end(&[]);
            }
        }
        Some(number)
    }

    /// Returns the number of a named batch. One that has not been written is written
    /// now.
    fn named_batch(&mut self, batch: Seq) -> Option<u64> {
        if let Some(number) = self.named.get(&batch) {
            return Some(*number);
        }
        let named = self.parts.named_batch(batch)?;
        put_named_batch(self.blocks.begin(), batch, named);
        self.blocks.end(&named.name);
        let number = self.named.len() as u64;
        self.named.insert(batch, number);
        Some(number)
    }

    /// Returns the number of a set of siblings. One that has not been written is written
    /// now.
    fn siblings(&mut self, set: Seq) -> Option<u64> {
        if let Some(number) = self.siblings.get(&set) {
            return Some(*number);
        }
        let siblings = self.parts.siblings(set)?;
        let frame = self.blocks.begin();
        frame.push(tag::SIBLINGS);
        put_number(frame, set);
        put_parent(frame, &siblings.parent);
        self.blocks.end(&[]);
        let number = self.siblings.len() as u64;
        self.siblings.insert(set, number);
        Some(number)
    }

    /// Returns the number of a consumer; `None` for no consumer. A consumer
    /// that has not been written is written now.
    fn consumer(&mut self, ix: ConsumerIx) -> Option<u64> {
        let name = self.parts.consumer(ix)?;
        let (number, is_new) = self.consumers.of(ix.number());
        if is_new {
            let known = self.known.remove(name);
            put_consumer(self.blocks.begin(), name, known);
            self.blocks.end(&[]);
        }
        Some(number)
    }
}

/// Numbers slots in the order in which they first occur, so that a snapshot
/// does not depend on which slots a queue happens to use.
#[derive(Default)]
struct Numbers {
    /// For each slot 0 if it has no number yet, else the number plus one.
    of_slots: Vec<u32>,
    count: u32,
}

impl Numbers {
    fn of(&mut self, slot: u64) -> (u64, bool) {
        let slot = slot as usize;
        if slot >= self.of_slots.len() {
            self.of_slots.resize(slot + 1, 0);
        }
        match self.of_slots.get_mut(slot) {
            Some(0) => {}
            Some(number) => return (u64::from(*number - 1), false),
            None => {}
        }
        self.count += 1;
        if let Some(number) = self.of_slots.get_mut(slot) {
            *number = self.count;
        }
        (u64::from(self.count - 1), true)
    }
}
