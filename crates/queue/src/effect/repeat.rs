//! Effects as they are in the log.

use std::borrow::Cow;

use super::refusal::integer;
use super::{Effect, Verb};

/// An effect as it is in the log: the words of a plain command that gives the same on every server
/// at every time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat<'a> {
    /// Whether the key did not exist when the effect was done. A replica may still have one that
    /// has expired.
    pub is_new: bool,
    /// The words of the plain command, its name first, without the key, which comes second.
    pub words: Vec<Cow<'a, [u8]>>,
}

impl<'a> Repeat<'a> {
    /// The command by which an effect is done at `now` (Unix ms of the server) and repeated. XADD
    /// gets the id `*`: the log needs the one that was given ([`Repeat::with_id`]).
    pub fn of(effect: &Effect<'a>, now: i64, is_new: bool) -> Repeat<'a> {
        let name = |text: &'static str| Cow::Borrowed(text.as_bytes());
        let text = |number: i64| Cow::Owned(number.to_string().into_bytes());
        let at = effect.span.map(|span| now.saturating_add(span));
        let mut words = vec![name(effect.verb.name())];
        match (effect.verb, at, effect.span) {
            (Verb::PExpire, _, Some(..=0)) => words = vec![name("DEL")],
            (Verb::PExpire, Some(at), _) => words = vec![name("PEXPIREAT"), text(at)],
            (Verb::XAdd, ..) => {
                if let Some(max_len) = effect.max_len {
                    let max_len = i64::try_from(max_len).unwrap_or(i64::MAX);
                    words.extend([name("MAXLEN"), text(max_len)]);
                }
                words.push(name("*"));
            }
            _ => {}
        }
        if effect.verb != Verb::PExpire {
            words.extend(effect.words.iter().map(|word| Cow::Borrowed(*word)));
        }
        if let (Verb::Set, Some(at)) = (effect.verb, at) {
            words.extend([name("PXAT"), text(at)]);
        }
        Repeat { is_new, words }
    }

    /// The same with the id that the stream has given to the entry.
    pub fn with_id(mut self, id: &[u8]) -> Repeat<'a> {
        if let Some(word) = self.words.iter_mut().find(|word| ***word == *b"*") {
            *word = Cow::Owned(id.to_vec());
        }
        self
    }

    /// Whether the words are those of an effect: of a command that is one, with as many words as it
    /// has. What comes from a log may be anything.
    pub fn is_known(&self) -> bool {
        let Some((name, words)) = self.words.split_first() else {
            return false;
        };
        match (&**name, words) {
            (b"PEXPIREAT", [at]) => integer(at).is_some(),
            (b"SET", [_, px, at]) => **px == *b"PXAT" && integer(at).is_some(),
            (b"XADD", [max_len, len, rest @ ..]) if **max_len == *b"MAXLEN" => {
                integer(len).is_some() && is_entry(rest)
            }
            (b"XADD", rest) => is_entry(rest),
            (b"PEXPIRE", _) => false,
            (name, words) => Verb::of(name).is_some_and(|verb| verb.words() == words.len()),
        }
    }
}

/// Whether the words are an id that is fixed, and fields with values.
fn is_entry(words: &[Cow<'_, [u8]>]) -> bool {
    match words {
        [id, fields @ ..] => {
            let parts = id.split(|byte| *byte == b'-');
            let is_id = parts.clone().count() == 2
                && parts.into_iter().all(|part| {
                    std::str::from_utf8(part).is_ok_and(|part| part.parse::<u64>().is_ok())
                });
            is_id && !fields.is_empty() && fields.len().is_multiple_of(2)
        }
        [] => false,
    }
}
