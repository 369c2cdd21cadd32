//! Reads a FETCH.

use super::values::{exact, name, positive, receipts, texts};
use crate::codec::bounds::EXACT;
use crate::codec::operation::more;
use crate::codec::wire::Reader;
use crate::limits::{self, ensure, Invalid};
use crate::op::Fetch;
use crate::Receipt;

/// Reads a FETCH with parts that have no flag of their own.
pub fn fetch_with_more<'a>(
    reader: &mut Reader<'a>,
    flags: u8,
    time_us: u64,
) -> Result<(Fetch<'a>, Receipt), Invalid> {
    let parts = reader.byte()?;
    ensure(
        parts != 0 && parts & !more::ALL == 0,
        "a FETCH has an unknown part, or says falsely that it has parts",
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
            "TOKEN needs CONSUMER, no NOACK and a COUNT of at most 1000",
        )?;
    }
    if parts & more::RESULTS != 0 {
        ensure(!fetch.acks.is_empty(), "RESULTS needs ACK")?;
        fetch.results = texts(reader, fetch.acks.len())?;
    }
    Ok((fetch, receipt))
}

/// Reads a FETCH, and the lowest receipt that it may give out.
pub fn fetch<'a>(
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
        true => reader.delta(time_us, &EXACT)?,
        false => limits::exact(time_us).map(|()| time_us)?,
    };
    if has(5) {
        fetch.count = positive(reader)?;
        fetch.per_group = positive(reader)?;
        fetch.lease = Some(exact(reader)?).filter(|ms| *ms > 0);
        fetch.max_bytes = Some(exact(reader)?).filter(|bytes| *bytes > 0);
    }
    ensure(fetch.count <= limits::MAX_COUNT, "COUNT must be 1 to 10000")?;
    Ok((fetch, receipt))
}
