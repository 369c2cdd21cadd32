//! A whole queue as bytes.
//!
//! A snapshot is a stream of frames, cut into blocks of one size at any place.
//! A frame is its length, a tag and what the tag says: first what the queue
//! has once, then its schedules, batches and remembered ids, then its messages
//! in the order of sending, each group and consumer just before the first
//! message that names it, and at last those that no message names, and the
//! number of messages. Numbers are written as differences from their
//! neighbours, so a plain message takes six or seven bytes and its payload.
//!
//! Equal queues have equal snapshots, wherever they came from.

mod pieces;

use hashbrown::HashMap;

use super::wire::{put_bytes, put_delta, put_number};
use crate::core::consumer::ConsumerIx;
use crate::core::group::GroupIx;
use crate::core::history::History;
use crate::core::id::NameHasher;
use crate::core::queue::parts::{Known, Numbered, Parts};
use crate::core::{Millis, Queue, Receipt, Seq};
use pieces::{put_consumer, put_group, put_history, put_schedule, put_whole};

/// The version of the encoding.
pub const VERSION: u32 = 1;

/// The size of the blocks of a saved queue. The server compresses each, and
/// where payloads do not compress, the fewer places a block has to compare the
/// less time that takes; the nodes of its streams are as large.
pub const SAVED: usize = 4 * 1024;

/// The size of blocks that are not compressed, for a rewritten log or a digest.
pub const LARGE: usize = 64 * 1024;

/// So far apart are two blocks at the same address. The server's compressor
/// does not forget from one block to the next where it has seen what: it would
/// compare with whatever stands there now.
const TRACK: usize = 4 * 1024 * 1024;

/// What a frame is. A message has its place and what follows in the tag.
pub mod tag {
    pub const END: u8 = 0;
    pub const WHOLE: u8 = 1;
    pub const GROUP: u8 = 2;
    pub const CONSUMER: u8 = 3;
    pub const SCHEDULE: u8 = 4;
    pub const DEDUP: u8 = 5;
    pub const BATCH: u8 = 6;
    pub const PURGED: u8 = 7;
    pub const MESSAGE: u8 = 0x80;
    /// Where the place stands in the tag of a message.
    pub const PLACE: u32 = 4;
    pub const HISTORY: u8 = 8;
    pub const GROUPED: u8 = 4;
    pub const ID: u8 = 2;
    pub const PRIORITY: u8 = 1;
}

/// What a message has beyond the plain one: bits of a number.
pub mod extra {
    pub const CHOICES: u64 = 1;
    pub const RUNNING: u64 = 1 << 1;
    pub const STARTED: u64 = 1 << 2;
    pub const FIRST_STARTED: u64 = 1 << 3;
    pub const ATTEMPT: u64 = 1 << 4;
    pub const CONSUMER: u64 = 1 << 5;
    pub const ENDED: u64 = 1 << 6;
    pub const FAILURES: u64 = 1 << 7;
    pub const SCORE_BASE: u64 = 1 << 8;
    pub const TTL_BASE: u64 = 1 << 9;
    pub const NOTES: u64 = 1 << 10;
    pub const REDRIVING: u64 = 1 << 11;
    pub const DUE_AT: u64 = 1 << 12;
    pub const PURGED: u64 = 1 << 13;
    pub const ALL: u64 = (1 << 14) - 1;
}

/// What of a group is told: bits.
pub mod told {
    pub const SETTINGS: u8 = 1;
    pub const PAUSE: u8 = 2;
    pub const HELD: u8 = 4;
    pub const LINE: u8 = 8;
    pub const TURN: u8 = 16;
    pub const WAKE: u8 = 32;
    pub const DISPLACED: u8 = 64;
    pub const ALL: u8 = 127;
}

/// Numbers relative to which the next ones are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bases {
    /// Number of the last message.
    pub seq: Seq,
    /// When it was sent.
    pub sent_at: Millis,
    /// The last receipt that was told.
    pub receipt: Receipt,
}

/// Writes a queue as blocks of `size` bytes, of which only the last is shorter.
/// O(n log n) of what is not messages, O(n) of messages; takes 16 bytes of
/// memory a 128 messages, and 4 bytes a group.
pub fn encode(queue: &Queue, size: usize, emit: &mut dyn FnMut(&[u8])) {
    let parts = queue.parts();
    let mut writer = Writer {
        blocks: Blocks {
            size,
            bytes: Vec::new(),
            emitted: 0,
            emit,
        },
        frame: Vec::new(),
        bases: Bases::default(),
        groups: Numbers::default(),
        consumers: Numbers::default(),
        known: parts.consumers().collect(),
        parts,
    };
    writer.write();
}

struct Writer<'a, 'e> {
    parts: Parts<'a>,
    blocks: Blocks<'e>,
    frame: Vec<u8>,
    bases: Bases,
    groups: Numbers,
    consumers: Numbers,
    /// Those who count as consumers and have not been written yet.
    known: HashMap<&'a [u8], Known, NameHasher>,
}

