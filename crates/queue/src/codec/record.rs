//! Records: what is replicated, one for each operation that does not travel as its
//! command.
//!
//! A record holds an operation in explicit form with its moment, so that
//! replaying it needs no clock, no randomness and no configuration. Records
//! are the dearest part of a command, so a plain SEND takes nine bytes and its
//! payload:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version (upper three bits) and kind of the operation (lower five) |
//! | 7 | the queue clock in microseconds, lowest byte first |
//! | 1 | which parts follow; six of the bits are the operation's own |
//! | ... | steps of time before it, creation of the queue, the operation |
//!
//! The other kind of record is a [`Chunk`] of a snapshot.

use std::borrow::Cow;

use super::operation;
use super::options::{clock, put_clock, put_settings, settings};
use super::wire::{put_fixed, put_flag, put_number, Reader};
use crate::limits::{ensure, Invalid};
use crate::settings::{Clock, Settings};
use crate::{Done, Moment, Op, Queue, Receipt};

/// The version of the encoding, 1 to 7.
const VERSION: u8 = 1;
const KIND_BITS: u32 = 5;
/// The kind of a part of a snapshot; operations have those below.
const SNAPSHOT: u8 = 31;
const TIME_BYTES: usize = 7;
/// The latest time that a record can hold, in microseconds: the year 4253.
pub const MAX_TIME_US: u64 = (1 << 56) - 1;

/// An operation that makes its queue makes it like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// The options of the queue.
    pub settings: Settings,
    /// Whose time it follows.
    pub clock: Clock,
    /// The salt of its ids.
    pub salt: u64,
}

impl Creation {
    /// The queue as it is made.
    pub fn queue(&self) -> Queue {
        Queue::new(self.settings.clone(), self.clock, self.salt)
    }
}

/// An operation and its moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<'o, 'a> {
    /// The queue clock of the server, in microseconds; at most
    /// [`MAX_TIME_US`].
    pub time_us: u64,
    /// The least receipt that may be given out. Only what delivers has it;
    /// it is 0 in all others that are read.
    pub receipt: Receipt,
    /// How many steps of time went before the operation, after the last one.
    pub steps: u64,
    /// How the queue was made, if this operation made it.
    pub created: Option<Creation>,
    /// The operation.
    pub op: Cow<'o, Op<'a>>,
}

impl<'o, 'a> Record<'o, 'a> {
    /// The record of an operation done at this moment, after so many steps of
    /// time, to a queue that was there or made for it.
    pub fn of(
        moment: Moment,
        steps: u64,
        created: Option<Creation>,
        op: &'o Op<'a>,
    ) -> Record<'o, 'a> {
        Record {
            time_us: moment.us,
            receipt: moment.receipt,
            steps,
            created,
            op: Cow::Borrowed(op),
        }
    }

    /// Appends the record to `out`. O(size of the record).
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let op = &*self.op;
        let time = self.time_us.min(MAX_TIME_US);
        let tag = VERSION << KIND_BITS | operation::kind(op);
        let flags = u8::from(self.steps > 0) | u8::from(self.created.is_some()) << 1;
        let flags = flags | operation::flags(op, self.receipt, time) << 2;
        // The time leaves just the byte for the tag.
        out.extend_from_slice(&(time << 8 | u64::from(tag)).to_le_bytes());
        out.push(flags);
        if self.steps > 0 {
            put_number(out, self.steps);
        }
        if let Some(created) = &self.created {
            put_settings(out, &created.settings);
            put_clock(out, created.clock);
            put_fixed(out, created.salt);
        }
        operation::put(out, op, self.receipt, time);
    }

    /// Reads a record of an operation; payloads and names are those of
    /// `bytes`.
    ///
    /// Errors: what no command can have said, or what a newer version wrote.
    /// O(size of the record).
    pub fn decode(bytes: &'a [u8]) -> Result<Record<'o, 'a>, Invalid> {
        let mut reader = Reader::new(bytes);
        let kind = kind(&mut reader)?;
        let mut time = [0u8; 8];
        for (to, from) in time.iter_mut().zip(reader.take(TIME_BYTES as u64)?) {
            *to = *from;
        }
        let time_us = u64::from_le_bytes(time);
        let flags = reader.byte()?;
        let steps = match flags & 1 {
            0 => 0,
            _ => reader.number()?,
        };
        let created = match flags & 2 {
            0 => None,
            _ => Some(Creation {
                settings: settings(&mut reader)?,
                clock: clock(&mut reader)?,
                salt: reader.fixed()?,
            }),
        };
        let (op, receipt) = operation::read(&mut reader, kind, flags >> 2, time_us)?;
        reader.end()?;
        Ok(Record {
            time_us,
            receipt,
            steps,
            created,
            op: Cow::Owned(op),
        })
    }

    /// When the operation happened.
    pub fn moment(&self) -> Moment {
        Moment {
            us: self.time_us,
            receipt: self.receipt,
        }
    }

    /// Does to `queue` what was done elsewhere: takes the steps of time, then
    /// does the operation, at its moment. A queue that the operation made has
    /// just been made, by [`Creation::queue`].
    ///
    /// Errors: it did not go as it went there, since the two queues had been
    /// different before. What could be done has been done all the same: the
    /// operation may be someone's only copy of a message.
    pub fn replay(&self, queue: &mut Queue) -> Result<Done, String> {
        let moment = self.moment();
        let mut missing = self.steps;
        while missing > 0 {
            // A fire ends a slice.
            match queue.advance(moment.ms(), missing).steps {
                0 => break,
                taken => missing -= taken,
            }
        }
        let done = queue
            .apply(&self.op, moment)
            .map_err(|error| format!("an operation was refused: {error:?}"))?;
        match missing {
            0 => Ok(done),
            missing => Err(format!("time took {missing} steps less than elsewhere")),
        }
    }
}

/// A part of a snapshot, as an append-only file without RDB preamble or a
/// migration of slots has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Whether it is the first one, with which the queue begins anew.
    pub first: bool,
    /// What the decoder of snapshots is to be fed with.
    pub block: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Reads a record that is a part of a snapshot; `None` where it is one of
    /// an operation.
    pub fn of(bytes: &'a [u8]) -> Result<Option<Chunk<'a>>, Invalid> {
        let mut reader = Reader::new(bytes);
        if kind(&mut reader)? != SNAPSHOT {
            return Ok(None);
        }
        let first = reader.flag()?;
        let block = reader.rest();
        Ok(Some(Chunk { first, block }))
    }

    /// Appends the record to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(VERSION << KIND_BITS | SNAPSHOT);
        put_flag(out, self.first);
        out.extend_from_slice(self.block);
    }
}

fn kind(reader: &mut Reader) -> Result<u8, Invalid> {
    let tag = reader.byte()?;
    ensure(
        tag >> KIND_BITS == VERSION,
        "a record of an unknown version",
    )?;
    Ok(tag & ((1 << KIND_BITS) - 1))
}
