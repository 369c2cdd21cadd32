//! Reads the arguments of SEND and MSEND.

use smallvec::SmallVec;

use super::message_options::MessageOptions;
use super::scope::Scope;
use super::{Parsed, Words};
use crate::op::Send;

/// Reads the arguments of SEND: `payload [options]`. The payload is at most
/// `max` bytes long.
pub fn send<'a>(mut words: Words<'a>, max: u64) -> Parsed<Send<'a>> {
    let payload = words.payload(max)?;
    if words.left() == 0 {
        return Ok(Send::plain(payload));
    }
    read_options(words, Scope::SEND, SmallVec::from_buf([payload]))
}

/// Reads the arguments of MSEND: `n payload [payload ...] [options]`. Each
/// payload is at most `max` bytes long.
pub fn multi<'a>(mut words: Words<'a>, max: u64) -> Parsed<Send<'a>> {
    let count = words.count("numpayloads", 1)?;
    let mut payloads = SmallVec::with_capacity(count);
    for _ in 0..count {
        payloads.push(words.payload(max)?);
    }
    read_options(words, Scope::MSEND, payloads)
}

fn read_options<'a>(
    mut words: Words<'a>,
    scope: Scope,
    payloads: SmallVec<[&'a [u8]; 1]>,
) -> Parsed<Send<'a>> {
    let mut options = MessageOptions::new(scope);
    while let Some(option) = words.option() {
        options.read(&option, &mut words)?;
    }
    options.send(payloads)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::args::testing::words;
    use crate::message::Choices;
    use crate::op::DueTime;
    use crate::settings::Backoff;

    /// The operation as text, since the operation itself borrows from the
    /// words.
    fn sent(text: &str) -> Parsed<String> {
        words(text, |w| send(w, 10).map(|sent| format!("{sent:?}")))
    }

    #[test]
    fn every_option_is_read_in_any_case_and_order() {
        let text = "DELAY headers 3 a 1 \u{e9} DELAY a 2 TYPE TYPE ttl 0 BACKOFF linear 7 \
            RETRIES -1 LEASE 9 PRIORITY -128 SCORE -0 GROUP g AT 77 replace ID ID";
        let expected = Send {
            payloads: SmallVec::from_buf([b"DELAY"]),
            id: Some(b"ID"[..].into()),
            replace: true,
            rerun: false,
            due: DueTime::At(77),
            group: Some(b"g"[..].into()),
            priority: -128,
            choices: Choices {
                score: crate::message::score::Score::of_double(0.0),
                lease: NonZeroU64::new(9),
                retries: Some(-1),
                backoff: Some(Backoff::Linear(7)),
                ttl: Some(0),
                label: Some(b"TYPE"[..].into()),
                headers: [("a", "2"), ("\u{e9}", "DELAY")]
                    .map(|(field, value)| (field.as_bytes().into(), value.as_bytes().into()))
                    .into(),
                ..Choices::default()
            },
            if_group: false,
            dedup: None,
            new_salt: None,
        };
        assert_eq!(sent(text), Ok(format!("{expected:?}")));
        assert!(sent("p DELAY 5").is_ok_and(|sent| sent.contains("due: After(5)")));
    }

    #[test]
    fn many_headers_are_read_in_linear_time() {
        let fields: Vec<String> = (0..50_000).map(|n| format!("f{n} v")).collect();
        let text = format!("p HEADERS 50000 {}", fields.join(" "));
        let count = words(&text, |w| {
            send(w, 10).map(|sent| sent.choices.headers.len())
        });
        assert_eq!(count, Ok(50_000));
    }
}
