//! Encodes the options of queues, messages and schedules. Log entries and
//! snapshots share this encoding.

use std::num::NonZeroU64;

use super::wire::{
    put_bytes, put_fixed, put_flag, put_number, put_optional_bytes, put_signed, Reader,
    MOST_RESERVED,
};
use crate::limits::{self, Invalid};
use crate::message::after::{After, Batching, Counts, OnFail};
use crate::message::{Choices, Header, RareChoices};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::{Missed, Overlap};
use crate::settings::{Backoff, Breaker, Changes, Clock, OnDead, OnRetry, Rate, Settings};

/// The number of options in [`Changes`].
const OPTIONS: u32 = 19;
const RETRIES: u32 = 12;
const BACKOFF: u32 = 13;
const JITTER: u32 = 14;
const RATE: u32 = 15;
const ON_RETRY: u32 = 16;
const ON_DEAD: u32 = 17;
const BREAKER: u32 = 18;

/// The number of options in [`Choices`].
const MESSAGE_OPTIONS: u32 = 12;
/// The bit among those of the options of a message that says IFGROUP. It is part of
/// a send, not of the message.
const IF_GROUP: u32 = 12;
/// The first option in [`RareChoices`].
const RARE: u32 = 7;
const BATCH: u32 = 10;
const AFTER: u32 = 11;

/// Sets bit i if the i-th value is present.
fn mask<const N: usize>(present: [bool; N]) -> u64 {
    let bits = present.into_iter().enumerate();
    bits.fold(0, |mask, (bit, is)| mask | u64::from(is) << bit)
}

/// Writes all options of a queue.
pub fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    put_changes(out, &all_of(settings));
}

/// Reads all options of a queue.
///
/// Errors: an option is missing, unknown or out of range.
pub fn settings(reader: &mut Reader) -> Result<Settings, Invalid> {
    let changes = changes(reader)?;
    let settings = Settings::default().with(&changes);
    limits::ensure(
        all_of(&settings) == changes,
        "an option of the queue is missing",
    )?;
    Ok(settings)
}

fn all_of(settings: &Settings) -> Changes {
    Changes {
        lease: Some(settings.lease),
        retries: Some(settings.retries),
        backoff: Some(settings.backoff),
        max_backoff: Some(settings.max_backoff),
        jitter: Some(settings.jitter),
        ttl: Some(settings.ttl),
        retain: Some(settings.retain),
        retain_count: Some(settings.retain_count),
        dead_retain: Some(settings.dead_retain),
        dead_count: Some(settings.dead_count),
        dedup: Some(settings.dedup),
        max_len: Some(settings.max_len),
        max_bytes: Some(settings.max_bytes),
        max_running: Some(settings.max_running),
        rate: Some(settings.rate),
        group_concurrency: Some(settings.group_concurrency),
        on_retry: Some(settings.on_retry),
        on_dead: Some(settings.on_dead),
        // A queue without it is written as by versions that did not have it.
        breaker: settings.breaker.map(Some),
    }
}

/// Writes the options of a queue that change.
pub fn put_changes(out: &mut Vec<u8>, c: &Changes) {
    let numbers = [
        c.lease,
        c.max_backoff,
        c.ttl,
        c.retain,
        c.retain_count,
        c.dead_retain,
        c.dead_count,
        c.dedup,
        c.max_len,
        c.max_bytes,
        c.max_running,
        c.group_concurrency,
    ];
    let others = [
        c.retries.is_some(),
        c.backoff.is_some(),
        c.jitter.is_some(),
        c.rate.is_some(),
        c.on_retry.is_some(),
        c.on_dead.is_some(),
        c.breaker.is_some(),
    ];
    let present = mask(numbers.map(|n| n.is_some())) | mask(others) << RETRIES;
    put_number(out, present);
    for n in numbers.into_iter().flatten() {
        put_number(out, n);
    }
    if let Some(retries) = c.retries {
        put_signed(out, retries);
    }
    if let Some(backoff) = c.backoff {
        put_backoff(out, backoff);
    }
    if let Some(jitter) = c.jitter {
        out.push(jitter);
    }
    if let Some(rate) = c.rate {
        put_rate(out, rate);
    }
    if let Some(on_retry) = c.on_retry {
        put_flag(out, on_retry == OnRetry::Skip);
    }
    if let Some(on_dead) = c.on_dead {
        put_flag(out, on_dead == OnDead::Block);
    }
    if let Some(breaker) = c.breaker {
        put_breaker(out, breaker);
    }
}

