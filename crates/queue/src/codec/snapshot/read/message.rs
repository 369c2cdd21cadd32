//! Decodes a message of a snapshot.

use std::sync::Arc;

use super::counts;
use crate::codec::bounds::{self, EXACT, PARTS, SMALL, TIME};
use crate::codec::options::{choices, due as read_due};
use crate::codec::snapshot::children::children;
use crate::codec::snapshot::{extra, tag, texts, Bases};
use crate::codec::wire::Reader;
use crate::limits::{self, ensure, Invalid};
use crate::message::body::Content;
use crate::message::errors::{Errors, FailedAttempt};
use crate::message::extension::{Extension, Texts};
use crate::message::given::GivenId;
use crate::message::history::History;
use crate::message::left::{Left, Signal};
use crate::message::packing::{Dictionary, Packed, Payload};
use crate::message::rerun::Rerun;
use crate::message::state::{Reason, StoredState};
use crate::message::Message;
use crate::queue::rebuild::{Builder, Names, Term};
use crate::{Millis, NEVER};

/// Reads the message behind its tag and adds it to the queue that is built. `packed` is the dictionary
/// with which its payload is packed, and the number of that.
///
/// Errors: an impossible message, or input that ends too early.
pub fn message(
    reader: &mut Reader,
    tag: u8,
    bases: &mut Bases,
    packed: Option<(u8, &Arc<Dictionary>)>,
    builder: &mut Builder,
) -> Result<(), Invalid> {
    let has = |bit: u8| tag & bit != 0;
    let is_next = !has(tag::MESSAGE);
    let stored = match is_next {
        true => tag >> tag::STATE_OF_NEXT,
        false => tag >> tag::STATE,
    };
    let mut stored = StoredState::from_u8(stored & 7).ok_or(Invalid("an unknown place"))?;
    let (seq, sent_at) = match is_next {
        true => (bases.seq.wrapping_add(1), bases.sent_at),
        false => (
            bases.seq.wrapping_add(reader.number(&EXACT)?),
            reader.delta(bases.sent_at, &EXACT)?,
        ),
    };
    let due = reader.delta(sent_at, &TIME)?;
    bases.seq = seq;
    bases.sent_at = sent_at;
    let priority = match has(tag::PRIORITY) {
        true => reader.byte()? as i8,
        false => 0,
    };
    let group = has(tag::GROUPED)
        .then(|| reader.number(&EXACT))
        .transpose()?;
    let id = has(tag::ID).then(|| reader.bytes()).transpose()?;
    if let Some(id) = id {
        // A message stores the length of its id in two bytes.
        limits::name(id)?;
    }
    let (mut consumer, mut term, mut first_sent) = (None, None, None);
    let (mut batch, mut siblings) = (None, None);
    let mut history = History::None;
    let mut is_point = false;
    if !is_next && has(tag::HISTORY) {
        let bits = reader.number(&PARTS)?;
        ensure(bits & !extra::ALL == 0, "an unknown part of a message")?;
        let mut ext = Extension::new(due);
        term = deliveries(reader, bits, &mut ext, bases)?;
        if bits & extra::CONSUMER != 0 {
            consumer = Some(reader.number(&EXACT)?);
        }
        ending(reader, bits, due, &mut ext)?;
        if bits & extra::FIRST_SENT != 0 {
            first_sent = Some(reader.delta(sent_at, &EXACT)?);
        }
        if bits & extra::BATCH != 0 {
            batch = Some(reader.number(&EXACT)?);
        }
        if bits & extra::AFTER_COUNTS != 0 {
            after_counts(reader, &mut ext)?;
        }
        if bits & extra::ERRORS != 0 {
            ext.errors = errors(reader, due)?;
        }
        if bits & extra::RERUN != 0 {
            let rerun = read_rerun(reader)?;
            let left = &mut ext.texts_mut().left;
            Left::change(left, |more| more.rerun = Some(Box::new(rerun)));
        }
        if bits & extra::SIGNAL != 0 {
            let signal = Signal {
                text: reader.bytes()?.into(),
                during: reader.number(&EXACT)?,
            };
            limits::note(&signal.text)?;
            let left = &mut ext.texts_mut().left;
            Left::change(left, |more| more.signal = Some(signal));
        }
        if bits & extra::CHILDREN != 0 {
            children(reader, &mut ext)?;
        }
        if bits & extra::SIBLINGS != 0 {
            siblings = Some(reader.number(&EXACT)?);
        }
        if bits & extra::LEAVING != 0 {
            ensure(
                stored == StoredState::Dead,
                "a message is on its way to another queue and not dead",
            )?;
            stored = StoredState::Leaving;
        }
        is_point = bits & extra::POINT != 0;
        let apart = extra::FIRST_SENT | extra::BATCH | extra::POINT | extra::SIBLINGS;
        let has_none = bits != 0 && bits & !apart == 0;
        history = match stored {
            StoredState::Running => History::of_running(ext, due),
            _ if has_none => History::None,
            _ => History::Full(Box::new(ext)),
        };
    }
    let id = id.map(GivenId::Text);
    let content = Content {
        id,
        payload: match packed {
            None => Payload::Plain(reader.rest()),
            Some((number, dictionary)) => Payload::Packed(Packed {
                len: reader.number(&bounds::PACKED)? as usize,
                bytes: reader.rest(),
                own: id,
                number,
                dictionary,
            }),
        },
    };
    let mut message = Message::new(content, sent_at, due);
    message.stored = stored;
    message.priority = priority;
    message.history = history;
    message.set_due_at_point(is_point);
    builder.message(
        seq,
        message,
        content,
        Names {
            group,
            consumer,
            batch,
            siblings,
        },
        term,
        first_sent,
    )
}

