//! The settings of queues, each with what it is for, and their values for people.

use super::record::{shown, Record};
use crate::time_text::{exact, parse_span};

/// A setting of a queue that can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name in DQ.INFO and DQ.ALTER.
    pub name: &'static str,
    /// The words of its value. A word in upper case is as it is, those in brackets may be missing,
    /// `|` is between the words to choose from, and `text...` is one word and any others.
    shape: &'static str,
    /// Its value in a queue for which nothing was said, as people write it.
    pub usual: &'static str,
    /// One line about it.
    pub help: &'static str,
}

/// The settings, one in a line: the name, the words, the usual value, and a line about it.
const SETTINGS: &str = "\
lease :: time :: 30s :: how long a consumer has for a message
retries :: n :: 3 :: how many failures of a message are tried again; -1: without limit
backoff :: FIXED|LINEAR|EXP time :: EXP 1s :: the wait after a failure: always the same, growing, or doubling
maxbackoff :: time :: 1h :: the wait after a failure is at most this; 0: no limit
jitter :: n :: 20 :: spreads the wait at random, in percent
ttl :: time :: 0 :: a message that has not finished this long after its due time is dead; 0: never
retain :: time :: 0 :: how long records of finished and cancelled messages are kept; 0: not at all
retaincount :: n :: 10000 :: how many of these records are kept; 0: no limit
deadretain :: time :: 0 :: how long dead messages are kept; 0: for ever
deadcount :: n :: 0 :: how many dead messages are kept; 0: all
deadto :: text [retries|timeouts|rejected|expired|batch|children]... ::  :: the queue to which dead messages go, and if not all, which
dedup :: time :: 0 :: how long an id stays taken after its message was finished or cancelled
maxlen :: n :: 0 :: the most pending and running messages; 0: no limit
maxbytes :: n :: 0 :: the most payload bytes of these; 0: no limit
maxrunning :: n :: 0 :: how many messages run at once, for all consumers together; 0: no limit
rate :: n PER time ::  :: how many deliveries may begin within a time
groupconcurrency :: n :: 1 :: how many messages of one group run at once
onretry :: BLOCK|SKIP|ALONE :: BLOCK :: whether a group waits behind a message in retry
ondead :: CONTINUE|BLOCK :: CONTINUE :: whether a group goes on when a message of it dies
breaker :: n PER time OPEN time [MAX time] ::  :: how many failures of a group, within which time, stop it for how long
fair :: COUNT|TIME|COST :: COUNT :: by which measure groups take turns
compress :: ON|OFF :: OFF :: whether payloads of messages that rest are kept packed
sends :: ON|OFF :: ON :: whether the queue takes new messages
maxtimeouts :: n :: 0 :: after how many lost leases a message is dead; 0: no limit
errors :: n :: 0 :: how many of the last failed attempts of a message are kept
events :: text ::  :: the Redis stream to which events are added
eventslen :: n :: 10000 :: how many entries that stream has at most
";

/// Returns all settings.
pub fn all() -> impl Iterator<Item = Setting> {
    SETTINGS.lines().filter_map(|line| {
        let mut parts = line.split(" :: ");
        Some(Setting {
            name: parts.next()?,
            shape: parts.next()?,
            usual: parts.next()?,
            help: parts.next()?,
        })
    })
}

impl Setting {
    /// Returns the words to choose from, if the value is one of a few.
    pub fn choices(&self) -> Option<impl Iterator<Item = &'static str>> {
        let is_choice = self.shape.contains('|') && !self.shape.contains(' ');
        is_choice.then(|| self.shape.split('|'))
    }

    /// Returns the form of the value in words: `n PER time`.
    pub fn form(&self) -> &'static str {
        self.shape
    }

    /// Returns whether the value is a text, which may not be what it seems in another place.
    fn is_text(&self) -> bool {
        self.shape.starts_with("text")
    }

    /// Returns whether a value is that of a queue for which nothing was said.
    pub fn is_usual(&self, value: &str) -> bool {
        value == self.usual || (matches!(value, "" | "0") && matches!(self.usual, "" | "0"))
    }

    /// Returns its value in a reply of DQ.INFO for people, which `words` and `field` read: `30s`,
    /// `EXP 1s`. `None` with a module that does not know it.
    pub fn value(&self, info: &Record) -> Option<String> {
        let mut fields = info.fields().iter();
        fields.find(|(field, _)| shown(field) == self.name)?;
        let value = shown(info.get(self.name));
        if self.is_text() {
            return Some(value);
        }
        let one = |(word, token): (&str, &str)| match word.parse() {
            Ok(ms) if token == "time" => exact(ms),
            _ => word.to_owned(),
        };
        let words = value.split(' ').zip(tokens(self.shape)).map(one);
        Some(words.collect::<Vec<_>>().join(" "))
    }

    /// Returns the words of DQ.ALTER for a value as a person writes it. Nothing is 0. A text
    /// that is typed into one field is the value of this setting alone, and never another option.
    pub fn typed(&self, typed: &str) -> Result<Vec<String>, String> {
        let (name, shape) = (self.name, self.shape);
        let given: Vec<&str> = typed.split_whitespace().collect();
        let wrong = || Err(format!("{name}: write {shape}"));
        if self.is_text() {
            return match &given[..] {
                [] => Ok(vec![String::new()]),
                [_, reasons @ ..] => {
                    let known = tokens(shape).nth(1).unwrap_or_default();
                    match reasons.iter().all(|reason| is_one_of(known, reason)) {
                        true => Ok(given.iter().map(|word| (*word).to_owned()).collect()),
                        false => wrong(),
                    }
                }
            };
        }
        if matches!(given[..], [] | ["0"]) {
            return Ok(vec!["0".to_owned()]);
        }
        let least = shape
            .split(" [")
            .next()
            .map_or(0, |must| tokens(must).count());
        let fits = given.len() == tokens(shape).count() || given.len() == least;
        let is_word = |token: &str| token.starts_with(|c: char| c.is_ascii_uppercase());
        let mut words = tokens(shape).zip(&given);
        if !fits || words.any(|(token, word)| is_word(token) && !is_one_of(token, word)) {
            return wrong();
        }
        let one = |(token, word): (&str, &&str)| match token {
            "time" => parse_span(word)
                .map_or_else(|why| Err(format!("{name}: {why}")), |ms| Ok(ms.to_string())),
            _ => Ok((*word).to_owned()),
        };
        tokens(shape).zip(&given).map(one).collect()
    }
}