/// Reads the options of a queue that change.
///
/// Errors: an option is unknown or out of range.
pub fn changes(reader: &mut Reader) -> Result<Changes, Invalid> {
    let present = reader.number()?;
    limits::ensure(present >> OPTIONS == 0, "an unknown option")?;
    let has = |bit: u32| present >> bit & 1 == 1;
    let mut bit = 0;
    let mut number = || {
        bit += 1;
        has(bit - 1).then(|| reader.number()).transpose()
    };
    let mut changes = Changes {
        lease: number()?,
        max_backoff: number()?,
        ttl: number()?,
        retain: number()?,
        retain_count: number()?,
        dead_retain: number()?,
        dead_count: number()?,
        dedup: number()?,
        max_len: number()?,
        max_bytes: number()?,
        max_running: number()?,
        group_concurrency: number()?,
        ..Changes::default()
    };
    if has(RETRIES) {
        changes.retries = Some(reader.signed()?);
    }
    if has(BACKOFF) {
        changes.backoff = Some(backoff(reader)?);
    }
    if has(JITTER) {
        changes.jitter = Some(reader.byte()?);
    }
    if has(RATE) {
        changes.rate = Some(rate(reader)?);
    }
    if has(ON_RETRY) {
        changes.on_retry = Some(match reader.flag()? {
            true => OnRetry::Skip,
            false => OnRetry::Block,
        });
    }
    if has(ON_DEAD) {
        changes.on_dead = Some(match reader.flag()? {
            true => OnDead::Block,
            false => OnDead::Continue,
        });
    }
    if has(BREAKER) {
        changes.breaker = Some(breaker(reader)?);
    }
    limits::changes(&changes)?;
    Ok(changes)
}

/// Writes which clock a queue follows.
pub fn put_clock(out: &mut Vec<u8>, clock: Clock) {
    match clock {
        Clock::Server => put_flag(out, false),
        Clock::Manual(now) => {
            put_flag(out, true);
            put_number(out, now);
        }
    }
}

/// Reads which clock a queue follows.
pub fn clock(reader: &mut Reader) -> Result<Clock, Invalid> {
    match reader.optional()? {
        None => Ok(Clock::Server),
        Some(now) => limits::exact(now).map(|()| Clock::Manual(now)),
    }
}

/// Writes a rate limit, or 0 for none.
pub fn put_rate(out: &mut Vec<u8>, rate: Option<Rate>) {
    put_number(out, rate.map_or(0, |rate| rate.count));
    if let Some(rate) = rate {
        put_number(out, rate.per);
    }
}

/// Reads a rate limit; `None` for 0.
pub fn rate(reader: &mut Reader) -> Result<Option<Rate>, Invalid> {
    let count = reader.number()?;
    if count == 0 {
        return Ok(None);
    }
    let rate = Rate {
        count,
        per: reader.number()?,
    };
    limits::rate(rate)?;
    Ok(Some(rate))
}

fn put_breaker(out: &mut Vec<u8>, breaker: Option<Breaker>) {
    put_number(out, breaker.map_or(0, |breaker| breaker.failures));
    if let Some(Breaker { per, open, max, .. }) = breaker {
        for ms in [per, open, max] {
            put_number(out, ms);
        }
    }
}

/// Reads a breaker; `None` for 0.
fn breaker(reader: &mut Reader) -> Result<Option<Breaker>, Invalid> {
    let failures = reader.number()?;
    if failures == 0 {
        return Ok(None);
    }
    Ok(Some(Breaker {
        failures,
        per: reader.number()?,
        open: reader.number()?,
        max: reader.number()?,
    }))
}

fn put_backoff(out: &mut Vec<u8>, backoff: Backoff) {
    let (kind, ms) = match backoff {
        Backoff::Fixed(ms) => (0, ms),
        Backoff::Linear(ms) => (1, ms),
        Backoff::Exp(ms) => (2, ms),
    };
    out.push(kind);
    put_number(out, ms);
}

fn backoff(reader: &mut Reader) -> Result<Backoff, Invalid> {
    Ok(match (reader.byte()?, reader.number()?) {
        (0, ms) => Backoff::Fixed(ms),
        (1, ms) => Backoff::Linear(ms),
        (2, ms) => Backoff::Exp(ms),
        _ => return Err(Invalid("an unknown kind of backoff")),
    })
}

/// Writes the options of a message that is to be sent, and whether it is sent only
/// if its group has a message.
pub fn put_send_options(out: &mut Vec<u8>, choices: &Choices, if_group: bool) {
    put_with(out, choices, u64::from(if_group) << IF_GROUP);
}

/// Reads what [`put_send_options`] writes.
///
/// Errors: an option is unknown or out of range.
pub fn send_options(reader: &mut Reader) -> Result<(Choices, bool), Invalid> {
    let present = reader.number()?;
    let choices = choices_of(reader, present & !(1 << IF_GROUP))?;
    Ok((choices, present >> IF_GROUP & 1 == 1))
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
    ]);
    put_number(out, present | more);
    if let Some(score) = choices.score {
        put_fixed(out, score.to_bits());
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
}