/// Reads the options of the message, how often and when it was delivered, and
/// its lease.
fn deliveries(
    reader: &mut Reader,
    bits: u64,
    ext: &mut Extension,
    bases: &mut Bases,
) -> Result<Option<Term>, Invalid> {
    let has = |bit: u64| bits & bit != 0;
    let due = ext.due_at;
    if has(extra::CHOICES) {
        ext.choices = Some(Box::new(choices(reader)?));
    }
    if has(extra::STARTED) {
        ext.started_at = reader.delta(due, &TIME)?;
    }
    ext.first_started_at = match has(extra::FIRST_STARTED) {
        true => reader.delta(due, &TIME)?,
        false => ext.started_at,
    };
    let mut term = None;
    if has(extra::RUNNING) {
        ext.receipt = reader.delta(bases.receipt, &EXACT)?;
        term = Some(Term {
            batch: ext.receipt.wrapping_sub(reader.number(&EXACT)?),
            until: reader.delta(ext.started_at, &EXACT)?,
        });
        bases.receipt = ext.receipt;
    }
    if has(extra::ATTEMPT) {
        ext.attempt = small(reader)?;
    }
    Ok(term)
}

/// Reads how often the message failed and how it ended.
fn ending(reader: &mut Reader, bits: u64, due: Millis, ext: &mut Extension) -> Result<(), Invalid> {
    let has = |bit: u64| bits & bit != 0;
    if has(extra::ENDED) {
        let ended_at = reader.delta(due, &TIME)?;
        ensure(ended_at != NEVER, "a message ends and does not")?;
        ext.ended_at = ended_at;
    }
    if has(extra::FAILURES) {
        ext.failures = small(reader)?;
        ext.timeouts = small(reader)?;
    }
    if has(extra::SCORE_BASE) {
        ext.score_base = reader.delta(due, &TIME)?;
    }
    if has(extra::TTL_BASE) {
        ext.ttl_base = reader.delta(due, &TIME)?;
    }
    if has(extra::DUE_AT) {
        ext.due_at = reader.delta(due, &TIME)?;
    }
    if has(extra::TEXTS) {
        ext.texts = Some(Box::new(read_texts(reader)?));
    }
    Ok(())
}

fn read_texts(reader: &mut Reader) -> Result<Texts, Invalid> {
    let error = reader.optional_bytes()?.map(Into::into);
    let result = reader.optional_bytes()?.map(Into::into);
    let bits = reader.byte()?;
    let reason = match bits & texts::REASON {
        0 => None,
        n => Some(Reason::from_u8(n).ok_or(Invalid("an unknown reason"))?),
    };
    let note = match bits & texts::NOTE {
        0 => None,
        _ => Some(reader.bytes()?),
    };
    if let Some(note) = note {
        limits::note(note)?;
        ensure(!note.is_empty(), "an empty note is kept")?;
    }
    let mut left = None;
    Left::change(&mut left, |more| more.note = note.map(Into::into));
    Ok(Texts {
        error,
        result,
        reason,
        left,
        snoozed: bits & texts::SNOOZED != 0,
    })
}

/// Reads the message that waits for the end of the run.
fn read_rerun(reader: &mut Reader) -> Result<Rerun, Invalid> {
    Ok(Rerun {
        payload: reader.bytes()?.into(),
        due: read_due(reader)?,
        group: reader.optional_bytes()?.map(Into::into),
        priority: reader.byte()? as i8,
        choices: choices(reader)?,
        first_at: reader.number(&EXACT)?,
    })
}

/// Reads the messages of the batch that the message waited for.
fn after_counts(reader: &mut Reader, ext: &mut Extension) -> Result<(), Invalid> {
    let counts = counts(reader)?;
    let choices = ext.choices.as_mut();
    let after = choices.and_then(|choices| choices.after_mut());
    let after = after.ok_or(Invalid("a message waited for no batch"))?;
    after.counts = counts;
    Ok(())
}

/// Reads the failed attempts that the message keeps.
fn errors(reader: &mut Reader, due: Millis) -> Result<Option<Box<Errors>>, Invalid> {
    let count = reader.number(&bounds::ERRORS)?;
    let mut list = Vec::new();
    for _ in 0..count {
        let failed = FailedAttempt {
            attempt: small(reader)?,
            at: reader.delta(due, &TIME)?,
            consumer: reader.optional_bytes()?.map(Into::into),
            text: reader.bytes()?.into(),
        };
        limits::failed_attempt(&failed)?;
        list.push(failed);
    }
    Ok(Errors::of(list))
}

fn small(reader: &mut Reader) -> Result<u32, Invalid> {
    Ok(reader.number(&SMALL)? as u32)
}
