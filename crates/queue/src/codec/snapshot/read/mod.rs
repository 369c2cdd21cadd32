//! Decodes a snapshot, which anyone may have written.

mod group;
mod message;

use crate::codec::bounds::{self, CUT, EXACT, TIME};
use std::collections::VecDeque;
use std::sync::Arc;

use super::children::report;
use super::dead_letters::dead_letters;
use super::detached::detached;
use super::{tag, Bases};
use crate::codec::effect;
use crate::codec::options::{clock, parent, rule, send_options, settings, OfSend};
use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::collections::rate_window::RateWindow;
use crate::consumer::TokenDelivery;
use crate::index::fair_line::Usage;
use crate::limits::{ensure, template, Invalid};
use crate::message::after::Counts;
use crate::message::packing::{Dictionary, DICTIONARIES, DICTIONARY};
use crate::queue::rebuild::{Builder, ReleasedPart, SavedPosition, Whole};
use crate::schedule::{Schedule, Template};
use crate::stats::{Lateness, Totals};
use crate::sums::Count;
use crate::{Millis, Queue};
use group::{breaker, group, limit};
use message::message;

/// The greatest number of bytes of a frame's length.
const LENGTH_BYTES: usize = 10;

/// Reads a snapshot block by block, wherever it was cut. It takes no more
/// memory than what it has read.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The bytes of a frame that began in an earlier block.
    begun: Vec<u8>,
    builder: Option<Builder>,
    bases: Bases,
    messages: u64,
    /// The dictionaries of the queue, by their numbers.
    dictionaries: [Option<Arc<Dictionary>>; DICTIONARIES],
    /// The number of the dictionary with which the payloads that follow are packed.
    packed: Option<u8>,
    /// Whether the last frame has been read.
    ended: bool,
}

impl Decoder {
    /// A decoder that has read nothing.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Reads the next block. Returns whether the snapshot is complete.
    ///
    /// Errors: the bytes are not those of a snapshot, or describe an impossible
    /// queue. The decoder must not be used any more then.
    pub fn feed(&mut self, mut block: &[u8]) -> Result<bool, Invalid> {
        if !self.begun.is_empty() {
            let mut begun = std::mem::take(&mut self.begun);
            block = complete(&mut begun, block)?;
            let mut rest = &*begun;
            self.frames(&mut rest)?;
            if !rest.is_empty() {
                self.begun = begun;
            }
        }
        self.frames(&mut block)?;
        self.begun.extend_from_slice(block);
        Ok(self.ended)
    }

    /// The queue, after all blocks have been read. O(n log n); O(n) for
    /// messages that came in order.
    ///
    /// Errors: the snapshot is not complete, or its parts contradict each
    /// other.
    pub fn finish(self) -> Result<Queue, Invalid> {
        ensure(self.ended, "it is cut off")?;
        let builder = self.builder.ok_or(Invalid("it has no beginning"))?;
        builder.finish()
    }

    /// Reads the complete frames at the start of `bytes` and leaves the rest.
    fn frames(&mut self, bytes: &mut &[u8]) -> Result<(), Invalid> {
        while let Some((len, at)) = length(bytes)? {
            let Some(frame) = bytes.get(at..).and_then(|rest| rest.get(..len)) else {
                return Ok(());
            };
            *bytes = bytes.get(at + len..).unwrap_or_default();
            self.frame(Reader::new(frame))?;
        }
        Ok(())
    }

