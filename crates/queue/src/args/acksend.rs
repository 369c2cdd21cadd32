//! Reads the arguments of ACKSEND.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::apply::ApplyOptions;
use super::message_options::MessageOptions;
use super::option::once;
use super::scope::Scope;
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