impl<'a> Writer<'a, '_> {
    fn write(&mut self) {
        let whole = self.parts.whole();
        put_whole(&mut self.frame, &whole);
        self.end_frame(&[]);
        if let Some((time, rank)) = self.parts.purged() {
            self.frame.push(tag::PURGED);
            put_number(&mut self.frame, time);
            put_number(&mut self.frame, rank);
            self.end_frame(&[]);
        }
        for (name, schedule) in self.parts.schedules() {
            self.frame.push(tag::SCHEDULE);
            put_schedule(&mut self.frame, name, schedule);
            self.end_frame(&schedule.template.payload);
        }
        for batch in self.parts.batches() {
            self.frame.push(tag::BATCH);
            put_delta(&mut self.frame, batch.first, self.bases.receipt);
            put_number(&mut self.frame, batch.count());
            self.bases.receipt = batch.first;
            self.end_frame(&[]);
        }
        let remembered: Vec<_> = self.parts.dedup().collect();
        for (id, ended_at) in remembered {
            self.frame.push(tag::DEDUP);
            put_number(&mut self.frame, ended_at);
            self.end_frame(id);
        }
        let messages = self.write_messages();
        self.write_others();
        self.frame.push(tag::END);
        put_number(&mut self.frame, messages);
        self.end_frame(&[]);
        self.blocks.flush();
    }

    fn write_messages(&mut self) -> u64 {
        let mut count = 0;
        for numbered in self.parts.messages() {
            self.message(numbered);
            count += 1;
        }
        count
    }

    /// The groups and consumers that no message names.
    fn write_others(&mut self) {
        for (ix, _) in self.parts.lasting_groups() {
            self.group(ix);
        }
        let mut known: Vec<_> = self.known.drain().collect();
        known.sort_unstable();
        for (name, known) in known {
            put_consumer(&mut self.frame, name, Some(known));
            self.end_frame(&[]);
        }
    }

    fn message(&mut self, numbered: Numbered) {
        let (message, content) = (numbered.message, numbered.content);
        let group = self.group(message.group);
        let consumer = self.consumer(message.history.consumer());
        let has_history = message.history != History::None;
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let frame = &mut self.frame;
        frame.push(
            tag::MESSAGE
                | (message.place as u8) << tag::PLACE
                | flag(has_history, tag::HISTORY)
                | flag(group.is_some(), tag::GROUPED)
                | flag(content.id.is_some(), tag::ID)
                | flag(message.priority != 0, tag::PRIORITY),
        );
        put_number(frame, numbered.seq.wrapping_sub(self.bases.seq));
        put_delta(frame, message.sent_at, self.bases.sent_at);
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
            put_bytes(frame, id);
        }
        if has_history {
            put_history(frame, numbered, consumer, &mut self.bases);
        }
        self.end_frame(content.payload);
    }

    /// The number of a group, which is told now if it has not been yet.
    fn group(&mut self, ix: GroupIx) -> Option<u64> {
        if !ix.is_some() {
            return None;
        }
        let (number, is_new) = self.groups.of(ix.number());
        if is_new {
            let seen = self.parts.group(ix)?;
            self.frame.push(tag::GROUP);
            put_group(&mut self.frame, &seen);
            self.end_frame(&seen.group.name);
        }
        Some(number)
    }

    /// The number of a consumer, who is told now if he has not been yet.
    fn consumer(&mut self, ix: ConsumerIx) -> Option<u64> {
        let name = self.parts.consumer(ix)?;
        let (number, is_new) = self.consumers.of(ix.number());
        if is_new {
            let known = self.known.remove(name);
            put_consumer(&mut self.frame, name, known);
            self.end_frame(&[]);
        }
        Some(number)
    }

    /// Puts the frame out, with more bytes behind it.
    fn end_frame(&mut self, tail: &[u8]) {
        self.blocks.put_frame(&self.frame, tail);
        self.frame.clear();
    }
}

/// Numbers things in the order in which they first come up, whatever slots
/// they are in.
#[derive(Default)]
struct Numbers {
    /// By slot; 0 for none yet, else the number and one.
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

/// Cuts the stream into blocks.
struct Blocks<'e> {
    size: usize,
    /// What was put, up to about [`TRACK`].
    bytes: Vec<u8>,
    /// How many of these bytes are out.
    emitted: usize,
    emit: &'e mut dyn FnMut(&[u8]),
}

impl Blocks<'_> {
    fn put_frame(&mut self, head: &[u8], tail: &[u8]) {
        put_number(&mut self.bytes, (head.len() + tail.len()) as u64);
        self.put(head);
        self.put(tail);
    }

    fn put(&mut self, bytes: &[u8]) {
        // A long payload is not copied as a whole.
        for piece in bytes.chunks(self.size) {
            self.bytes.extend_from_slice(piece);
            self.emit_full();
        }
    }

    fn emit_full(&mut self) {
        while let Some(block) = self.bytes.get(self.emitted..self.emitted + self.size) {
            (self.emit)(block);
            self.emitted += self.size;
        }
        if self.emitted >= TRACK {
            self.bytes.drain(..self.emitted);
            self.emitted = 0;
        }
    }

    /// Puts out what is left.
    fn flush(&mut self) {
        self.emit_full();
        match self.bytes.get(self.emitted..) {
            None | Some([]) => {}
            Some(rest) => (self.emit)(rest),
        }
        self.emitted = self.bytes.len();
    }
}
