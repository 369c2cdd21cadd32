//! Encodes the options of a queue, and those that a group or a creation shares with
//! them: rate limits and clocks.

use super::{backoff, mask, put_backoff};
use crate::codec::bounds::{EXACT, PARTS};
use crate::codec::wire::{put_bytes, put_flag, put_number, put_signed, Reader};
use crate::dead_letters::{bit, DeadTo};
use crate::limits::{self, Invalid};
use crate::message::state::Reason;
use crate::settings::{Breaker, Changes, Clock, Fair, OnDead, OnRetry, Rate, Settings};
use crate::transition::DEFAULT_EVENTS_LEN;

/// The number of options in [`Changes`].
const OPTIONS: u32 = 27;
const RETRIES: u32 = 12;
const BACKOFF: u32 = 13;
const JITTER: u32 = 14;
const RATE: u32 = 15;
const ON_RETRY: u32 = 16;
const ON_DEAD: u32 = 17;
const BREAKER: u32 = 18;
const CLOSED: u32 = 19;
const MAX_TIMEOUTS: u32 = 20;
const ERRORS: u32 = 21;
const DEAD_TO: u32 = 22;
const EVENTS: u32 = 23;
const EVENTS_LEN: u32 = 24;
const FAIR: u32 = 25;
const COMPRESS: u32 = 26;

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
        // These options are written only for the queues that have them, which are few.
        breaker: settings.breaker.map(Some),
        compress: settings.compress.then_some(true),
        fair: Some(settings.fair).filter(|fair| *fair != Fair::Count),
        closed: settings.closed.then_some(true),
        max_timeouts: Some(settings.max_timeouts).filter(|most| *most > 0),
        errors: Some(settings.errors).filter(|most| *most > 0),
        dead_to: settings.dead_to.clone().map(Some),
        events: settings.events.clone().map(Some),
        events_len: Some(settings.events_len).filter(|most| *most != DEFAULT_EVENTS_LEN),
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
        c.closed.is_some(),
        c.max_timeouts.is_some(),
        c.errors.is_some(),
        c.dead_to.is_some(),
        c.events.is_some(),
        c.events_len.is_some(),
        c.fair.is_some(),
        c.compress.is_some(),
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
        out.push(on_retry as u8);
    }
    if let Some(on_dead) = c.on_dead {
        put_flag(out, on_dead == OnDead::Block);
    }
    if let Some(breaker) = c.breaker {
        put_breaker(out, breaker);
    }
    if let Some(closed) = c.closed {
        put_flag(out, closed);
    }
    if let Some(most) = c.max_timeouts {
        put_number(out, most);
    }
    if let Some(most) = c.errors {
        out.push(most);
    }
    if let Some(dead_to) = &c.dead_to {
        put_dead_to(out, dead_to.as_deref());
    }
    if let Some(events) = &c.events {
        put_bytes(out, events.as_deref().unwrap_or_default());
    }
    if let Some(most) = c.events_len {
        put_number(out, most);
    }
    if let Some(fair) = c.fair {
        out.push(fair as u8);
    }
    if let Some(compress) = c.compress {
        put_flag(out, compress);
    }
}

/// Reads the options of a queue that change.
///
/// Errors: an option is unknown or out of range.
pub fn changes(reader: &mut Reader) -> Result<Changes, Invalid> {
    let present = reader.number(&PARTS)?;
    limits::ensure(present >> OPTIONS == 0, "a queue has an unknown option")?;
    let has = |bit: u32| present >> bit & 1 == 1;
    let mut bit = 0;
    let mut number = || {
        bit += 1;
        has(bit - 1).then(|| reader.number(&EXACT)).transpose()
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
        let on_retry = OnRetry::ALL.get(usize::from(reader.byte()?)).copied();
        changes.on_retry = Some(on_retry.ok_or(Invalid("ONRETRY must be 0, 1 or 2"))?);
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
    if has(CLOSED) {
        changes.closed = Some(reader.flag()?);
    }
    if has(MAX_TIMEOUTS) {
        changes.max_timeouts = Some(reader.number(&EXACT)?);
    }
    if has(ERRORS) {
        changes.errors = Some(reader.byte()?);
    }
    if has(DEAD_TO) {
        changes.dead_to = Some(dead_to(reader)?);
    }
    if has(EVENTS) {
        let key = reader.bytes()?;
        changes.events = Some((!key.is_empty()).then(|| key.into()));
    }
    if has(EVENTS_LEN) {
        changes.events_len = Some(reader.number(&EXACT)?);
    }
    if has(FAIR) {
        let fair = Fair::ALL.get(usize::from(reader.byte()?)).copied();
        changes.fair = Some(fair.ok_or(Invalid("FAIR must be 0 (COUNT), 1 (TIME) or 2 (COST)"))?);
    }
    if has(COMPRESS) {
        changes.compress = Some(reader.flag()?);
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
    match reader.optional(&EXACT)? {
        None => Ok(Clock::Server),
        Some(now) => Ok(Clock::Manual(now)),
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
    let count = reader.number(&EXACT)?;
    if count == 0 {
        return Ok(None);
    }
    let rate = Rate {
        count,
        per: reader.number(&EXACT)?,
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
    let failures = reader.number(&EXACT)?;
    if failures == 0 {
        return Ok(None);
    }
    Ok(Some(Breaker {
        failures,
        per: reader.number(&EXACT)?,
        open: reader.number(&EXACT)?,
        max: reader.number(&EXACT)?,
    }))
}

fn put_dead_to(out: &mut Vec<u8>, dead_to: Option<&DeadTo>) {
    put_bytes(out, dead_to.map_or(&[], |dead_to| &dead_to.key));
    if let Some(dead_to) = dead_to {
        out.push(dead_to.reasons);
    }
}

/// Reads where dead messages go; `None` for an empty key.
fn dead_to(reader: &mut Reader) -> Result<Option<Box<DeadTo>>, Invalid> {
    let key = reader.bytes()?;
    if key.is_empty() {
        return Ok(None);
    }
    let reasons = reader.byte()?;
    limits::ensure(
        Reason::ALL
            .into_iter()
            .map(bit)
            .fold(0, |all, bit| all | bit)
            & reasons
            == reasons,
        "DEADTO names an unknown reason",
    )?;
    Ok(Some(Box::new(DeadTo {
        key: key.into(),
        reasons,
    })))
}
