//! The log entry of an effect: a change of a key that holds no queue, in one command with the
//! acknowledgement that it belongs to.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 7 in the upper three bits, which no operation has; 1 in the lower ones if the key did not exist |
//! | ... | the number of words, and each word behind its length |

use std::borrow::Cow;

use super::bounds::{EFFECTS, EXACT};
use super::wire::{put_bytes, put_number, put_signed, Reader, MOST_RESERVED};
use crate::effect::{Outcome, Repeat};
use crate::limits::{ensure, Invalid};

const FORM: u8 = 7 << 5;
const IS_NEW: u8 = 1;
const NOTHING: u8 = 0;
const DONE: u8 = 1;
const INTEGER: u8 = 2;
const TEXT: u8 = 3;
const SCORE: u8 = 4;

/// Appends the log entry of an effect to `out`.
pub fn encode(effect: &Repeat<'_>, out: &mut Vec<u8>) {
    out.push(FORM | (u8::from(effect.is_new) * IS_NEW));
    put_number(out, effect.words.len() as u64);
    for word in &effect.words {
        put_bytes(out, word);
    }
}

/// Reads a log entry that is an effect; `None` if it is another.
///
/// Errors: input that ends too early, or words that are none of an effect. So a log entry cannot
/// run any other command.
pub fn decode(bytes: &[u8]) -> Result<Option<Repeat<'_>>, Invalid> {
    let mut reader = Reader::new(bytes);
    let tag = reader.byte()?;
    if tag & FORM != FORM {
        return Ok(None);
    }
    ensure(
        tag & !FORM <= IS_NEW,
        "it was written by a newer version of the module",
    )?;
    let count = reader.number(&EXACT)?;
    let mut words = Vec::with_capacity(count.min(MOST_RESERVED as u64) as usize);
    for _ in 0..count {
        let len = reader.number(&EXACT)?;
        words.push(Cow::Borrowed(reader.take(len)?));
    }
    reader.end()?;
    let effect = Repeat {
        is_new: tag & IS_NEW != 0,
        words,
    };
    ensure(effect.is_known(), "its words are not those of an effect")?;
    Ok(Some(effect))
}

/// The bytes of what plain commands have replied: the number of replies, and for each a byte for
/// its kind and its value.
pub fn encode_outcomes(outcomes: &[Option<Outcome>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, outcomes.len() as u64);
    for outcome in outcomes {
        match outcome {
            None => out.push(NOTHING),
            Some(Outcome::Done) => out.push(DONE),
            Some(Outcome::Integer(number)) => {
                out.push(INTEGER);
                put_signed(&mut out, *number);
            }
            Some(Outcome::Text(text)) => {
                out.push(TEXT);
                put_bytes(&mut out, text);
            }
            Some(Outcome::Score(text)) => {
                out.push(SCORE);
                put_bytes(&mut out, text);
            }
        }
    }
    out
}

/// Reads what [`encode_outcomes`] has written.
///
/// Errors: input that ends too early or is too long, more replies than a call can have, or an
/// unknown kind.
pub fn decode_outcomes(bytes: &[u8]) -> Result<Vec<Option<Outcome>>, Invalid> {
    let mut reader = Reader::new(bytes);
    let count = reader.number(&EFFECTS)?;
    let mut outcomes = Vec::new();
    for _ in 0..count {
        outcomes.push(match reader.byte()? {
            NOTHING => None,
            DONE => Some(Outcome::Done),
            INTEGER => Some(Outcome::Integer(reader.any_signed()?)),
            TEXT => Some(Outcome::Text(reader.bytes()?.into())),
            SCORE => Some(Outcome::Score(reader.bytes()?.into())),
            _ => return Err(Invalid("an effect has an unknown kind of reply")),
        });
    }
    reader.end()?;
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Effect, Verb};

    fn effect<'a>(verb: Verb, words: &[&'a [u8]]) -> Effect<'a> {
        Effect {
            verb,
            at: 0,
            key: b"k",
            words: words.to_vec(),
            span: None,
            max_len: None,
        }
    }

    fn bytes(effect: &Repeat<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        encode(effect, &mut out);
        out
    }

    #[test]
    fn what_is_written_is_read_and_names_no_clock() {
        let mut set = effect(Verb::Set, &[b"v"]);
        set.span = Some(5);
        let mut add = effect(Verb::XAdd, &[b"*", b"*"]);
        add.max_len = Some(9);
        let mut expire = effect(Verb::PExpire, &[b"-1"]);
        expire.span = Some(-1);
        for (repeat, words) in [
            (Repeat::of(&set, 100, true), "SET v PXAT 105"),
            (
                Repeat::of(&add, 100, false).with_id(b"7-1"),
                "XADD MAXLEN 9 7-1 * *",
            ),
            (Repeat::of(&expire, 100, false), "DEL"),
            (
                Repeat::of(&effect(Verb::HIncrBy, &[b"f", b"3"]), 1, false),
                "HINCRBY f 3",
            ),
        ] {
            let written = bytes(&repeat);
            let read = decode(&written).unwrap().unwrap();
            assert_eq!(read, repeat);
            let said: Vec<_> = read
                .words
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            assert_eq!(said.join(" "), words);
        }
    }

    #[test]
    fn other_commands_and_broken_bytes_are_refused() {
        let other = |words: &[&'static str]| {
            let words = words.iter().map(|word| Cow::Borrowed(word.as_bytes()));
            decode(&bytes(&Repeat {
                is_new: false,
                words: words.collect(),
            }))
            .map(|_| ())
        };
        for words in [
            &["FLUSHALL"][..],
            &["EVAL", "x"],
            &["DEL", "other"],
            &["SET", "v", "GET"],
            &["SET", "v", "EX", "5"],
            &["XADD", "*", "f", "v"],
            &["XADD", "MAXLEN", "~", "1-1", "f", "v"],
            &["XADD", "1-1", "f"],
            &["PEXPIRE", "5"],
            &[],
        ] {
            assert!(other(words).is_err(), "{words:?}");
        }
        let whole = bytes(&Repeat::of(&effect(Verb::SAdd, &[b"member"]), 1, false));
        for cut in 1..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "{cut}");
        }
        assert_eq!(decode(&[1 << 5]), Ok(None));
        assert!(decode(&[FORM | 2, 0]).is_err());
    }
}
