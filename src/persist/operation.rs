//! Operations as bytes: the body of a record.

use std::borrow::Cow;

use smallvec::{smallvec, SmallVec};

use super::options::{changes, choices, put_changes, put_choices, put_rate, put_rule, rate, rule};
use super::wire::{
    put_bytes, put_delta, put_fixed, put_number, put_optional_bytes, Reader, MOST_RESERVED,
};
use crate::core::limits::{self, ensure, Invalid};
use crate::core::message::{Choices, State};
use crate::core::op::{
    DueTime, Fetch, GroupChanges, NackKind, NewSchedule, Receipts, Redrive, Send,
};
use crate::core::{Op, Receipt};

const TICK: u8 = 1;
const ALTER: u8 = 2;
const SEND: u8 = 3;
const DUPLICATE: u8 = 4;
const FETCH: u8 = 5;
const ACK: u8 = 6;
const NACK: u8 = 7;
const TOUCH: u8 = 8;
const END_LEASES: u8 = 9;
const ADVANCE: u8 = 10;
const CANCEL: u8 = 11;
const RESCHEDULE: u8 = 12;
const UPDATE: u8 = 13;
const REDRIVE: u8 = 14;
const PURGE: u8 = 15;
const PAUSE: u8 = 16;
const RESUME: u8 = 17;
const GROUP_SET: u8 = 18;
const SCHEDULE: u8 = 19;
const UNSCHEDULE: u8 = 20;
const CATCH_UP: u8 = 21;

/// The number of an operation's kind, below 31.
pub fn kind(op: &Op) -> u8 {
    match op {
        Op::Tick => TICK,
        Op::Alter(_) => ALTER,
        Op::Send(_) => SEND,
        Op::Duplicate => DUPLICATE,
        Op::Fetch(_) => FETCH,
        Op::Ack { .. } => ACK,
        Op::Nack { .. } => NACK,
        Op::Touch { .. } => TOUCH,
        Op::EndLeases { .. } => END_LEASES,
        Op::Advance { .. } => ADVANCE,
        Op::Cancel { .. } => CANCEL,
        Op::Reschedule { .. } => RESCHEDULE,
        Op::Update { .. } => UPDATE,
        Op::Redrive(_) => REDRIVE,
        Op::Purge { .. } => PURGE,
        Op::Pause { .. } => PAUSE,
        Op::Resume { .. } => RESUME,
        Op::GroupSet { .. } => GROUP_SET,
        Op::Schedule(_) => SCHEDULE,
        Op::Unschedule { .. } => UNSCHEDULE,
        Op::CatchUp { .. } => CATCH_UP,
    }
}

fn bits<const N: usize>(present: [bool; N]) -> u8 {
    let bits = present.into_iter().enumerate();
    bits.fold(0, |flags, (bit, is)| flags | u8::from(is) << bit)
}

/// The six bits that say what of an operation is written.
pub fn flags(op: &Op, receipt: Receipt, time_us: u64) -> u8 {
    match op {
        Op::Send(send) => bits([
            send.id.is_some(),
            send.group.is_some(),
            send.priority != 0,
            send.due != DueTime::Now,
            !send.choices.is_default(),
            send.replace || send.payloads.len() != 1,
        ]),
        Op::Fetch(fetch) => bits([
            fetch.consumer.is_some(),
            fetch.group.is_some(),
            !fetch.acks.is_empty(),
            fetch.no_ack,
            receipt != time_us,
            limits_of(fetch) != [Some(1), Some(1), None, None],
        ]),
        Op::Ack { result, .. } => bits([result.is_some()]),
        Op::Nack {
            kind,
            error,
            random,
            ..
        } => {
            let kind = match kind {
                NackKind::Backoff => 0,
                NackKind::Delay(_) => 1,
                NackKind::Silent => 2,
                NackKind::Fatal => 3,
            };
            bits([error.is_some(), *random != 0]) | kind << 2
        }
        Op::Redrive(which) => bits([matches!(which, Redrive::Ids(_))]),
        Op::Purge { state, group } => bits([state.is_some(), group.is_some()]),
        Op::Pause { group, ms } => bits([ms.is_some(), group.is_some()]),
        Op::Resume { group } => bits([group.is_some()]),
        Op::GroupSet { changes, .. } => bits([
            changes.weight.is_some(),
            changes.concurrency.is_some(),
            changes.rate.is_some(),
        ]),
        _ => 0,
    }
}

