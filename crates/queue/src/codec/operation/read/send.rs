//! Reads the operations that send messages: SEND, ACKSEND and SCHEDULE.

use crate::codec::bounds::EXACT;
use smallvec::{smallvec, SmallVec};

use super::values::{name, note, positive};
use crate::codec::options::{due, rule, send_options, OfSend};
use crate::codec::wire::Reader;
use crate::limits::{self, ensure, Invalid};
use crate::op::{AckSend, NewSchedule, Send, Signal};
use crate::schedule::Limits;
use crate::sums::Count;

/// Reads a SEND.
pub fn send<'a>(reader: &mut Reader<'a>, flags: u8) -> Result<Send<'a>, Invalid> {
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
        let (choices, of_send) = send_options(reader)?;
        send.choices = choices;
        send.if_group = of_send.if_group;
        send.rerun = of_send.rerun;
        send.dedup = of_send.dedup;
    }
    let mut count = match has(5) {
        true => reader.number(&EXACT)?,
        false => 1,
    };
    if has(5) && count == 1 {
        ensure(
            send.id.is_none(),
            "a SEND with an id must have no salt, which is for generated ids",
        )?;
        send.new_salt = Some(reader.fixed()?);
        count = reader.number(&EXACT)?;
        ensure(count > 0, "REPLACE needs an id")?;
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
    ensure(send.id.is_some() || !send.replace, "REPLACE needs an id")?;
    ensure(
        send.replace || send.choices.max_wait().is_none(),
        "MAXWAIT needs REPLACE",
    )?;
    ensure(send.replace || !send.rerun, "RERUN needs REPLACE")?;
    ensure(
        send.group.is_some() || !send.if_group,
        "IFGROUP needs a group",
    )?;
    ensure(
        send.id.is_none() && send.dedup.is_none() || send.payloads.len() == 1,
        "a SEND with an id must have one message",
    )?;
    Ok(send)
}

/// Reads an ACKSEND.
pub fn ack_send<'a>(
    reader: &mut Reader<'a>,
    flags: u8,
    time_us: u64,
) -> Result<AckSend<'a>, Invalid> {
    let receipt = match flags & 1 {
        0 => None,
        _ => Some(reader.delta(time_us, &EXACT)?),
    };
    let result = match flags & 2 {
        0 => None,
        _ => Some(reader.bytes()?.into()),
    };
    ensure(
        receipt.is_some() || result.is_none(),
        "the result of an ACKSEND needs a receipt",
    )?;
    let count = match flags & 4 {
        0 => 0,
        _ => positive(reader)?,
    };
    let mut signals = Vec::new();
    for _ in 0..count {
        signals.push(Signal {
            id: name(reader.bytes()?)?,
            text: note(reader.bytes()?)?,
        });
    }
    let mut sends = Vec::new();
    while !reader.is_at_end() {
        let mut body = Reader::new(reader.bytes()?);
        let flags = body.byte()?;
        let send = send(&mut body, flags)?;
        body.end()?;
        ensure(
            send.payloads.len() == 1,
            "each NEXT of an ACKSEND must be one message",
        )?;
        sends.push(send);
    }
    Ok(AckSend {
        receipt,
        result,
        sends,
        signals,
    })
}

/// Reads a SCHEDULE.
pub fn schedule<'a>(reader: &mut Reader<'a>) -> Result<NewSchedule<'a>, Invalid> {
    let name = reader.bytes()?;
    limits::schedule_name(name)?;
    let (rule, manner) = rule(reader)?;
    ensure(
        manner.extras.paused.is_none() && manner.extras.skipped == Count::default(),
        "a new schedule must not be paused",
    )?;
    let limits = manner.extras.limits;
    let group = reader.optional_bytes()?.map(self::name).transpose()?;
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
        missed: manner.missed,
        overlap: manner.overlap,
        limits: (limits != Limits::default()).then(|| Box::new(limits)),
    })
}
