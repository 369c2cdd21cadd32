//! Reads the arguments of FETCH and MFETCH.

use std::borrow::Cow;
use std::ops::Range;

use super::apply::ApplyOptions;
use super::integer::integer;
use super::option::{exclude, flag, once, unless_twice};
use super::words::{check_name, COUNT, MS, SOME, SOME_MS};
use super::{ArgError, Parsed, Words};
use crate::effect::Apply;
use crate::limits::{MAX_COUNT, MAX_TOKEN, MAX_TOKEN_COUNT};
use crate::op::{Fetch, Receipts};
use crate::Millis;

/// The arguments of FETCH.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchRequest<'a> {
    /// The messages to deliver, and the terms of the deliveries.
    pub fetch: Fetch<'a>,
    /// How long to wait for a message, in ms. 0 waits without a limit, and
    /// `None` does not wait.
    pub block: Option<Millis>,
    /// How long after the connection has closed the leases end, in ms; `None` if
    /// they are not bound to it.
    pub bind: Option<Millis>,
    /// Whether the reply holds more fields of each message.
    pub with_meta: bool,
    /// The effects that go with its one acknowledgement.
    pub apply: Option<Box<Apply<'a>>>,
}

impl FetchRequest<'_> {
    /// A FETCH without options: one message, without waiting.
    fn plain() -> FetchRequest<'static> {
        FetchRequest {
            fetch: Fetch::one(),
            block: None,
            bind: None,
            with_meta: false,
            apply: None,
        }
    }
}

/// The arguments of MFETCH.
#[derive(Debug, Clone, PartialEq)]
pub struct MultiFetch<'a> {
    /// The indices of the keys among the arguments; at least one.
    pub keys: Range<usize>,
    /// The request to the first of the queues that has a message to deliver.
    pub request: FetchRequest<'a>,
}

/// Reads the arguments of FETCH: `[options]`
pub fn fetch(words: Words<'_>) -> Parsed<FetchRequest<'_>> {
    if words.left() == 0 {
        // Many clients fetch without options. Then there are no options to read or to check.
        return Ok(FetchRequest::plain());
    }
    read_options(words, true)
}

/// Reads the arguments of MFETCH: `numkeys key [key ...] [options]`. ACK and
/// GROUP are not among the options.
pub fn multi(mut words: Words<'_>) -> Parsed<MultiFetch<'_>> {
    let count = words.count("numkeys", 1)?;
    let keys = words.skip(count);
    let request = read_options(words, false)?;
    Ok(MultiFetch { keys, request })
}

/// Reads the options. ACK and GROUP make sense for a single queue only, so they
/// are options only if `one_queue` is set.
pub(super) fn read_options(mut words: Words<'_>, one_queue: bool) -> Parsed<FetchRequest<'_>> {
    let mut request = FetchRequest::plain();
    let FetchRequest {
        fetch,
        block,
        bind,
        with_meta,
        apply,
    } = &mut request;
    let mut applies = ApplyOptions::default();
    let (mut count, mut per_group) = (None, None);
    let (mut is_bound, mut grace) = (false, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            what @ "BLOCK" => once(block, what, words.number(what, MS)?)?,
            what @ "LEASE" => once(&mut fetch.lease, what, words.number(what, SOME_MS)?)?,
            what @ "CONSUMER" => once(&mut fetch.consumer, what, words.name(what)?.into())?,
            what @ "PERGROUP" => once(&mut per_group, what, words.number(what, SOME)?)?,
            what @ "MAXBYTES" => once(&mut fetch.max_bytes, what, words.number(what, SOME)?)?,
            what @ "TOKEN" => once(&mut fetch.token, what, read_token(&mut words, what)?.into())?,
            what @ "BIND" => flag(&mut is_bound, what)?,
            what @ "GRACE" => once(&mut grace, what, words.number(what, MS)?)?,
            what @ "NOACK" => flag(&mut fetch.no_ack, what)?,
            what @ "WITHMETA" => flag(with_meta, what)?,
            what @ "GROUP" if one_queue => once(&mut fetch.group, what, words.name(what)?.into())?,
            what @ "ACK" if one_queue => read_acks(&mut words, what, &mut fetch.acks)?,
            what @ "RESULTS" if one_queue => read_results(&mut words, what, &mut fetch.results)?,
            what @ ("APPLY" | "IF") if one_queue => applies.read(what, &mut words)?,
            _ => return Err(option.unknown()),
        }
    }
    check_results(fetch)?;
    *apply = applies.finish(fetch.acks.len())?;
    exclude(("NOACK", fetch.no_ack), ("BIND", is_bound))?;
    exclude(("NOACK", fetch.no_ack), ("LEASE", fetch.lease.is_some()))?;
    exclude(("NOACK", fetch.no_ack), ("TOKEN", fetch.token.is_some()))?;
    if fetch.token.is_some() && fetch.consumer.is_none() {
        return Err("ERR TOKEN needs CONSUMER".into());
    }
    if grace.is_some() && !is_bound {
        return Err("ERR GRACE needs BIND".into());
    }
    fetch.count = count.unwrap_or(fetch.count);
    if fetch.token.is_some() && fetch.count > MAX_TOKEN_COUNT {
        return Err(format!("ERR COUNT is at most {MAX_TOKEN_COUNT} with TOKEN").into());
    }
    exclude(
        ("GROUP", fetch.group.is_some()),
        ("PERGROUP", per_group.is_some()),
    )?;
    fetch.per_group = per_group.unwrap_or(fetch.per_group);
    *bind = is_bound.then_some(grace.unwrap_or(0));
    Ok(request)
}

fn read_token<'a>(words: &mut Words<'a>, what: &str) -> Parsed<&'a [u8]> {
    let token = words.bytes(what)?;
    check_name(what, token, MAX_TOKEN)?;
    Ok(token)
}