/// COUNT, PERGROUP, LEASE and MAXBYTES.
fn limits_of(fetch: &Fetch) -> [Option<u64>; 4] {
    [
        Some(fetch.count),
        Some(fetch.per_group),
        fetch.lease,
        fetch.max_bytes,
    ]
}

/// Appends the operation to `out`, without its kind and flags.
pub fn put(out: &mut Vec<u8>, op: &Op, receipt: Receipt, time_us: u64) {
    match op {
        Op::Tick | Op::Duplicate => {}
        Op::Alter(changes) => put_changes(out, changes),
        Op::Send(send) => put_send(out, send),
        Op::Fetch(fetch) => put_fetch(out, fetch, receipt, time_us),
        Op::Ack { receipts, result } => {
            put_receipts(out, receipts, time_us);
            out.extend_from_slice(result.as_deref().unwrap_or_default());
        }
        Op::Nack {
            receipts,
            kind,
            error,
            random,
        } => {
            put_receipts(out, receipts, time_us);
            if let NackKind::Delay(ms) = kind {
                put_number(out, *ms);
            }
            if *random != 0 {
                put_fixed(out, *random);
            }
            out.extend_from_slice(error.as_deref().unwrap_or_default());
        }
        Op::Touch { ms, receipts } => {
            put_number(out, *ms);
            put_receipts(out, receipts, time_us);
        }
        Op::EndLeases { receipts } => put_receipts(out, receipts, time_us),
        Op::Advance { to } => put_number(out, *to),
        Op::Cancel { ids } | Op::Redrive(Redrive::Ids(ids)) => put_ids(out, ids),
        Op::Reschedule { id, due } => {
            put_bytes(out, id);
            put_due(out, *due);
        }
        Op::Update { id, payload } => {
            put_bytes(out, id);
            out.extend_from_slice(payload);
        }
        Op::Redrive(Redrive::Oldest(most)) => put_number(out, *most),
        Op::Purge { state, group } => {
            if let Some(state) = state {
                let number = State::ALL.iter().position(|other| other == state);
                out.push(number.unwrap_or_default() as u8);
            }
            out.extend_from_slice(group.as_deref().unwrap_or_default());
        }
        Op::Pause { group, ms } => {
            if let Some(ms) = ms {
                put_number(out, *ms);
            }
            out.extend_from_slice(group.as_deref().unwrap_or_default());
        }
        Op::Resume { group } => out.extend_from_slice(group.as_deref().unwrap_or_default()),
        Op::GroupSet { group, changes } => {
            for n in [changes.weight, changes.concurrency].into_iter().flatten() {
                put_number(out, n);
            }
            if let Some(rate) = changes.rate {
                put_rate(out, rate);
            }
            out.extend_from_slice(group);
        }
        Op::Schedule(new) => {
            put_bytes(out, &new.name);
            put_rule(out, &new.rule, new.missed, new.overlap);
            let send = &new.send;
            put_optional_bytes(out, send.group.as_deref());
            out.push(send.priority as u8);
            put_choices(out, &send.choices);
            out.extend_from_slice(send.payloads.first().copied().unwrap_or_default());
        }
        Op::Unschedule { name } => out.extend_from_slice(name),
        Op::CatchUp { since } => put_number(out, *since),
    }
}

fn put_send(out: &mut Vec<u8>, send: &Send) {
    if let Some(id) = &send.id {
        put_bytes(out, id);
    }
    if let Some(group) = &send.group {
        put_bytes(out, group);
    }
    if send.priority != 0 {
        out.push(send.priority as u8);
    }
    if send.due != DueTime::Now {
        put_due(out, send.due);
    }
    if !send.choices.is_default() {
        put_choices(out, &send.choices);
    }
    if let [only] = send.payloads[..] {
        if send.replace {
            put_number(out, 0);
        }
        out.extend_from_slice(only);
    } else {
        put_number(out, send.payloads.len() as u64);
        for payload in &send.payloads {
            put_bytes(out, payload);
        }
    }
}

fn put_fetch(out: &mut Vec<u8>, fetch: &Fetch, receipt: Receipt, time_us: u64) {
    if let Some(consumer) = &fetch.consumer {
        put_bytes(out, consumer);
    }
    if let Some(group) = &fetch.group {
        put_bytes(out, group);
    }
    if !fetch.acks.is_empty() {
        put_receipts(out, &fetch.acks, time_us);
    }
    if receipt != time_us {
        put_delta(out, receipt, time_us);
    }
    let limits = limits_of(fetch);
    if limits != [Some(1), Some(1), None, None] {
        // None of them can be 0, which therefore stands for "not given".
        for n in limits {
            put_number(out, n.unwrap_or(0));
        }
    }
}

