//! Encodes a whole queue.
//!
//! A snapshot is a stream of frames, cut into blocks of one size regardless of
//! the frames. A frame is its length, a tag and the data that the tag says. The
//! frames come in this order:
//!
//! - the data that a queue has once;
//! - its schedules, batches and remembered ids;
//! - its messages in the order of sending, each group (with its breaker just
//!   behind it), consumer and named batch just before
//!   the first message that names it, and each salt of ids just before the
//!   first message whose id was generated with it, unless it is that of the
//!   queue;
//! - the groups and consumers that no message names;
//! - the deliveries that can be repeated by their token, and the ends that leases
//!   had before their connections closed;
//! - the held messages that are about to be released;
//! - the number of messages.
//!
//! Numbers are written as differences from their neighbours, so a plain message
//! takes five to seven bytes and its payload.
//!
//! Equal queues have equal snapshots, whichever operations led to them.

pub(in crate::codec::snapshot) mod frames;
pub(in crate::codec) mod read;

use hashbrown::HashMap;

use super::wire::{put_bytes, put_delta, put_fixed, put_number, set_number};
use crate::message::history::History;
use crate::message::id::NameHasher;
use crate::queue::rebuild::{Known, Numbered, Parts, ReleasedPart};
use crate::{ConsumerIx, GroupIx, Millis, Queue, Receipt, Seq};
use frames::{
    put_breaker, put_consumer, put_group, put_history, put_named_batch, put_released, put_schedule,
    put_whole,
};

/// The version of the encoding. Earlier ones can be read: version 1 did not
/// have [`tag::NEXT`], version 2 did not have [`tag::SALT`], and version 3 had
/// neither [`texts`] nor more than seven options of a message, nor named batches.
pub const VERSION: u32 = 4;

/// The size of the blocks of a saved queue, in bytes. The server compresses
/// each block by itself. Where payloads do not compress, a small block takes
/// less time because there are fewer positions to compare.
pub const SAVED: usize = 2 * 1024;

/// The size of blocks that are not compressed, in bytes: those of a rewritten
/// log or a digest.
pub const LARGE: usize = 64 * 1024;

/// The distance between two blocks at the same address, in bytes. The server's
/// compressor keeps a table of addresses from one block to the next: at the
/// same address it would compare with the new bytes there, and guess in vain.
/// With an eighth of this distance compressing takes a tenth longer. Only a
/// queue of this size needs this much memory.
const TRACK: usize = 8 * 1024 * 1024;

/// The tags of frames. The tag of a message also holds its stored state and
/// flags.
pub mod tag {
    pub const END: u8 = 0;
    pub const WHOLE: u8 = 1;
    pub const GROUP: u8 = 2;
    pub const CONSUMER: u8 = 3;
    pub const SCHEDULE: u8 = 4;
    pub const DEDUP: u8 = 5;
    pub const BATCH: u8 = 6;
    /// When messages with [`super::extra::PURGED`] were purged. Only earlier versions wrote it.
    pub const PURGED: u8 = 7;
    /// The salt of the ids of the messages that follow. Before the first such
    /// frame it is the salt of the queue.
    pub const SALT: u8 = 8;
    /// The breaker of a group that came before, or of the ungrouped messages.
    pub const BREAKER: u8 = 9;
    /// A named batch, or messages that are held by one no longer.
    pub const NAMED: u8 = 10;
    /// The last delivery of a consumer that asked for it with a token.
    pub const TOKEN: u8 = 11;
    /// The end that a lease had before its connection closed.
    pub const OLD_END: u8 = 12;
    pub const MESSAGE: u8 = 0x80;
    /// How far the stored state is shifted in the tag of a message.
    pub const STATE: u32 = 4;
    pub const HISTORY: u8 = 8;
    /// A message without a history that has the number after that of the
    /// message before it, and was sent in the same millisecond.
    pub const NEXT: u8 = 0x40;
    /// How far the stored state is shifted in the tag of such a message.
    pub const STATE_OF_NEXT: u32 = 3;
    pub const GROUPED: u8 = 4;
    pub const ID: u8 = 2;
    pub const PRIORITY: u8 = 1;
}

/// The parts that a message may have beyond those of a plain one, as bits of a
/// number.
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
    pub const TEXTS: u64 = 1 << 10;
    /// Only earlier versions wrote it: dead, and to be made pending.
    pub const REDRIVING: u64 = 1 << 11;
    pub const DUE_AT: u64 = 1 << 12;
    /// Only earlier versions wrote it: to be dropped.
    pub const PURGED: u64 = 1 << 13;
    /// When the first send was done of the row that the message ends.
    pub const FIRST_SENT: u64 = 1 << 14;
    pub const BATCH: u64 = 1 << 15;
    pub const AFTER_COUNTS: u64 = 1 << 16;
    pub const ALL: u64 = (1 << 17) - 1;
}