/// Reads `n receipt ...`, of which there is at least one, into an empty list.
fn read_acks(words: &mut Words<'_>, what: &str, acks: &mut Receipts) -> Parsed<()> {
    let first = words.peek();
    let count = words
        .count(what, 1)
        .map_err(|error| first.and_then(receipt_for_count).unwrap_or(error))?;
    let is_first = acks.is_empty();
    acks.reserve(count);
    for _ in 0..count {
        acks.push(words.receipt()?);
    }
    unless_twice(is_first, what)
}

/// The error for a receipt where ACK expects the number of receipts: `DQ.ACK` takes none. Returns
/// `None` for a word that may have been meant as a number of receipts.
#[cold]
fn receipt_for_count(word: &[u8]) -> Option<ArgError> {
    let receipt = integer(word).filter(|number| *number > MAX_COUNT as i64)?;
    let text = format!(
        "ERR ACK must be followed by the number of receipts, not {receipt}; for one receipt it is \
         ACK 1 {receipt}"
    );
    Some(text.into())
}

/// Reads the texts of RESULTS, of which there is at least one, into an empty list.
fn read_results<'a>(
    words: &mut Words<'a>,
    what: &str,
    results: &mut Vec<Cow<'a, [u8]>>,
) -> Parsed<()> {
    let count = words.count(what, 1)?;
    let is_first = results.is_empty();
    results.reserve(count);
    for _ in 0..count {
        results.push(words.bytes(what)?.into());
    }
    unless_twice(is_first, what)
}

/// Checks that there is a result for each receipt, if there are any.
fn check_results(fetch: &Fetch<'_>) -> Parsed<()> {
    match (fetch.acks.len(), fetch.results.len()) {
        (_, 0) => Ok(()),
        (0, _) => Err("ERR RESULTS needs ACK".into()),
        (acks, results) if acks == results => Ok(()),
        (acks, results) => Err(format!(
            "ERR RESULTS must have as many texts as ACK has receipts, {acks}, not {results}"
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::words;

    #[test]
    fn every_option_is_read_in_any_case_and_order() {
        let text = "withMeta bind ACK 2 7 -8 MAXBYTES 4 GROUP COUNT consumer w1 LEASE 5 \
            BLOCK 0 results 2 ACK x COUNT 10000";
        let expected = FetchRequest {
            fetch: Fetch {
                count: 10_000,
                lease: Some(5),
                consumer: Some(b"w1"[..].into()),
                group: Some(b"COUNT"[..].into()),
                per_group: 1,
                max_bytes: Some(4),
                acks: Receipts::from_slice(&[7, 0]),
                results: vec![b"ACK"[..].into(), b"x"[..].into()],
                no_ack: false,
                token: None,
            },
            block: Some(0),
            bind: Some(0),
            with_meta: true,
            apply: None,
        };
        words(text, |w| assert_eq!(fetch(w), Ok(expected)));
        words("GRACE 7 TOKEN TOKEN BIND CONSUMER c", |w| {
            let request = fetch(w).unwrap();
            assert_eq!(request.bind, Some(7));
            assert_eq!(request.fetch.token.as_deref(), Some(&b"TOKEN"[..]));
        });
        words("NOACK PERGROUP 3", |w| {
            let request = fetch(w).unwrap();
            assert!(request.fetch.no_ack);
            assert_eq!(request.fetch.per_group, 3);
        });
    }
}