/// Receipts are microseconds, or little more: close to the present and to
/// each other.
fn put_receipts(out: &mut Vec<u8>, receipts: &[Receipt], time_us: u64) {
    put_number(out, receipts.len() as u64);
    let mut base = time_us;
    for receipt in receipts {
        put_delta(out, *receipt, base);
        base = *receipt;
    }
}

fn put_ids(out: &mut Vec<u8>, ids: &[Cow<[u8]>]) {
    put_number(out, ids.len() as u64);
    for id in ids {
        put_bytes(out, id);
    }
}

fn put_due(out: &mut Vec<u8>, due: DueTime) {
    let (kind, ms) = match due {
        DueTime::Now => (0, 0),
        DueTime::After(ms) => (1, ms),
        DueTime::At(ms) => (2, ms),
    };
    out.push(kind);
    put_number(out, ms);
}

/// Reads an operation of this kind, and the least receipt that it may give
/// out. What follows it is left.
pub fn read<'a>(
    reader: &mut Reader<'a>,
    kind: u8,
    flags: u8,
    time_us: u64,
) -> Result<(Op<'a>, Receipt), Invalid> {
    let has = |bit: u32| flags >> bit & 1 == 1;
    let op = match kind {
        TICK => Op::Tick,
        DUPLICATE => Op::Duplicate,
        ALTER => Op::Alter(changes(reader)?),
        SEND => Op::Send(send(reader, flags)?),
        FETCH => {
            let (fetch, receipt) = fetch(reader, flags, time_us)?;
            return Ok((Op::Fetch(fetch), receipt));
        }
        ACK => Op::Ack {
            receipts: receipts(reader, time_us)?,
            result: has(0).then(|| reader.rest().into()),
        },
        NACK => Op::Nack {
            receipts: receipts(reader, time_us)?,
            kind: match flags >> 2 & 3 {
                0 => NackKind::Backoff,
                1 => NackKind::Delay(exact(reader)?),
                2 => NackKind::Silent,
                _ => NackKind::Fatal,
            },
            random: match has(1) {
                true => reader.fixed()?,
                false => 0,
            },
            error: has(0).then(|| reader.rest().into()),
        },
        TOUCH => Op::Touch {
            ms: positive(reader)?,
            receipts: receipts(reader, time_us)?,
        },
        END_LEASES => Op::EndLeases {
            receipts: receipts(reader, time_us)?,
        },
        ADVANCE => Op::Advance { to: exact(reader)? },
        CANCEL => Op::Cancel { ids: ids(reader)? },
        RESCHEDULE => Op::Reschedule {
            id: name(reader.bytes()?)?,
            due: due(reader)?,
        },
        UPDATE => Op::Update {
            id: name(reader.bytes()?)?,
            payload: reader.rest().into(),
        },
        REDRIVE => Op::Redrive(match has(0) {
            true => Redrive::Ids(ids(reader)?),
            false => Redrive::Oldest(reader.number()?),
        }),
        PURGE => Op::Purge {
            state: match has(0) {
                true => Some(state(reader)?),
                false => None,
            },
            group: name_at_end(reader, has(1))?,
        },
        PAUSE => Op::Pause {
            ms: has(0).then(|| positive(reader)).transpose()?,
            group: name_at_end(reader, has(1))?,
        },
        RESUME => Op::Resume {
            group: name_at_end(reader, has(0))?,
        },
        GROUP_SET => Op::GroupSet {
            changes: GroupChanges {
                weight: has(0).then(|| positive(reader)).transpose()?,
                concurrency: has(1).then(|| exact(reader)).transpose()?,
                rate: has(2).then(|| rate(reader)).transpose()?,
            },
            group: name(reader.rest())?,
        },
        SCHEDULE => Op::Schedule(schedule(reader)?),
        UNSCHEDULE => {
            let name = reader.rest();
            limits::schedule_name(name)?;
            Op::Unschedule { name: name.into() }
        }
        CATCH_UP => Op::CatchUp {
            since: exact(reader)?,
        },
        _ => return Err(Invalid("an unknown kind of record")),
    };
    Ok((op, 0))
}

