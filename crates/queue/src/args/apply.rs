//! Reads the options APPLY and IF, which several commands have that acknowledge a message.

use super::option::unless_twice;
use super::words::{instead, SOME, SOME_MS};
use super::{ArgError, Parsed, Words};
use crate::effect::refusal::{double, integer};
use crate::effect::{Apply, Condition, Effect, Is, Verb, MOST_CONDITIONS, MOST_EFFECTS};
use crate::MAX_EXACT;

/// The options APPLY and IF of a call, as far as they were read.
#[derive(Debug, Default)]
pub struct ApplyOptions<'a>(Option<Box<Apply<'a>>>);

impl<'a> ApplyOptions<'a> {
    /// Reads what follows APPLY or IF (`what`).
    pub fn read(&mut self, what: &str, words: &mut Words<'a>) -> Parsed<()> {
        let Apply {
            effects,
            conditions,
        } = &mut **self.0.get_or_insert_default();
        match what {
            "APPLY" => {
                unless_twice(effects.is_empty(), what)?;
                for _ in 0..words.number(what, 1..=MOST_EFFECTS as u64)? {
                    effects.push(effect(words)?);
                }
            }
            _ => {
                unless_twice(conditions.is_empty(), what)?;
                for _ in 0..words.number(what, 1..=MOST_CONDITIONS as u64)? {
                    conditions.push(condition(words)?);
                }
            }
        }
        Ok(())
    }

    /// The words that were read; `None` if neither option was given.
    ///
    /// Errors: IF without APPLY, `receipts` is not 1, or two effects that change the same.
    #[inline]
    pub fn finish(self, receipts: usize) -> Parsed<Option<Box<Apply<'a>>>> {
        if let Some(apply) = &self.0 {
            check(apply, receipts)?;
        }
        Ok(self.0)
    }
}

#[cold]
fn check(apply: &Apply<'_>, receipts: usize) -> Parsed<()> {
    let effects = &apply.effects;
    if effects.is_empty() {
        return Err("ERR IF needs APPLY".into());
    }
    if receipts != 1 {
        return Err(format!("ERR APPLY needs exactly one receipt, not {receipts}").into());
    }
    for (later, effect) in effects.iter().enumerate() {
        let earlier = effects.iter().take(later);
        let clash = |other: &Effect<'_>| other.key == effect.key && !other.goes_with(effect);
        if let Some(earlier) = earlier.into_iter().position(clash) {
            let (one, other) = (earlier + 1, later + 1);
            return Err(format!("ERR APPLY {one} and {other} name the same key").into());
        }
    }
    Ok(())
}

/// Reads one effect: the plain command with its words.
fn effect<'a>(words: &mut Words<'a>) -> Parsed<Effect<'a>> {
    let name = words.bytes("APPLY")?;
    let Some(verb) = Verb::of(name) else {
        let names: Vec<_> = Verb::names().collect();
        let expected = format!("one of {}", names.join(", "));
        return Err(instead("the effect of APPLY", expected, name));
    };
    let what = verb.name();
    let at = words.position();
    let mut effect = Effect {
        verb,
        at,
        key: words.bytes(what)?,
        words: Vec::new(),
        span: None,
        max_len: None,
    };
    for _ in 0..verb.words() {
        effect.words.push(words.bytes(what)?);
    }
    match verb {
        Verb::Set if words.took("PX") => {
            let span: u64 = words.number("PX", SOME_MS)?;
            effect.span = i64::try_from(span).ok();
        }
        Verb::IncrBy | Verb::HIncrBy => {
            let number = effect.words.last().copied().unwrap_or_default();
            integer(number).ok_or_else(|| instead(what, "an integer", number))?;
        }
        Verb::ZAdd | Verb::ZIncrBy => {
            let number = effect.words.first().copied().unwrap_or_default();
            double(number).ok_or_else(|| instead(what, "a number", number))?;
        }
        Verb::PExpire => {
            let number = effect.words.first().copied().unwrap_or_default();
            let limit = i64::try_from(MAX_EXACT).unwrap_or(i64::MAX);
            let span = integer(number).filter(|span| (-limit..=limit).contains(span));
            let expected = format_args!("an integer from -{limit} to {limit}");
            effect.span = Some(span.ok_or_else(|| instead(what, expected, number))?);
        }
        Verb::XAdd => {
            let pairs = words.number(what, SOME)?;
            let room = words.left() / 2;
            let pairs = usize::try_from(pairs).ok().filter(|pairs| *pairs <= room);
            let pairs = pairs.ok_or_else(|| fewer(what))?;
            for _ in 0..2 * pairs {
                effect.words.push(words.bytes(what)?);
            }
            if words.took("MAXLEN") {
                effect.max_len = Some(words.number("MAXLEN", 0..=MAX_EXACT)?);
            }
        }
        _ => {}
    }
    Ok(effect)
}

