//! Encodes the options of a message.

use crate::codec::bounds::{self, EXACT, PARTS};
use std::num::NonZeroU64;

use super::{backoff, mask, put_backoff};
use crate::codec::wire::{put_bytes, put_fixed, put_number, put_signed, Reader, MOST_RESERVED};
use crate::limits::{self, Invalid};
use crate::message::after::{After, Batching, Counts, OnFail, Park};
use crate::message::kin::{Children, Kin, Parent};
use crate::message::limited::Limited;
use crate::message::score::{Number, Score};
use crate::message::{Choices, Header, RareChoices};
use crate::op::DedupId;

/// The number of options in [`Choices`].
const MESSAGE_OPTIONS: u32 = 19;
/// The number of the bit for DEDUPID, in the bits of the options of a message. DEDUPID is part of
/// a send, not of the message, and follows the options of the message.
const DEDUP_ID: u32 = 20;
/// The number of the bit for RERUN, in the bits of the options of a message.
const RERUN: u32 = 19;
/// The number of the bit for IFGROUP, in the same bits. IFGROUP is part of a send, not of
/// the message.
const IF_GROUP: u32 = 12;
/// The first option in [`RareChoices`].
const RARE: u32 = 7;
const BATCH: u32 = 10;
const AFTER: u32 = 11;
const MAX_TIMEOUTS: u32 = 13;
const ERRORS: u32 = 14;
const PARK: u32 = 15;
const PARENT: u32 = 16;
const CHILDREN: u32 = 17;
const LIMITS: u32 = 18;

/// The options of a send that are not of its messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfSend {
    /// IFGROUP.
    pub if_group: bool,
    /// RERUN.
    pub rerun: bool,
    /// DEDUPID.
    pub dedup: Option<Box<DedupId>>,
}

/// Writes the options of a message that is to be sent, and those of its send.
pub fn put_send_options(out: &mut Vec<u8>, choices: &Choices, of_send: OfSend) {
    let OfSend {
        if_group,
        rerun,
        dedup,
    } = of_send;
    let has_dedup = u64::from(dedup.is_some()) << DEDUP_ID;
    let more = u64::from(if_group) << IF_GROUP | u64::from(rerun) << RERUN | has_dedup;
    put_with(out, choices, more);
    if let Some(DedupId { name, ms }) = dedup.as_deref() {
        put_bytes(out, name);
        put_number(out, *ms);
    }
}

/// Reads the output of [`put_send_options`].
///
/// Errors: an option is unknown or out of range.
pub fn send_options(reader: &mut Reader) -> Result<(Choices, OfSend), Invalid> {
    let present = reader.number(&PARTS)?;
    let has = |bit: u32| present >> bit & 1 == 1;
    let of_message = present & !(1 << IF_GROUP | 1 << RERUN | 1 << DEDUP_ID);
    let choices = choices_of(reader, of_message)?;
    let of_send = OfSend {
        if_group: has(IF_GROUP),
        rerun: has(RERUN),
        dedup: has(DEDUP_ID)
            .then(|| dedup_id(reader))
            .transpose()?
            .map(Box::new),
    };
    Ok((choices, of_send))
}

fn dedup_id(reader: &mut Reader) -> Result<DedupId, Invalid> {
    let name = reader.bytes()?;
    limits::name(name)?;
    let ms = reader.number(&EXACT)?;
    limits::ensure(ms > 0, "DEDUPID must count for at least 1 ms")?;
    Ok(DedupId {
        name: name.into(),
        ms,
    })
}

/// Writes the options of a message. Which of them follow is a number of one byte
/// where only the first seven occur.
pub fn put_choices(out: &mut Vec<u8>, choices: &Choices) {
    put_with(out, choices, 0);
}

