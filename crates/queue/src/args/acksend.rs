//! Reads the arguments of ACKSEND.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::apply::ApplyOptions;
use super::message_options::{MessageOptions, Scope};
use super::option::once;
use super::{Parsed, Words};
use crate::effect::Apply;
use crate::op::{Send, Signal};
use crate::Receipt;

/// The most messages and signals of one ACKSEND.
pub const MOST_SENDS: usize = 128;

/// The arguments of ACKSEND.
#[derive(Debug, Clone, PartialEq)]
pub struct AckSendRequest<'a> {
    /// The receipt of the delivery to finish.
    pub receipt: Receipt,
    /// The result text to keep with the finished message.
    pub result: Option<Cow<'a, [u8]>>,
    /// The effects that go with the acknowledgement.
    pub apply: Option<Box<Apply<'a>>>,
    /// The messages to send, in order; 1 to [`MOST_SENDS`].
    pub next: Vec<Next<'a>>,
}

/// One message or signal that an ACKSEND sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Next<'a> {
    /// The index of the key of its queue among the words.
    pub key: usize,
    /// The message or group push to send.
    pub what: What<'a>,
}

/// A part of an ACKSEND that is sent to a queue.
#[derive(Debug, Clone, PartialEq)]
pub enum What<'a> {
    /// A message.
    Send(Send<'a>),
    /// A signal to a message.
    Signal(Signal<'a>),
}

/// Reads the arguments of ACKSEND: `receipt [RESULT text] [APPLY n effect ... [IF m condition ...]] NEXT dest payload
/// [options] | SIGNAL dest id text [NEXT ... | SIGNAL ...]`. Each payload is at most `max` bytes long.
pub fn ack_send<'a>(mut words: Words<'a>, max: u64) -> Parsed<AckSendRequest<'a>> {
    let receipt = words.receipt()?;
    let mut result = None;
    let mut next = Vec::new();
    let mut apply = ApplyOptions::default();
    // The message whose options are being read.
    let mut open: Option<(usize, &[u8], MessageOptions<'a>)> = None;
    while let Some(option) = words.option() {
        match (option.name(), &mut open) {
            (what @ "RESULT", _) => once(&mut result, what, words.bytes(what)?.into())?,
            (what @ ("NEXT" | "SIGNAL"), open) => {
                next.extend(close(open.take())?);
                if next.len() == MOST_SENDS {
                    let most = format!("ERR {what} may be given {MOST_SENDS} times at most");
                    return Err(most.into());
                }
                let key = words.skip(1);
                if key.is_empty() {
                    words.bytes(what)?;
                }
                if what == "SIGNAL" {
                    let id = words.name(what)?.into();
                    let text = words.note(what)?.into();
                    next.push(Next {
                        key: key.start,
                        what: What::Signal(Signal { id, text }),
                    });
                    continue;
                }
                let payload = words.payload(max)?;
                let options = MessageOptions::new(Scope::SEND);
                *open = Some((key.start, payload, options));
            }
            (what @ ("APPLY" | "IF"), None) => apply.read(what, &mut words)?,
            (_, Some((_, _, options))) => options.read(&option, &mut words)?,
            (_, None) => return Err(option.unknown()),
        }
    }
    next.extend(close(open)?);
    if next.is_empty() {
        return Err("ERR NEXT or SIGNAL is missing".into());
    }
    Ok(AckSendRequest {
        receipt,
        result,
        apply: apply.finish(1)?,
        next,
    })
}

/// Ends the options of a message.
fn close<'a>(open: Option<(usize, &'a [u8], MessageOptions<'a>)>) -> Parsed<Option<Next<'a>>> {
    let Some((key, payload, options)) = open else {
        return Ok(None);
    };
    let send = options.send(SmallVec::from_buf([payload]))?;
    Ok(Some(Next {
        key,
        what: What::Send(send),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};
    use crate::op::DueTime;

    fn failed(text: &str) -> String {
        error(words(text, |w| ack_send(w, 10).map(|_| ())))
    }

    #[test]
    fn each_next_has_its_own_options() {
        let text = "7 next NEXT NEXT id RESULT DELAY 5 Result NEXT NEXT k p";
        words(text, |w| {
            let request = ack_send(w, 10).unwrap();
            assert_eq!(request.receipt, 7);
            assert_eq!(request.result.as_deref(), Some(&b"NEXT"[..]));
            let [first, second] = &request.next[..] else {
                panic!("{request:?}");
            };
            let expected = Send {
                id: Some(b"RESULT"[..].into()),
                due: DueTime::After(5),
                ..Send::plain(b"NEXT")
            };
            let expected = What::Send(expected);
            assert_eq!((first.key, &first.what), (2, &expected));
            let plain = What::Send(Send::plain(b"p"));
            assert_eq!((second.key, &second.what), (11, &plain));
        });
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (text, expected) in [
            ("x NEXT k p", "receipt must be an integer, not 'x'"),
            ("7", "NEXT or SIGNAL is missing"),
            ("7 RESULT r", "NEXT or SIGNAL is missing"),
            ("7 RESULT", "RESULT needs a value"),
            ("7 RESULT a RESULT b NEXT k p", "RESULT is given twice"),
            ("7 ID a NEXT k p", "unknown option 'ID'"),
            ("7 NEXT", "NEXT needs a value"),
            ("7 NEXT k", "payload needs a value"),
            ("7 NEXT k p NEXT k", "payload needs a value"),
            ("7 NEXT k p COUNT 5", "unknown option 'COUNT'"),
            ("7 NEXT k p ID a ID b", "ID is given twice"),
            ("7 NEXT k p SCORE 5 NEXT k p GROUP g", "SCORE needs GROUP"),
            ("7 NEXT k p REPLACE", "REPLACE needs an id"),
            (
                "7 NEXT k 01234567890",
                "payload must be at most 10 bytes long (dq.max-payload), not 11",
            ),
        ] {
            assert_eq!(failed(text), format!("ERR {expected}"), "{text}");
        }
        let many = |n: usize| format!("7{}", " NEXT k p".repeat(n));
        assert_eq!(
            failed(&many(129)),
            "ERR NEXT may be given 128 times at most"
        );
        let count = words(&many(128), |w| ack_send(w, 10).map(|r| r.next.len()));
        assert_eq!(count, Ok(128));
    }
}
