//! Log entries: the replicated form of each operation that is not replicated verbatim.
//!
//! A log entry holds an operation in explicit form with its moment, so that
//! replay needs no clock, no randomness and no configuration. Writing it is the
//! most expensive part of a command, so it is short: a plain SEND takes nine
//! bytes and its payload.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | form (upper three bits) and kind of the operation (lower five). Version 1 of the encoding has the forms 1 to 4: 2 and 4 say what else was done before the operation, and 3 and 4 have kinds from 32 on, less 32. The others are left for later versions |
//! | 7 | the queue clock in microseconds, lowest byte first |
//! | 1 | which parts follow; six of the bits belong to the operation |
//! | ... | in forms 2 and 4 what else was done before it; the number of due events processed before it, the creation of the queue, the operation |
//!
//! The other kind of log entry is a [`Chunk`] of a snapshot.

use crate::seeded::{seeded, Bug};
use std::borrow::Cow;

use super::bounds::{self, POSITIVE};
use super::operation;
use super::options::{clock, put_clock, put_settings, settings};
use super::wire::{put_fixed, put_flag, put_number, Reader};
use crate::limits::{ensure, Invalid, MAX_STEPS};
use crate::op::Before;
use crate::settings::{Clock, Settings};
use crate::{Done, Moment, Op, Queue, Receipt};

/// The form of most log entries.
const PLAIN: u8 = 1;
/// The form of a log entry before whose operation more was done than processing due
/// events. It has a byte that says what, as bits.
const WITH_MORE: u8 = 2;
const CUT: u8 = 1;
const SPARE: u8 = 2;
const WITHOUT_FIRES: u8 = 4;
const KIND_BITS: u32 = 5;
/// The kind of a part of a snapshot. No operation has it.
const SNAPSHOT: u8 = 31;
/// By how much the form of an entry is higher whose kind does not fit into its bits. The
/// bits hold the rest of the kind.
const HIGH_KIND: u8 = 2;
const KIND_MASK: u8 = (1 << KIND_BITS) - 1;
const TIME_BYTES: usize = 7;
/// The latest time that a log entry can hold, in microseconds of Unix time: the
/// year 4253.
pub const MAX_TIME_US: u64 = (1 << 56) - 1;

/// The creation of a queue by an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// The options of the queue.
    pub settings: Settings,
    /// The clock that the queue follows.
    pub clock: Clock,
    /// The salt of the ids that the queue generates.
    pub salt: u64,
}

impl Creation {
    /// Creates the queue, which is empty.
    pub fn queue(&self) -> Queue {
        Queue::new(self.settings.clone(), self.clock, self.salt)
    }
}

/// An operation and its moment.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry<'o, 'a> {
    /// The queue clock of the server, in microseconds of Unix time; at most
    /// [`MAX_TIME_US`].
    pub time_us: u64,
    /// The lowest receipt that the operation may give out. Only a fetch has it;
    /// it is 0 in any other entry that is read.
    pub receipt: Receipt,
    /// The changes since the log entry before, ahead of the operation.
    pub before: Before,
    /// The creation of the queue, if this operation created it.
    pub created: Option<Creation>,
    /// The operation.
    pub op: Cow<'o, Op<'a>>,
}

impl<'o, 'a> LogEntry<'o, 'a> {
    /// The log entry of an operation applied at `moment` to a queue that existed or was
    /// created for it. `before` is what was done before, or how many due events were
    /// processed.
    pub fn of(
        moment: Moment,
        before: impl Into<Before>,
        created: Option<Creation>,
        op: &'o Op<'a>,
    ) -> LogEntry<'o, 'a> {
        LogEntry {
            time_us: moment.us,
            receipt: moment.receipt,
            before: before.into(),
            created,
            op: Cow::Borrowed(op),
        }
    }