    fn frame(&mut self, mut reader: Reader) -> Result<(), Invalid> {
        ensure(!self.ended, "something follows its end")?;
        let tag = reader.byte()?;
        let builder = match (&mut self.builder, tag) {
            (Some(builder), _) => builder,
            (none, tag::WHOLE) => {
                *none = Some(Builder::new(whole(&mut reader)?)?);
                return reader.end();
            }
            _ => return Err(Invalid("it does not begin with a queue")),
        };
        match tag {
            tag if tag & (tag::MESSAGE | tag::NEXT) != 0 => {
                self.messages += 1;
                let packed = self.packed.and_then(|number| {
                    let dictionary = self.dictionaries.get(usize::from(number))?;
                    Some((number, dictionary.as_ref()?))
                });
                message(&mut reader, tag, &mut self.bases, packed, builder)
            }
            tag::GROUP | tag::HIDDEN => {
                let mut part = group(&mut reader)?;
                part.is_hidden = tag == tag::HIDDEN;
                builder.group(reader.rest(), part)
            }
            tag::LIMIT => {
                let part = limit(&mut reader)?;
                builder.limit(reader.rest(), part)
            }
            tag::BREAKER => {
                let group = reader.number(&EXACT)?.checked_sub(1);
                let circuit = breaker(&mut reader)?;
                reader.end()?;
                builder.breaker(group, circuit)
            }
            tag::USAGE => {
                let group = reader.number(&EXACT)?.checked_sub(1);
                let usage = Usage {
                    tag: reader.number(&CUT)?,
                    mean: reader.number(&CUT)?,
                    estimated: reader.number(&CUT)?,
                };
                let common = match group {
                    None => Some((reader.number(&CUT)?, reader.number(&CUT)?)),
                    Some(_) => None,
                };
                reader.end()?;
                builder.usage(group, usage, common)
            }
            tag::CONSUMER => {
                let name = reader.bytes()?;
                let known = match reader.is_at_end() {
                    true => None,
                    false => Some((
                        reader.number(&EXACT)?,
                        [
                            count(&mut reader)?,
                            count(&mut reader)?,
                            count(&mut reader)?,
                        ],
                    )),
                };
                reader.end()?;
                builder.consumer(name, known)
            }
            tag @ (tag::TOKEN | tag::APPLIED) => {
                let consumer = reader.bytes()?;
                let applied = match tag == tag::APPLIED {
                    true => Some(reader.bytes()?),
                    false => None,
                };
                applied.map(effect::decode_outcomes).transpose()?;
                let (first, count) = (reader.number(&EXACT)?, reader.number(&EXACT)?);
                let token = reader.rest().into();
                builder.token(
                    consumer,
                    TokenDelivery {
                        token,
                        first,
                        count,
                        applied: applied.map(Into::into),
                    },
                )
            }
            tag::OLD_END => {
                builder.old_end(reader.number(&EXACT)?, reader.number(&EXACT)?)?;
                reader.end()
            }
            tag::DETACHED => builder.detached(detached(&mut reader)?),
            tag::DEAD_LETTERS => builder.dead_letters(dead_letters(&mut reader)?),
            tag::REPORT => {
                builder.report(report(&mut reader)?);
                Ok(())
            }
            tag::SCHEDULE => {
                let name = reader.bytes()?;
                builder.schedule(name, schedule(&mut reader)?)
            }
            tag::DEDUP => {
                let ended_at = reader.number(&EXACT)?;
                builder.dedup(reader.rest(), ended_at)
            }
            tag::DEDUP_ID => {
                let (until, name) = (reader.number(&EXACT)?, reader.bytes()?);
                builder.dedup_id(name, reader.rest(), until)
            }
            tag::BATCH => {
                let first = reader.delta(self.bases.receipt, &EXACT)?;
                self.bases.receipt = first;
                builder.batch(first, reader.number(&EXACT)?)?;
                reader.end()
            }
            tag::DICTIONARY => {
                let number = reader.number(&bounds::DICTIONARY)? as u8;
                let is_current = reader.flag()?;
                let dictionary = dictionary(reader.rest())?;
                builder.dictionary(number, Arc::clone(&dictionary), is_current)?;
                if let Some(known) = self.dictionaries.get_mut(usize::from(number)) {
                    *known = Some(dictionary);
                }
                Ok(())
            }
            tag::PACKED => {
                let number = reader.number(&bounds::DICTIONARY_OR_NONE)?;
                self.packed = number.checked_sub(1).map(|number| number as u8);
                let known = |number: u8| self.dictionaries.get(usize::from(number));
                let is_known = |number| known(number).is_some_and(Option::is_some);
                ensure(
                    self.packed.is_none_or(is_known),
                    "a payload is packed with a dictionary that is missing",
                )?;
                reader.end()
            }
            tag::SALT => {
                builder.salt(reader.fixed()?);
                reader.end()
            }
            tag::NAMED => match reader.flag()? {
                false => {
                    let number = reader.number(&EXACT)?;
                    let (finished, cancelled) = (reader.number(&EXACT)?, reader.number(&EXACT)?);
                    builder.named_batch(reader.rest(), number, finished, cancelled)
                }
                true => builder.released(released(&mut reader)?),
            },
            tag::SIBLINGS => {
                let number = reader.number(&EXACT)?;
                let parent = parent(&mut reader)?;
                reader.end()?;
                builder.siblings(number, &parent)
            }
            tag::END => {
                self.ended = true;
                ensure(
                    reader.number(&EXACT)? == self.messages,
                    "messages are missing",
                )?;
                reader.end()
            }
            _ => Err(Invalid("an unknown part of a queue")),
        }
    }
}

fn dictionary(text: &[u8]) -> Result<Arc<Dictionary>, Invalid> {
    ensure(
        text.len() <= DICTIONARY,
        "a dictionary must be at most 16384 bytes long",
    )?;
    let dictionary = Dictionary::of(text).ok_or(Invalid("a dictionary is damaged"))?;
    Ok(Arc::new(dictionary))
}

fn released(reader: &mut Reader) -> Result<ReleasedPart, Invalid> {
    let mut part = ReleasedPart {
        batch: reader.number(&EXACT)?,
        at: reader.number(&EXACT)?,
        dies: reader.flag()?,
        counts: counts(reader)?,
        held: Vec::new(),
    };
    let mut base = 0;
    while !reader.is_at_end() {
        base = reader.delta(base, &EXACT)?;
        part.held.push(base);
    }
    Ok(part)
}