/// What the byte of the reason holds beside the number of the reason.
pub mod texts {
    /// The reason is in these bits.
    pub const REASON: u8 = 0x3f;
    /// The message was snoozed after it failed.
    pub const SNOOZED: u8 = 0x40;
    /// A note follows.
    pub const NOTE: u8 = 0x80;
}

/// The parts that a group may have, as bits.
pub mod group_flags {
    pub const SETTINGS: u8 = 1;
    pub const PAUSE: u8 = 2;
    pub const HELD: u8 = 4;
    pub const LINE: u8 = 8;
    pub const TURN: u8 = 16;
    pub const WAKE: u8 = 32;
    /// All of these, and 64, which earlier versions wrote and which says nothing any longer.
    pub const ALL: u8 = 127;
}

/// What a breaker does.
pub mod phase {
    pub const CLOSED: u8 = 0;
    pub const OPEN: u8 = 1;
    pub const HALF_OPEN: u8 = 2;
}

/// The numbers from which the next ones are written as differences.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bases {
    /// The number of the last message.
    pub seq: Seq,
    /// When the last message was sent, in Unix ms.
    pub sent_at: Millis,
    /// The last receipt that was written.
    pub receipt: Receipt,
}

/// Writes a queue as blocks of `size` bytes; only the last block may be
/// shorter. O(n) in messages and O(n log n) in everything else. It takes up to
/// about 8 MiB of memory for blocks, 16 bytes for every 128 messages, and 4
/// bytes a group.
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
        named: HashMap::default(),
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
    groups: Numbers,
    consumers: Numbers,
    /// The known consumers that have not been written yet.
    known: HashMap<&'a [u8], Known, NameHasher>,
    /// The named batches that have been written, with their numbers here.
    named: HashMap<Seq, u64, NameHasher>,
}

impl<'a> Writer<'a, '_> {
    fn write(&mut self) {
        let whole = self.parts.whole();
        put_whole(self.blocks.begin(), &whole);
        self.blocks.end(&[]);
        if let Some(circuit) = self.parts.plain_breaker() {
            put_breaker(self.blocks.begin(), None, circuit);
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
        for (name, delivery) in self.parts.token_deliveries() {
            let frame = self.blocks.begin();
            frame.push(tag::TOKEN);
            put_bytes(frame, name);
            put_number(frame, delivery.first);
            put_number(frame, delivery.count);
            self.blocks.end(&delivery.token);
        }
        for (receipt, end) in self.parts.old_ends() {
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
        // A `for` loop would copy each of them.
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
        let batch = numbered.batch.and_then(|batch| self.named_batch(batch));
        let has_more = numbered.first_sent.is_some() || batch.is_some();
        let has_history = message.history != History::None || has_more;
        let is_next = !has_history
            && numbered.seq == self.bases.seq + 1
            && message.sent_at == self.bases.sent_at;
        let stored = message.stored as u8;
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
            put_bytes(frame, id);
        }
        if has_history {
            put_history(frame, numbered, consumer, batch, &mut self.bases);
        }
        self.blocks.end(content.payload);
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
            frame.push(tag::GROUP);
            put_group(frame, &seen);
            self.blocks.end(&seen.group.name);
            if let Some(circuit) = seen.breaker {
                put_breaker(self.blocks.begin(), Some(number), circuit);
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
    /// By slot: 0 if it has no number yet, else the number plus one.
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

/// Cuts the stream of frames into blocks.
struct Blocks<'e> {
    size: usize,
    /// The bytes of the stream that are kept, up to about [`TRACK`].
    bytes: Vec<u8>,
    /// How many of these bytes were emitted.
    emitted: usize,
    /// Where the last frame begins, including its length.
    frame: usize,
    emit: &'e mut dyn FnMut(&[u8]),
}

impl Blocks<'_> {
    /// Begins a frame and returns the buffer to append its head to. One byte is
    /// reserved for the length of the frame.
    #[inline]
    fn begin(&mut self) -> &mut Vec<u8> {
        self.frame = self.bytes.len();
        self.bytes.push(0);
        &mut self.bytes
    }

    /// Ends the frame after appending `tail` to it.
    #[inline]
    fn end(&mut self, tail: &[u8]) {
        let head = self.bytes.len() - self.frame - 1;
        set_number(&mut self.bytes, self.frame, (head + tail.len()) as u64);
        let mut rest = tail;
        // Appending by pieces keeps a long payload from being copied as a
        // whole.
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

    /// Emits the bytes that are left.
    fn flush(&mut self) {
        self.emit_full();
        match self.bytes.get(self.emitted..) {
            None | Some([]) => {}
            Some(rest) => (self.emit)(rest),
        }
        self.emitted = self.bytes.len();
    }
}