    /// Appends the log entry to `out`. O(size of the entry).
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let op = &*self.op;
        let time = self.time_us.min(MAX_TIME_US);
        let steps = self.before.steps;
        let form = match self.before.is_plain() {
            true => PLAIN,
            false => WITH_MORE,
        };
        let kind = operation::kind(op);
        let form = form + (kind >> KIND_BITS) * HIGH_KIND;
        let tag = form << KIND_BITS | kind & KIND_MASK;
        let flags = u8::from(steps > 0) | u8::from(self.created.is_some()) << 1;
        let flags = flags | operation::flags(op, self.receipt, time) << 2;
        // The time takes seven bytes of the word and leaves one for the tag.
        out.extend_from_slice(&(time << 8 | u64::from(tag)).to_le_bytes());
        out.push(flags);
        if !self.before.is_plain() {
            put_more(out, &self.before);
        }
        if steps > 0 {
            put_number(out, steps);
        }
        if let Some(created) = &self.created {
            put_settings(out, &created.settings);
            put_clock(out, created.clock);
            put_fixed(out, created.salt);
        }
        operation::put(out, op, self.receipt, time);
    }

    /// Reads a log entry of an operation. Payloads and names are borrowed from
    /// `bytes`. O(size of the entry).
    ///
    /// Errors: an operation that no command can have made, or another version.
    pub fn decode(bytes: &'a [u8]) -> Result<LogEntry<'o, 'a>, Invalid> {
        let mut reader = Reader::new(bytes);
        let (kind, form) = kind(&mut reader)?;
        let mut time = [0u8; 8];
        for (to, from) in time.iter_mut().zip(reader.take(TIME_BYTES as u64)?) {
            *to = *from;
        }
        let time_us = u64::from_le_bytes(time);
        let flags = reader.byte()?;
        let mut before = match form {
            WITH_MORE => more(&mut reader)?,
            _ => Before::default(),
        };
        if flags & 1 != 0 {
            // The replay says how many are too many.
            before.steps = reader.number(&bounds::CUT)?;
        }
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
        Ok(LogEntry {
            time_us,
            receipt,
            before,
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

    /// Checks that the log entry does not name more due events than a slice can take.
    ///
    /// Only what a server has not written itself needs to be checked.
    pub fn check_steps(&self) -> Result<(), String> {
        match self.before.steps <= MAX_STEPS {
            true => Ok(()),
            false => Err(format!(
                "the log entry names {} due events, and a slice takes at most {MAX_STEPS}",
                self.before.steps
            )),
        }
    }

    /// Applies the log entry to `queue` as it was applied on the primary: first the
    /// changes before it, then the operation at its moment. If the operation created the
    /// queue, `queue` must have just been made by [`Creation::queue`].
    ///
    /// Errors: it had another outcome than on the primary, because the two queues
    /// differed before. All possible changes are made nevertheless, because the operation
    /// may carry the only copy of a message.
    pub fn replay(&self, queue: &mut Queue) -> Result<Done, String> {
        let moment = self.moment();
        queue.prepare(&self.before, moment);
        let mut missing = self.before.steps;
        // A slice ends after a schedule has fired, so there may be several. Schedules never
        // run out of due events, so the number of slices is limited; all other events need
        // something in the queue.
        let mut slices = 0;
        while missing > 0 && slices < MAX_STEPS {
            slices += 1;
            // Without any limit, a schedule that has fired would not end the call.
            let most = missing.min(u64::MAX - 1);
            let progress = match self.before.without_fires {
                true => queue.advance_logged_without_fires(moment.ms(), most),
                false => queue.advance_logged(moment.ms(), most),
            };
            match progress.steps {
                0 => break,
                taken => missing -= taken,
            }
        }
        let done = queue.apply_logged(&self.op, moment);
        // The fate of dead messages and of children follows in log entries of its own.
        queue.forget_reports();
        let done = done.map_err(|error| format!("the queue refuses the operation: {error:?}"))?;
        match missing {
            0 => Ok(done),
            missing => Err(format!(
                "only {} of {} due events could be processed, so the queue was not the same as \
                 where the log entry was written",
                self.before.steps - missing,
                self.before.steps
            )),
        }
    }
}

/// A part of a snapshot, as it is written to an append-only file without an RDB
/// preamble and to a node that takes over slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Whether this is the first part, which starts the queue over.
    pub first: bool,
    /// The bytes to feed to a [`Decoder`](super::Decoder).
    pub block: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Reads a log entry that is a part of a snapshot; `None` if it is one of
    /// an operation.
    ///
    /// Errors: another version, or input that ends too early.
    pub fn of(bytes: &'a [u8]) -> Result<Option<Chunk<'a>>, Invalid> {
        let mut reader = Reader::new(bytes);
        if kind(&mut reader)?.0 != SNAPSHOT {
            return Ok(None);
        }
        let first = reader.flag()?;
        let block = reader.rest();
        Ok(Some(Chunk { first, block }))
    }

    /// Appends the log entry to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(PLAIN << KIND_BITS | SNAPSHOT);
        put_flag(out, self.first);
        out.extend_from_slice(self.block);
    }
}

/// The kind of a log entry, and its form: [`PLAIN`] or [`WITH_MORE`].
fn kind(reader: &mut Reader) -> Result<(u8, u8), Invalid> {
    let tag = reader.byte()?;
    let (kind, form) = (tag & KIND_MASK, tag >> KIND_BITS);
    ensure(
        form == PLAIN || (WITH_MORE..=WITH_MORE + HIGH_KIND).contains(&form) && kind != SNAPSHOT,
        "it was written by a newer version of the module",
    )?;
    Ok(match form > HIGH_KIND {
        true => (kind + (1 << KIND_BITS), form - HIGH_KIND),
        false => (kind, form),
    })
}

/// Writes the changes before an operation other than processing due events.
fn put_more(out: &mut Vec<u8>, before: &Before) {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    out.push(
        flag(before.cut > 0, CUT)
            | flag(before.spare > 0, SPARE)
            | flag(before.without_fires, WITHOUT_FIRES),
    );
    let spare = if seeded(Bug::LogForgetsSpare) {
        1
    } else {
        before.spare
    };
    let spare = spare.min(before.spare);
    for number in [before.cut, spare] {
        if number > 0 {
            put_number(out, number);
        }
    }
}

/// Reads the output of [`put_more`].
fn more(reader: &mut Reader) -> Result<Before, Invalid> {
    let bits = reader.byte()?;
    ensure(
        (1..=CUT | SPARE | WITHOUT_FIRES).contains(&bits),
        "an unknown part of a log entry",
    )?;
    let mut number = |bit: u8| match bits & bit {
        0 => Ok(0),
        _ => reader.number(&POSITIVE),
    };
    Ok(Before {
        cut: number(CUT)?,
        spare: number(SPARE)?,
        without_fires: bits & WITHOUT_FIRES != 0,
        steps: 0,
    })
}
