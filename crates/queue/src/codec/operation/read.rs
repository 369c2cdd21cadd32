//! Reads an operation, and refuses one that no command can have made.

use std::borrow::Cow;

use smallvec::{smallvec, SmallVec};

use super::{
    more, more_of_nack, ACK, ACK_SEND, ADVANCE, ALTER, CANCEL, CATCH_UP, DUPLICATE, END_LEASES,
    FETCH, FETCH_MORE, FIND_DO, GRACE, GROUP_SET, HOLDS, MESSAGES, NACK, PAUSE, PURGE, PURGE_SOME,
    REDRIVE, REMOVE, RESCHEDULE, RESUME, SCHEDULE, SEND, TAKEN_IDS, TICK, TOUCH, UNSCHEDULE,
    UPDATE,
};
use crate::codec::options::{changes, rate, rule, send_options};
use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::limits::{self, ensure, Invalid};
use crate::message::state::State;
use crate::op::{
    AckSend, DueTime, Fetch, FindAct, GroupChanges, NackKind, NackPause, NewSchedule, Paused,
    Piecemeal, Receipts, Redrive, Removal, Send,
};
use crate::{Op, Receipt, Seq};

/// Reads an operation of this kind, and the lowest receipt that it may give
/// out, which is 0 if it gives out none. `time_us` is the time of the log
/// entry. Bytes after the operation are left unread.
///
/// Errors: an unknown kind, a value out of range, or input that ends too early.
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
            return Ok((Op::fetch(fetch), receipt));
        }
        FETCH_MORE => {
            let (fetch, receipt) = fetch_with_more(reader, flags, time_us)?;
            return Ok((Op::fetch(fetch), receipt));
        }
        ACK if has(1) => {
            let receipts = receipts(reader, time_us)?;
            let results = texts(reader, receipts.len())?;
            Op::AckEach { receipts, results }
        }
        ACK => Op::Ack {
            receipts: receipts(reader, time_us)?,
            result: has(0).then(|| reader.rest().into()),
        },
        ACK_SEND => Op::AckSend(ack_send(reader, flags, time_us)?),
        NACK => nack(reader, flags, time_us)?,
        TOUCH => Op::Touch {
            ms: positive(reader)?,
            receipts: receipts(reader, time_us)?,
            note: match has(0) {
                true => Some(note(reader.rest())?),
                false => None,
            },
        },
        END_LEASES => Op::EndLeases {
            receipts: receipts(reader, time_us)?,
        },
        GRACE => Op::Grace {
            ms: positive(reader)?,
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
        PURGE_SOME => Op::PurgeSome {
            most: positive(reader)?,
            of: match name_at_end(reader, has(0))? {
                Some(group) => Piecemeal::Leased(group),
                None => Piecemeal::Dead,
            },
        },
        FIND_DO => Op::FindDo {
            act: match flags {
                0 => FindAct::Redrive,
                1 => FindAct::Cancel,
                2 => FindAct::Purge,
                _ => return Err(Invalid("found messages are changed in an unknown way")),
            },
            seqs: seqs(reader)?,
        },
        REMOVE => Op::Remove(match flags {
            MESSAGES => Removal::Messages(runs(reader)?),
            HOLDS => Removal::Holds(ids(reader)?),
            TAKEN_IDS => Removal::TakenIds,
            _ => return Err(Invalid("an unknown part of a purge")),
        }),
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
        (send.choices, send.if_group) = send_options(reader)?;
    }
    let mut count = match has(5) {
        true => reader.number()?,
        false => 1,
    };
    if has(5) && count == 1 {
        ensure(send.id.is_none(), "a given id needs no salt")?;
        send.new_salt = Some(reader.fixed()?);
        count = reader.number()?;
        ensure(count > 0, "what is replaced has an id")?;
    }
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
        send.replace || send.choices.max_wait().is_none(),
        "a MAXWAIT without REPLACE",
    )?;
    ensure(
        send.group.is_some() || !send.if_group,
        "an IFGROUP without a group",
    )?;
    ensure(
        send.id.is_none() || send.payloads.len() == 1,
        "several messages are to have one id",
    )?;
    Ok(send)
}

fn ack_send<'a>(reader: &mut Reader<'a>, flags: u8, time_us: u64) -> Result<AckSend<'a>, Invalid> {
    let receipt = match flags & 1 {
        0 => None,
        _ => Some(reader.delta(time_us)?),
    };
    limits::exact(receipt.unwrap_or(0))?;
    let result = match flags & 2 {
        0 => None,
        _ => Some(reader.bytes()?.into()),
    };
    ensure(
        receipt.is_some() || result.is_none(),
        "a result without a receipt",
    )?;
    let mut sends = Vec::new();
    while !reader.is_at_end() {
        let mut body = Reader::new(reader.bytes()?);
        let flags = body.byte()?;
        let send = send(&mut body, flags)?;
        body.end()?;
        ensure(send.payloads.len() == 1, "a follow-up is one message")?;
        sends.push(send);
    }
    Ok(AckSend {
        receipt,
        result,
        sends,
    })
}