fn send<'a>(reader: &mut Reader<'a>, flags: u8) -> Result<Send<'a>, Invalid> {
    let has = |bit: u32| flags >> bit & 1 == 1;
    let mut send = Send::plain(&[]);
    if has(0) {
        send.id = Some(name(reader.bytes()?)?);
    }
    if has(1) {
        send.group = Some(name(reader.bytes()?)?);
    }
    if has(2) {
        send.priority = reader.byte()? as i8;
    }
    if has(3) {
        send.due = due(reader)?;
    }
    if has(4) {
        send.choices = choices(reader)?;
    }
    let count = match has(5) {
        true => reader.number()?,
        false => 1,
    };
    send.replace = count == 0;
    if count < 2 {
        send.payloads = smallvec![reader.rest()];
    } else {
        send.payloads = SmallVec::new();
        for _ in 0..count {
            send.payloads.push(reader.bytes()?);
        }
    }
    ensure(
        send.id.is_some() || !send.replace,
        "something without an id is replaced",
    )?;
    ensure(
        send.id.is_none() || send.payloads.len() == 1,
        "several messages are to have one id",
    )?;
    Ok(send)
}

fn fetch<'a>(
    reader: &mut Reader<'a>,
    flags: u8,
    time_us: u64,
) -> Result<(Fetch<'a>, Receipt), Invalid> {
    let has = |bit: u32| flags >> bit & 1 == 1;
    let mut fetch = Fetch::one();
    if has(0) {
        fetch.consumer = Some(name(reader.bytes()?)?);
    }
    if has(1) {
        fetch.group = Some(name(reader.bytes()?)?);
    }
    if has(2) {
        fetch.acks = receipts(reader, time_us)?;
    }
    fetch.no_ack = has(3);
    let receipt = match has(4) {
        true => reader.delta(time_us)?,
        false => time_us,
    };
    limits::exact(receipt)?;
    if has(5) {
        fetch.count = positive(reader)?;
        fetch.per_group = positive(reader)?;
        fetch.lease = Some(exact(reader)?).filter(|ms| *ms > 0);
        fetch.max_bytes = Some(exact(reader)?).filter(|bytes| *bytes > 0);
    }
    ensure(
        fetch.count <= limits::MAX_COUNT,
        "COUNT is not in 1 to 10000",
    )?;
    Ok((fetch, receipt))
}

fn schedule<'a>(reader: &mut Reader<'a>) -> Result<NewSchedule<'a>, Invalid> {
    let name = reader.bytes()?;
    limits::schedule_name(name)?;
    let (rule, missed, overlap) = rule(reader)?;
    let group = reader.optional_bytes()?.map(self::name).transpose()?;
    let priority = reader.byte()? as i8;
    let choices: Choices = choices(reader)?;
    Ok(NewSchedule {
        name: name.into(),
        rule,
        send: Send {
            group,
            priority,
            choices,
            ..Send::plain(reader.rest())
        },
        missed,
        overlap,
    })
}

fn exact(reader: &mut Reader) -> Result<u64, Invalid> {
    let n = reader.number()?;
    limits::exact(n).map(|()| n)
}

fn positive(reader: &mut Reader) -> Result<u64, Invalid> {
    let n = reader.number()?;
    limits::positive(n).map(|()| n)
}

fn name(name: &[u8]) -> Result<Cow<'_, [u8]>, Invalid> {
    limits::name(name).map(|()| name.into())
}

fn name_at_end<'a>(reader: &mut Reader<'a>, is: bool) -> Result<Option<Cow<'a, [u8]>>, Invalid> {
    is.then(|| name(reader.rest())).transpose()
}

fn receipts(reader: &mut Reader, time_us: u64) -> Result<Receipts, Invalid> {
    let count = reader.number()?;
    let mut receipts = Receipts::with_capacity(count.min(MOST_RESERVED as u64) as usize);
    let mut base = time_us;
    for _ in 0..count {
        base = reader.delta(base)?;
        limits::exact(base)?;
        receipts.push(base);
    }
    Ok(receipts)
}

fn ids<'a>(reader: &mut Reader<'a>) -> Result<Vec<Cow<'a, [u8]>>, Invalid> {
    let count = reader.number()?;
    let mut ids = Vec::with_capacity(count.min(MOST_RESERVED as u64) as usize);
    for _ in 0..count {
        ids.push(name(reader.bytes()?)?);
    }
    Ok(ids)
}

fn due(reader: &mut Reader) -> Result<DueTime, Invalid> {
    Ok(match (reader.byte()?, exact(reader)?) {
        (0, 0) => DueTime::Now,
        (1, ms) => DueTime::After(ms),
        (2, ms) => DueTime::At(ms),
        _ => return Err(Invalid("an unknown kind of due time")),
    })
}

fn state(reader: &mut Reader) -> Result<State, Invalid> {
    let number = usize::from(reader.byte()?);
    State::ALL
        .get(number)
        .copied()
        .ok_or(Invalid("an unknown state"))
}