fn put_with(out: &mut Vec<u8>, choices: &Choices, more: u64) {
    let batching = choices.batching();
    let batch = batching.and_then(|batching| batching.batch.as_deref());
    let after = batching.and_then(|batching| batching.after.as_ref());
    let present = mask([
        choices.score.is_some(),
        choices.lease.is_some(),
        choices.retries.is_some(),
        choices.backoff.is_some(),
        choices.ttl.is_some(),
        choices.label.is_some(),
        !choices.headers.is_empty(),
        choices.retain().is_some(),
        choices.expire_at().is_some(),
        choices.max_wait().is_some(),
        batch.is_some(),
        after.is_some(),
        false,
        choices.max_timeouts().is_some(),
        choices.errors().is_some(),
        choices.park().is_some(),
        choices.parent().is_some(),
        choices.children().is_some(),
        choices.takes().is_some(),
    ]);
    put_number(out, present | more);
    if let Some(score) = choices.score {
        put_score(out, score);
    }
    if let Some(lease) = choices.lease {
        put_number(out, lease.get());
    }
    if let Some(retries) = choices.retries {
        put_signed(out, retries);
    }
    if let Some(backoff) = choices.backoff {
        put_backoff(out, backoff);
    }
    if let Some(ttl) = choices.ttl {
        put_number(out, ttl);
    }
    if let Some(label) = &choices.label {
        put_bytes(out, label);
    }
    if !choices.headers.is_empty() {
        put_number(out, choices.headers.len() as u64);
        for (field, value) in choices.headers.iter() {
            put_bytes(out, field);
            put_bytes(out, value);
        }
    }
    if let Some(rare) = &choices.rare {
        let times = [rare.retain, rare.expire_at, rare.max_wait];
        for ms in times.into_iter().flatten() {
            put_number(out, ms);
        }
    }
    if let Some(batch) = batch {
        put_bytes(out, batch);
    }
    if let Some(after) = after {
        put_bytes(out, &after.batch);
        out.push(after.on_fail as u8);
    }
    if let Some(most) = choices.max_timeouts() {
        put_number(out, most);
    }
    if let Some(most) = choices.errors() {
        out.push(most);
    }
    if let Some(park) = choices.park() {
        put_number(out, park.ms.map_or(0, NonZeroU64::get));
    }
    if let Some(parent) = choices.parent() {
        put_parent(out, parent);
    }
    if let Some(children) = choices.children() {
        put_number(out, children.total);
    }
    if let Some(limited) = choices.takes() {
        put_number(out, limited.names.len() as u64);
        for name in &limited.names {
            put_bytes(out, name);
        }
        put_number(out, limited.cost);
    }
}

/// Reads the options of a message.
///
/// Errors: an option is unknown or out of range.
pub fn choices(reader: &mut Reader) -> Result<Choices, Invalid> {
    let present = reader.number(&PARTS)?;
    choices_of(reader, present)
}

fn choices_of(reader: &mut Reader, present: u64) -> Result<Choices, Invalid> {
    limits::ensure(
        present >> MESSAGE_OPTIONS == 0 && present & 1 << IF_GROUP == 0,
        "a message has an unknown option",
    )?;
    let has = |bit: u32| present >> bit & 1 == 1;
    let mut choices = Choices::default();
    if has(0) {
        choices.score = Some(score(reader)?);
    }
    if has(1) {
        let lease = NonZeroU64::new(reader.number(&EXACT)?);
        choices.lease = Some(lease.ok_or(Invalid("the LEASE of a message must be at least 1 ms"))?);
    }
    if has(2) {
        choices.retries = Some(reader.signed()?);
    }
    if has(3) {
        choices.backoff = Some(backoff(reader)?);
    }
    if has(4) {
        choices.ttl = Some(reader.number(&EXACT)?);
    }
    if has(5) {
        choices.label = Some(reader.bytes()?.into());
    }
    if has(6) {
        let count = reader.list()?;
        let mut headers: Vec<Header> = Vec::with_capacity(count.min(MOST_RESERVED));
        for _ in 0..count {
            headers.push((reader.bytes()?.into(), reader.bytes()?.into()));
        }
        choices.headers = headers.into();
    }
    if present >> RARE != 0 {
        let mut rare = RareChoices {
            retain: has(7).then(|| reader.number(&EXACT)).transpose()?,
            expire_at: has(8).then(|| reader.number(&EXACT)).transpose()?,
            max_wait: has(9).then(|| reader.number(&EXACT)).transpose()?,
            batching: None,
            max_timeouts: None,
            errors: None,
            limited: None,
            kin: None,
        };
        if has(BATCH) || has(AFTER) {
            let batch = has(BATCH).then(|| reader.bytes()).transpose()?;
            rare.batching = Some(Box::new(Batching {
                batch: batch.map(Into::into),
                after: has(AFTER).then(|| after(reader)).transpose()?,
                park: None,
            }));
        }
        if has(MAX_TIMEOUTS) {
            rare.max_timeouts = Some(reader.number(&EXACT)?);
        }
        if has(ERRORS) {
            rare.errors = Some(reader.byte()?);
        }
        if has(PARK) {
            let ms = NonZeroU64::new(reader.number(&EXACT)?);
            rare.batching.get_or_insert_default().park = Some(Park { ms });
        }
        if has(PARENT) || has(CHILDREN) {
            let parent = has(PARENT).then(|| parent(reader)).transpose()?;
            let total = has(CHILDREN).then(|| reader.number(&EXACT)).transpose()?;
            let children = total.map(|total| Box::new(Children::new(total)));
            rare.kin = Some(Box::new(Kin { parent, children }));
        }
        if has(LIMITS) {
            rare.limited = Some(Box::new(limited(reader)?));
        }
        choices.rare = Some(Box::new(rare));
    }
    limits::choices(&choices)?;
    Ok(choices)
}