fn fetch_with_more<'a>(
    reader: &mut Reader<'a>,
    flags: u8,
    time_us: u64,
) -> Result<(Fetch<'a>, Receipt), Invalid> {
    let parts = reader.byte()?;
    ensure(
        parts != 0 && parts & !more::ALL == 0,
        "an unknown part of a fetch",
    )?;
    let token = match parts & more::TOKEN {
        0 => None,
        _ => Some(reader.bytes()?),
    };
    let (mut fetch, receipt) = fetch(reader, flags, time_us)?;
    if let Some(token) = token {
        limits::token(token)?;
        fetch.token = Some(token.into());
        ensure(
            fetch.consumer.is_some() && !fetch.no_ack && fetch.count <= limits::MAX_TOKEN_COUNT,
            "a token that is not possible",
        )?;
    }
    if parts & more::RESULTS != 0 {
        ensure(!fetch.acks.is_empty(), "results without acks")?;
        fetch.results = texts(reader, fetch.acks.len())?;
    }
    Ok((fetch, receipt))
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

fn nack<'a>(reader: &mut Reader<'a>, flags: u8, time_us: u64) -> Result<Op<'a>, Invalid> {
    let has = |bit: u32| flags >> bit & 1 == 1;
    let receipts = receipts(reader, time_us)?;
    let more = match has(4) {
        true => reader.byte()?,
        false => 0,
    };
    ensure(
        more & !more_of_nack::ALL == 0 && has(4) == (more != 0),
        "an unknown part of a nack",
    )?;
    let paused = match more & (more_of_nack::PAUSE_GROUP | more_of_nack::PAUSE_QUEUE) {
        0 => None,
        more_of_nack::PAUSE_GROUP => Some(Paused::Group),
        more_of_nack::PAUSE_QUEUE => Some(Paused::Queue),
        _ => return Err(Invalid("a nack pauses two things")),
    };
    let pause = match paused {
        Some(of) => Some(NackPause {
            of,
            ms: positive(reader)?,
        }),
        None => None,
    };
    let is_snooze = more & more_of_nack::SNOOZE != 0;
    let kind = match flags >> 2 & 3 {
        2 if is_snooze => NackKind::Snooze(positive(reader)?),
        _ if is_snooze => return Err(Invalid("a snooze that is not silent")),
        0 => NackKind::Backoff,
        1 => NackKind::Delay(exact(reader)?),
        2 => NackKind::Silent,
        _ => NackKind::Fatal,
    };
    Ok(Op::Nack {
        receipts,
        kind,
        random: match has(1) {
            true => reader.fixed()?,
            false => 0,
        },
        note: match has(5) {
            true => Some(note(reader.bytes()?)?),
            false => None,
        },
        error: has(0).then(|| reader.rest().into()),
        pause,
    })
}

fn note(note: &[u8]) -> Result<Cow<'_, [u8]>, Invalid> {
    limits::note(note).map(|()| note.into())
}

/// Reads this many texts.
fn texts<'a>(reader: &mut Reader<'a>, count: usize) -> Result<Vec<Cow<'a, [u8]>>, Invalid> {
    let mut texts = Vec::with_capacity(count.min(MOST_RESERVED));
    for _ in 0..count {
        texts.push(reader.bytes()?.into());
    }
    Ok(texts)
}

fn schedule<'a>(reader: &mut Reader<'a>) -> Result<NewSchedule<'a>, Invalid> {
    let name = reader.bytes()?;
    limits::schedule_name(name)?;
    let (rule, missed, overlap) = rule(reader)?;
    let group = reader.optional_bytes()?.map(self::name).transpose()?;
    let priority = reader.byte()? as i8;
    let (choices, if_group) = send_options(reader)?;
    limits::template(&choices, group.is_some(), if_group)?;
    Ok(NewSchedule {
        name: name.into(),
        rule,
        send: Send {
            group,
            priority,
            choices,
            if_group,
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

fn seqs(reader: &mut Reader) -> Result<Vec<Seq>, Invalid> {
    let count = reader.number()?;
    ensure(count <= limits::MAX_COUNT, "more than a search can find")?;
    let mut seqs = Vec::with_capacity(count.min(MOST_RESERVED as u64) as usize);
    let mut base = 0;
    for _ in 0..count {
        base = reader.delta(base)?;
        limits::exact(base)?;
        seqs.push(base);
    }
    Ok(seqs)
}

fn runs(reader: &mut Reader) -> Result<Vec<Seq>, Invalid> {
    let mut seqs = Vec::new();
    let mut end: Seq = 0;
    for _ in 0..reader.number()? {
        let (distance, more) = (reader.number()?, reader.number()?);
        ensure(
            distance > 0 && more < limits::MAX_COUNT,
            "messages are out of order",
        )?;
        let first = end.saturating_add(distance);
        limits::exact(first)?;
        end = first + more;
        seqs.extend(first..=end);
        ensure(
            seqs.len() as u64 <= limits::MAX_COUNT,
            "too many messages are removed at once",
        )?;
    }
    Ok(seqs)
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