fn counts(reader: &mut Reader) -> Result<Counts, Invalid> {
    Ok(Counts {
        pending: count(reader)?.get(),
        running: count(reader)?.get(),
        dead: count(reader)?.get(),
        finished: count(reader)?.get(),
        cancelled: count(reader)?.get(),
    })
}

/// The length of the frame at the start of `bytes` and the offset of its data;
/// `None` if the length is not complete yet.
fn length(bytes: &[u8]) -> Result<Option<(usize, usize)>, Invalid> {
    let mut reader = Reader::new(bytes);
    let len = match reader.any() {
        Ok(len) => len,
        Err(_) if bytes.len() < LENGTH_BYTES => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = usize::try_from(len).map_err(|_| Invalid("a part is too long"))?;
    let at = bytes.len() - reader.rest().len();
    ensure(len <= usize::MAX - at, "a part is too long")?;
    Ok(Some((len, at)))
}

/// Moves the missing bytes of a frame from `block` to `begun`. Returns the rest
/// of the block.
fn complete<'a>(begun: &mut Vec<u8>, mut block: &'a [u8]) -> Result<&'a [u8], Invalid> {
    while !block.is_empty() {
        let missing = match length(begun)? {
            None => 1,
            Some((len, at)) => (at + len).saturating_sub(begun.len()),
        };
        if missing == 0 {
            break;
        }
        let (now, later) = block.split_at_checked(missing).unwrap_or((block, &[]));
        begun.extend_from_slice(now);
        block = later;
    }
    Ok(block)
}

/// Reads a statistic. One that is larger than it may be is no reason to refuse a queue.
fn count(reader: &mut Reader) -> Result<Count, Invalid> {
    Ok(Count::of(reader.number(&CUT)?))
}

fn whole(reader: &mut Reader) -> Result<Whole, Invalid> {
    Ok(Whole {
        settings: settings(reader)?,
        clock: clock(reader)?,
        salt: reader.fixed()?,
        last: reader.number(&EXACT)?,
        next_seq: reader.number(&EXACT)?,
        last_receipt: reader.number(&EXACT)?,
        totals: totals(reader)?,
        paused_until: reader.optional(&TIME)?,
        window: RateWindow::from_given(pairs(reader)?),
        lateness: lateness(reader)?,
        plain_position: match reader.is_at_end() {
            true => None,
            false => Some(position(reader)?),
        },
    })
}

fn totals(reader: &mut Reader) -> Result<Totals, Invalid> {
    Ok(Totals {
        sent: count(reader)?,
        duplicates: count(reader)?,
        delivered: count(reader)?,
        redelivered: count(reader)?,
        acked: count(reader)?,
        nacked: count(reader)?,
        timeouts: count(reader)?,
        deaths: count(reader)?,
        expired: count(reader)?,
        cancellations: count(reader)?,
        redriven: count(reader)?,
        skipped_fires: count(reader)?,
    })
}

/// Reads pairs of a time in Unix ms, written as differences, and a count.
fn pairs(reader: &mut Reader) -> Result<VecDeque<(Millis, u64)>, Invalid> {
    let len = reader.list()?;
    let mut pairs = VecDeque::with_capacity(len.min(MOST_RESERVED));
    let mut base = 0;
    for _ in 0..len {
        base = reader.delta(base, &EXACT)?;
        pairs.push_back((base, reader.number(&CUT)?));
    }
    Ok(pairs)
}

fn lateness(reader: &mut Reader) -> Result<Lateness, Invalid> {
    let counts = pairs(reader)?;
    let max = reader.number(&EXACT)?;
    Lateness::from_counts(counts, max).ok_or(Invalid("the lateness of deliveries is impossible"))
}

fn position(reader: &mut Reader) -> Result<SavedPosition, Invalid> {
    Ok(SavedPosition {
        priority: reader.byte()? as i8,
        time: reader.number(&EXACT)?,
        rank: reader.number(&EXACT)?,
        seq: reader.number(&EXACT)?,
    })
}

fn schedule(reader: &mut Reader) -> Result<Schedule, Invalid> {
    let (rule, manner) = rule(reader)?;
    let next_at = reader.optional(&EXACT)?;
    let last_at = reader.optional(&EXACT)?;
    let fired = count(reader)?;
    let last_seq = reader.optional(&EXACT)?;
    let group = reader.optional_bytes()?.map(Into::into);
    let priority = reader.byte()? as i8;
    let (
        choices,
        OfSend {
            if_group,
            rerun,
            dedup,
        },
    ) = send_options(reader)?;
    ensure(
        !rerun && dedup.is_none(),
        "a schedule must not have RERUN or DEDUPID",
    )?;
    template(&choices, group.is_some(), if_group)?;
    Ok(Schedule {
        rule,
        missed: manner.missed,
        overlap: manner.overlap,
        extras: manner.extras.boxed(),
        next_at,
        last_at,
        fired,
        last_seq,
        template: Template {
            group,
            priority,
            choices,
            if_group,
            payload: reader.rest().into(),
        },
        number: 0,
    })
}