fn limited(reader: &mut Reader) -> Result<Limited, Invalid> {
    let count = reader.number(&bounds::LIMITS)?;
    let names = (0..count).map(|_| Ok(reader.bytes()?.into()));
    Ok(Limited {
        names: names.collect::<Result<_, Invalid>>()?,
        cost: reader.number(&EXACT)?,
    })
}

/// The mark that stands before a score that is an integer and no double. As a double, the mark is
/// not a number.
const INTEGER: u64 = 0x7FF8_0000_0000_0001;
/// The mark before a score that is an integer of 2^63 or more.
const LARGE: u64 = 0x7FF8_0000_0000_0002;

fn put_score(out: &mut Vec<u8>, score: Score) {
    match (score.as_double(), score.number()) {
        (Some(double), _) | (None, Number::Double(double)) => put_fixed(out, double.to_bits()),
        (None, Number::Integer(number)) => {
            put_fixed(out, INTEGER);
            put_fixed(out, number as u64);
        }
        (None, Number::Large(number)) => {
            put_fixed(out, LARGE);
            put_fixed(out, number);
        }
    }
}

/// Reads the output of [`put_score`]. Errors: no finite number, or an integer that is a double.
fn score(reader: &mut Reader) -> Result<Score, Invalid> {
    let score = match reader.fixed()? {
        INTEGER => Score::of_integer((reader.fixed()? as i64).into()),
        LARGE => Score::of_integer(reader.fixed()?.into()),
        bits => return Score::of_double(f64::from_bits(bits)).ok_or(NO_SCORE),
    };
    score
        .filter(|score| score.as_double().is_none())
        .ok_or(NO_SCORE)
}

const NO_SCORE: Invalid = Invalid("SCORE must be a finite number, in its shortest form");

fn after(reader: &mut Reader) -> Result<After, Invalid> {
    Ok(After {
        batch: reader.bytes()?.into(),
        on_fail: on_fail(reader)?,
        counts: Counts::default(),
    })
}

fn on_fail(reader: &mut Reader) -> Result<OnFail, Invalid> {
    let number = usize::from(reader.byte()?);
    let on_fail = OnFail::ALL.get(number).copied();
    on_fail.ok_or(Invalid(
        "ONFAIL and ONDEAD must be 0 (HOLD), 1 (GO) or 2 (DIE)",
    ))
}

/// Writes a parent.
pub fn put_parent(out: &mut Vec<u8>, parent: &Parent) {
    put_bytes(out, &parent.key);
    put_bytes(out, &parent.id);
    out.push(parent.on_dead as u8);
}

/// Reads the output of [`put_parent`], unchecked but for ONDEAD.
pub fn parent(reader: &mut Reader) -> Result<Parent, Invalid> {
    Ok(Parent {
        key: reader.bytes()?.into(),
        id: reader.bytes()?.into(),
        on_dead: on_fail(reader)?,
    })
}