/// Returns whether a word is one of those between `|`, in any case.
fn is_one_of(words: &str, word: &str) -> bool {
    words
        .split('|')
        .any(|known| known.eq_ignore_ascii_case(word))
}

fn tokens(shape: &str) -> impl Iterator<Item = &str> {
    let words = shape.split(' ');
    words.map(|token| token.trim_end_matches('.').trim_matches(['[', ']']))
}

/// Returns the words of DQ.ALTER for the value of the setting of this name.
pub fn field(name: &str, typed: &str) -> Result<Vec<String>, String> {
    let setting = all().find(|setting| setting.name == name);
    let setting = setting.ok_or_else(|| format!("{name}: there is no such setting"))?;
    setting.typed(typed)
}

/// Returns the settings of a queue as words of DQ.CREATE, with the server's own figures. Those
/// that name other keys are not among them.
pub fn server_words(info: &Record) -> Vec<String> {
    let mut words = Vec::new();
    for setting in all().filter(|setting| !setting.is_text()) {
        let value = shown(info.get(setting.name));
        if !value.is_empty() {
            words.push(setting.name.to_ascii_uppercase());
            words.extend(value.split(' ').map(str::to_owned));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    #[test]
    fn settings_are_shown_as_they_can_be_typed() {
        let info = crate::model::record::record(&[
            ("lease", Value::Int(90_000)),
            ("retries", Value::Int(-1)),
            ("backoff", Value::BulkString(b"EXP 1000".to_vec())),
            ("rate", Value::Nil),
            ("now", Value::Int(5)),
        ]);
        let shown: Vec<String> = all()
            .filter_map(|setting| Some(format!("{}={}", setting.name, setting.value(&info)?)))
            .collect();
        assert_eq!(
            shown,
            ["lease=1m30s", "retries=-1", "backoff=EXP 1s", "rate="]
        );
        let usual = |name, value| all().any(|one| one.name == name && one.is_usual(value));
        assert!(usual("lease", "30s") && usual("rate", "") && usual("ttl", ""));
        assert!(!usual("lease", "1m30s") && !usual("retries", "0"));
    }

    #[test]
    fn a_field_holds_the_value_of_one_setting() {
        let of = |name: &str, typed: &str| {
            let setting = all().find(|setting| setting.name == name).unwrap();
            setting.typed(typed).map(|words| words.join(" "))
        };
        for (name, typed, words) in [
            ("lease", "30s", "30000"),
            ("lease", "", "0"),
            ("retries", "-1", "-1"),
            ("backoff", "exp  1s", "exp 1000"),
            ("rate", "10 per 1m", "10 per 60000"),
            ("rate", "0", "0"),
            ("breaker", "5 PER 1m OPEN 30s", "5 PER 60000 OPEN 30000"),
            ("deadto", "lost retries EXPIRED", "lost retries EXPIRED"),
            ("deadto", "", ""),
            ("events", "2d", "2d"),
            ("sends", "off", "off"),
            (
                "breaker",
                "5 PER 1m OPEN 30s MAX 1h",
                "5 PER 60000 OPEN 30000 MAX 3600000",
            ),
        ] {
            assert_eq!(of(name, typed).as_deref(), Ok(words), "{name}");
        }
        for (name, typed) in [
            ("lease", "1s EVENTS other"),
            ("lease", "30"),
            ("maxlen", "5 DEADTO other"),
            ("onretry", "SKIP EVENTS other"),
            ("backoff", "EXP EVENTS"),
            ("backoff", "SOMEHOW 1s"),
            ("deadto", "lost EVENTS other"),
            ("sends", "SOMETIMES"),
            ("backoff", "EXP 1s EVENTS other"),
            ("rate", "10 PER"),
            ("rate", "10 EVENTS other"),
            ("breaker", "5 PER 1m OPEN 30s EVENTS other"),
            ("events", "other more"),
        ] {
            assert!(of(name, typed).is_err(), "{name} {typed}");
        }
    }
}