/// Reads one condition.
fn condition<'a>(words: &mut Words<'a>) -> Parsed<Condition<'a>> {
    let expected = "EXISTS, MISSING or EQUALS";
    let choices = [
        ("EXISTS", "EXISTS"),
        ("MISSING", "MISSING"),
        ("EQUALS", "EQUALS"),
    ];
    let what = words.choice("the condition of IF", expected, &choices)?;
    let at = words.position();
    words.bytes(what)?;
    let is = match what {
        "EXISTS" => Is::There,
        "MISSING" => Is::Missing,
        _ => Is::Equal(words.bytes(what)?),
    };
    Ok(Condition { at, is })
}

fn fewer(what: &str) -> ArgError {
    format!("ERR {what} is followed by fewer values than it says").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    fn read(text: &str) -> Parsed<Option<Box<Apply<'static>>>> {
        // The words live as long as the test.
        let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
        let given: Vec<&'static [u8]> = text.split(' ').map(str::as_bytes).collect();
        let mut words = Words::new(Box::leak(given.into_boxed_slice()));
        let mut options = ApplyOptions::default();
        while let Some(option) = words.option() {
            match option.name() {
                what @ ("APPLY" | "IF") => options.read(what, &mut words)?,
                _ => return Err(option.unknown()),
            }
        }
        options.finish(1)
    }

    #[test]
    fn each_effect_is_read_with_its_own_words() {
        let text = "IF 2 EXISTS APPLY equals k v apply 15 set SET PX px 5 DEL k1 INCRBY k2 -3 HSET k3 f v \
            HDEL k3 g HINCRBY k3 h 9223372036854775807 SADD k4 a SREM k4 b ZADD k5 -inf a \
            ZINCRBY k5 1e3 b ZREM k5 c LPUSH k6 MAXLEN RPUSH k6 x XADD k7 2 a 1 b 2 MAXLEN 5 PEXPIRE k7 -1";
        let apply = read(text).unwrap().unwrap();
        let verbs: Vec<_> = apply.effects.iter().map(|e| e.verb.name()).collect();
        assert_eq!(verbs, Verb::names().collect::<Vec<_>>());
        let [set, .., add, expire] = apply.effects.as_slice() else {
            panic!("{apply:?}");
        };
        assert_eq!(
            (set.key, &set.words[..], set.span),
            (&b"SET"[..], &[&b"PX"[..]][..], Some(5))
        );
        assert_eq!((add.words.len(), add.max_len), (4, Some(5)));
        assert_eq!(expire.span, Some(-1));
        assert_eq!(apply.conditions[1].is, Is::Equal(b"v"));
        assert_eq!(apply.conditions[0].at, 3);
    }

    #[test]
    fn wrong_words_are_named() {
        for (text, expected) in [
            ("APPLY 0", "APPLY must be an integer from 1 to 128, not '0'"),
            ("APPLY 129", "APPLY must be an integer from 1 to 128, not '129'"),
            ("APPLY 1 GET k", "the effect of APPLY must be one of SET, DEL, INCRBY, HSET, HDEL, HINCRBY, SADD, SREM, ZADD, ZINCRBY, ZREM, LPUSH, RPUSH, XADD, PEXPIRE, not 'GET'"),
            ("APPLY 2 DEL k", "APPLY needs a value"),
            ("APPLY 1 INCRBY k x", "INCRBY must be an integer, not 'x'"),
            ("APPLY 1 INCRBY k 01", "INCRBY must be an integer, not '01'"),
            ("APPLY 1 ZADD k nan m", "ZADD must be a number, not 'nan'"),
            ("APPLY 1 SET k v PX 0", "PX must be an integer from 1 to 9007199254740991, not '0'"),
            ("APPLY 1 XADD k 0", "XADD must be an integer from 1 to 9007199254740991, not '0'"),
            ("APPLY 1 XADD k 2 a b c", "XADD is followed by fewer values than it says"),
            ("APPLY 1 DEL k MAXLEN", "unknown option 'MAXLEN'"),
            ("IF 1 EXISTS k", "IF needs APPLY"),
            ("IF 17 EXISTS k", "IF must be an integer from 1 to 16, not '17'"),
            ("IF 1 LESS k", "the condition of IF must be EXISTS, MISSING or EQUALS, not 'LESS'"),
            ("APPLY 1 DEL k APPLY 1 DEL k", "APPLY is given twice"),
        ] {
            assert_eq!(error(read(text)), format!("ERR {expected}"), "{text}");
        }
        let two = |w: Words<'_>| ack_of(w).map(|_| ());
        assert_eq!(
            error(words("APPLY 1 DEL k", two)),
            "ERR APPLY needs exactly one receipt, not 2"
        );
    }

    fn ack_of(mut words: Words<'_>) -> Parsed<Option<Box<Apply<'_>>>> {
        let mut options = ApplyOptions::default();
        words.take();
        options.read("APPLY", &mut words)?;
        options.finish(2)
    }
}
