//! A whole queue as bytes.
//!
//! A snapshot is a stream of frames, cut into blocks of one size at any place.
//! A frame is its length, a tag and what the tag says: first what the queue
//! has once, then its schedules, batches and remembered ids, then its messages
//! in the order of sending, each group and consumer just before the first
//! message that names it, and at last those that no message names, and the
//! number of messages. Where messages have ids of another salt than the queue
//! gives now, that is told before them. Numbers are written as differences from their
//! neighbours, so a plain message takes five to seven bytes and its payload.
//!
//! Equal queues have equal snapshots, wherever they came from.

mod pieces;

use hashbrown::HashMap;

use super::wire::{put_bytes, put_delta, put_fixed, put_number, set_number};
use crate::consumer::ConsumerIx;
use crate::group::GroupIx;
use crate::history::History;
use crate::id::NameHasher;
use crate::queue::parts::{Known, Numbered, Parts};
use crate::{Millis, Queue, Receipt, Seq};
use pieces::{put_consumer, put_group, put_history, put_schedule, put_whole};

/// The version of the encoding. What earlier ones wrote is read as well: version 1 did
/// not have [`tag::NEXT`], and version 2 not [`tag::SALT`].
pub const VERSION: u32 = 3;

/// The size of the blocks of a saved queue. The server compresses each, and
/// where payloads do not compress, the fewer places a block has to compare the
/// less time that takes.
pub const SAVED: usize = 2 * 1024;

/// The size of blocks that are not compressed, for a rewritten log or a digest.
pub const LARGE: usize = 64 * 1024;

/// So far apart are two blocks at the same address. The server's compressor
/// does not forget from one block to the next where it has seen what: it would
/// compare with whatever stands there now, and guess in vain. An eighth of this
/// takes a tenth longer. Only a queue that is as large needs as much.
const TRACK: usize = 8 * 1024 * 1024;

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
    /// The salt of the ids of the messages that follow. Before the first such frame
    /// it is that of the queue.
    pub const SALT: u8 = 8;
    pub const MESSAGE: u8 = 0x80;
    /// Where the place stands in the tag of a message.
    pub const PLACE: u32 = 4;
    pub const HISTORY: u8 = 8;
    /// A message without a history that has the number after that of the message
    /// before it, and was sent in the same millisecond.
    pub const NEXT: u8 = 0x40;
    /// Where the place stands in the tag of such a one.
    pub const PLACE_OF_NEXT: u32 = 3;
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
            frame: 0,
            emit,
        },
        bases: Bases::default(),
        salt: parts.salt(),
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
    bases: Bases,
    /// The salt that was told last.
    salt: u64,
    groups: Numbers,
    consumers: Numbers,
    /// Those who count as consumers and have not been written yet.
    known: HashMap<&'a [u8], Known, NameHasher>,
}

impl<'a> Writer<'a, '_> {
    fn write(&mut self) {
        let whole = self.parts.whole();
        put_whole(self.blocks.begin(), &whole);
        self.blocks.end(&[]);
        if let Some((time, rank)) = self.parts.purged() {
            let frame = self.blocks.begin();
            frame.push(tag::PURGED);
            put_number(frame, time);
            put_number(frame, rank);
            self.blocks.end(&[]);
        }
        for (name, schedule) in self.parts.schedules() {
            let frame = self.blocks.begin();
            frame.push(tag::SCHEDULE);
            put_schedule(frame, name, schedule);
            self.blocks.end(&schedule.template.payload);
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
            let frame = self.blocks.begin();
            frame.push(tag::DEDUP);
            put_number(frame, ended_at);
            self.blocks.end(id);
        }
        let messages = self.write_messages();
        self.write_others();
        let frame = self.blocks.begin();
        frame.push(tag::END);
        put_number(frame, messages);
        self.blocks.end(&[]);
        self.blocks.flush();
    }

    fn write_messages(&mut self) -> u64 {
        let mut count = 0;
        // A loop over them would have each copied.
        self.parts.messages().for_each(|numbered| {
            self.message(numbered);
            count += 1;
        });
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
        let has_history = message.history != History::None;
        let is_next = !has_history
            && numbered.seq == self.bases.seq + 1
            && message.sent_at == self.bases.sent_at;
        let place = message.place as u8;
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let flags = flag(group.is_some(), tag::GROUPED)
            | flag(content.id.is_some(), tag::ID)
            | flag(message.priority != 0, tag::PRIORITY);
        let frame = self.blocks.begin();
        if is_next {
            frame.push(tag::NEXT | place << tag::PLACE_OF_NEXT | flags);
        } else {
            let history = flag(has_history, tag::HISTORY);
            frame.push(tag::MESSAGE | place << tag::PLACE | history | flags);
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
            put_bytes(frame, id);
        }
        if has_history {
            put_history(frame, numbered, consumer, &mut self.bases);
        }
        self.blocks.end(content.payload);
    }

    /// Tells the salt of the ids of messages, if it is another one than before.
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

    /// The number of a group, which is told now if it has not been yet.
    fn group(&mut self, ix: GroupIx) -> Option<u64> {
        if !ix.is_some() {
            return None;
        }
        let (number, is_new) = self.groups.of(ix.number());
        if is_new {
            let seen = self.parts.group(ix)?;
            let frame = self.blocks.begin();
            frame.push(tag::GROUP);
            put_group(frame, &seen);
            self.blocks.end(&seen.group.name);
        }
        Some(number)
    }

    /// The number of a consumer, who is told now if he has not been yet.
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
    /// Where the last frame begins, with its length.
    frame: usize,
    emit: &'e mut dyn FnMut(&[u8]),
}

impl Blocks<'_> {
    /// Begins a frame, whose head is to be put behind what is there: a byte that gives
    /// way to its length.
    #[inline]
    fn begin(&mut self) -> &mut Vec<u8> {
        self.frame = self.bytes.len();
        self.bytes.push(0);
        &mut self.bytes
    }

    /// Ends the frame, with more bytes behind it.
    #[inline]
    fn end(&mut self, tail: &[u8]) {
        let head = self.bytes.len() - self.frame - 1;
        set_number(&mut self.bytes, self.frame, (head + tail.len()) as u64);
        let mut rest = tail;
        // A long payload is not copied as a whole.
        while let Some((piece, later)) = rest.split_at_checked(self.size) {
            self.bytes.extend_from_slice(piece);
            self.emit_full();
            rest = later;
        }
        self.bytes.extend_from_slice(rest);
        if self.bytes.len() - self.emitted >= self.size {
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