/// Reads the options of a message.
///
/// Errors: an option is unknown or out of range.
pub fn choices(reader: &mut Reader) -> Result<Choices, Invalid> {
    let present = reader.number()?;
    choices_of(reader, present)
}

fn choices_of(reader: &mut Reader, present: u64) -> Result<Choices, Invalid> {
    limits::ensure(
        present >> MESSAGE_OPTIONS == 0,
        "an unknown option of a message",
    )?;
    let has = |bit: u32| present >> bit & 1 == 1;
    let mut choices = Choices::default();
    if has(0) {
        choices.score = Some(f64::from_bits(reader.fixed()?));
    }
    if has(1) {
        let lease = NonZeroU64::new(reader.number()?);
        choices.lease = Some(lease.ok_or(Invalid("a lease of 0 ms"))?);
    }
    if has(2) {
        choices.retries = Some(reader.signed()?);
    }
    if has(3) {
        choices.backoff = Some(backoff(reader)?);
    }
    if has(4) {
        choices.ttl = Some(reader.number()?);
    }
    if has(5) {
        choices.label = Some(reader.bytes()?.into());
    }
    if has(6) {
        let count = reader.number()?;
        let mut headers: Vec<Header> = Vec::with_capacity(count.min(MOST_RESERVED as u64) as usize);
        for _ in 0..count {
            headers.push((reader.bytes()?.into(), reader.bytes()?.into()));
        }
        choices.headers = headers.into();
    }
    if present >> RARE != 0 {
        let mut rare = RareChoices {
            retain: has(7).then(|| reader.number()).transpose()?,
            expire_at: has(8).then(|| reader.number()).transpose()?,
            max_wait: has(9).then(|| reader.number()).transpose()?,
            batching: None,
        };
        if has(BATCH) || has(AFTER) {
            let batch = has(BATCH).then(|| reader.bytes()).transpose()?;
            rare.batching = Some(Box::new(Batching {
                batch: batch.map(Into::into),
                after: has(AFTER).then(|| after(reader)).transpose()?,
            }));
        }
        choices.rare = Some(Box::new(rare));
    }
    limits::choices(&choices)?;
    Ok(choices)
}

fn after(reader: &mut Reader) -> Result<After, Invalid> {
    let batch = reader.bytes()?.into();
    let number = usize::from(reader.byte()?);
    let on_fail = OnFail::ALL.get(number).copied();
    Ok(After {
        batch,
        on_fail: on_fail.ok_or(Invalid("an unknown ONFAIL"))?,
        counts: Counts::default(),
    })
}

/// Writes when a schedule fires and how it treats missed and overlapping fire
/// times.
pub fn put_rule(out: &mut Vec<u8>, rule: &Recurrence, missed: Missed, overlap: Overlap) {
    let missed = match missed {
        Missed::Skip => 0,
        Missed::Once => 1,
        Missed::All => 2,
    };
    out.push(missed << 1 | u8::from(overlap == Overlap::Skip));
    match rule {
        Recurrence::Every {
            period,
            start,
            start_given,
        } => {
            out.push(u8::from(*start_given));
            put_number(out, *period);
            put_number(out, *start);
        }
        Recurrence::Cron(rule) => {
            out.push(2);
            put_bytes(out, rule.expr().as_bytes());
            put_optional_bytes(out, rule.zone().map(str::as_bytes));
        }
    }
}

/// Reads when a schedule fires and how it treats missed and overlapping fire
/// times.
///
/// Errors: a value is unknown or out of range, or a cron rule cannot be parsed.
pub fn rule(reader: &mut Reader) -> Result<(Recurrence, Missed, Overlap), Invalid> {
    let word = reader.byte()?;
    let missed = match word >> 1 {
        0 => Missed::Skip,
        1 => Missed::Once,
        2 => Missed::All,
        _ => return Err(Invalid("an unknown word for MISSED")),
    };
    let overlap = match word & 1 {
        0 => Overlap::Queue,
        _ => Overlap::Skip,
    };
    let rule = match reader.byte()? {
        kind @ (0 | 1) => {
            let (period, start) = (reader.number()?, reader.number()?);
            limits::positive(period)?;
            limits::exact(start)?;
            Recurrence::Every {
                period,
                start,
                start_given: kind == 1,
            }
        }
        2 => {
            let expr = text(Some(reader.bytes()?))?.unwrap_or_default();
            let zone = text(reader.optional_bytes()?)?;
            Recurrence::cron(expr, zone)
                .map_err(|_| Invalid("a cron expression or time zone is not known"))?
        }
        _ => return Err(Invalid("an unknown kind of schedule")),
    };
    Ok((rule, missed, overlap))
}

fn text(bytes: Option<&[u8]>) -> Result<Option<&str>, Invalid> {
    bytes
        .map(std::str::from_utf8)
        .transpose()
        .map_err(|_| Invalid("a text is not UTF-8"))
}
