//! A cursor over the arguments of a command.
//!
//! Each method of [`Words`] reads one kind of argument. Its parameter `what` is
//! the name of the argument in the text of an error.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use super::integer::integer;
use super::option::OptionWord;
use super::{ArgError, Parsed};
use crate::limits::{MAX_COUNT, MAX_ERROR, MAX_ERRORS, MAX_NAME, MAX_NOTE};
use crate::message::score::{BadScore, Score};
use crate::message::state::State;
use crate::op::Receipts;
use crate::quote::quote;
use crate::text::cut;
use crate::{Millis, Receipt, MAX_EXACT};

/// A point of time in Unix ms, or a duration in ms that may be 0.
pub const MS: RangeInclusive<Millis> = 0..=MAX_EXACT;
/// A duration in ms, at least 1.
pub const SOME_MS: RangeInclusive<Millis> = 1..=MAX_EXACT;
/// A count that may be 0.
pub const ANY: RangeInclusive<u64> = 0..=MAX_EXACT;
/// A count of at least 1.
pub const SOME: RangeInclusive<u64> = 1..=MAX_EXACT;
/// The value of ERRORS.
pub const ERRORS: RangeInclusive<u8> = 0..=MAX_ERRORS;
/// The range of the value of COUNT, for every command that has it.
pub const COUNT: RangeInclusive<u64> = 1..=MAX_COUNT;

/// The arguments of a command, read from the front to the end.
pub struct Words<'a> {
    words: &'a [&'a [u8]],
    at: usize,
}

impl<'a> Words<'a> {
    /// Starts before the first of `words`.
    pub fn new(words: &'a [&'a [u8]]) -> Self {
        Words { words, at: 0 }
    }

    /// The index of the next word; the first word of all has index 0.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The number of words that are left.
    pub fn left(&self) -> usize {
        self.words.len().saturating_sub(self.at)
    }

    /// The next word, which is not consumed; `None` at the end.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.words.get(self.at).copied()
    }

    /// Whether the word after the next one looks like a number.
    pub fn is_number_next(&self) -> bool {
        let after = self.words.get(self.at + 1);
        after.is_some_and(|word| looks_like_number(word))
    }

    /// Consumes and returns the next word; `None` at the end.
    pub fn take(&mut self) -> Option<&'a [u8]> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Skips `count` words, or fewer at the end. Returns the indices of the
    /// skipped words; the first word of all has index 0.
    pub fn skip(&mut self, count: usize) -> Range<usize> {
        let from = self.at;
        self.at += count.min(self.left());
        from..self.at
    }

    /// Consumes the next word as the name of an option; `None` at the end.
    #[inline]
    pub fn option(&mut self) -> Option<OptionWord<'a>> {
        self.take().map(OptionWord::new)
    }

    /// Consumes the next word if it equals `word` in any case. Returns whether
    /// it did.
    pub fn took(&mut self, word: &str) -> bool {
        let found = self
            .peek()
            .is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        self.at += usize::from(found);
        found
    }

    /// Consumes the next word, which may hold any bytes.
    ///
    /// Errors: no word is left.
    pub fn bytes(&mut self, what: &str) -> Parsed<&'a [u8]> {
        self.take().ok_or_else(|| needs_value(what))
    }

    /// Consumes a key, which is not empty.
    pub fn key(&mut self, what: &str) -> Parsed<&'a [u8]> {
        let key = self.bytes(what)?;
        match key.is_empty() {
            true => Err(instead(what, "a key that is not empty", key)),
            false => Ok(key),
        }
    }

    /// Consumes a name of 1 to 1,024 bytes.
    pub fn name(&mut self, what: &str) -> Parsed<&'a [u8]> {
        let name = self.bytes(what)?;
        check_name(what, name, MAX_NAME)?;
        Ok(name)
    }

    /// Consumes the note of a message, at most 64 KiB. It may be empty.
    pub fn note(&mut self, what: &str) -> Parsed<&'a [u8]> {
        let note = self.bytes(what)?;
        if note.len() > MAX_NOTE {
            let len = note.len();
            return Err(
                format!("ERR {what} must be at most {MAX_NOTE} bytes long, not {len}").into(),
            );
        }
        Ok(note)
    }

    /// Consumes the error text of a message. Only its first 64 KiB are kept.
    pub fn error_text(&mut self, what: &str) -> Parsed<&'a [u8]> {
        self.bytes(what).map(|text| cut(text, MAX_ERROR))
    }

    /// Consumes an integer within `range`, both ends included.
    pub fn number<T>(&mut self, what: &str, range: RangeInclusive<T>) -> Parsed<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let word = self.bytes(what)?;
        integer(word)
            .and_then(|value| T::try_from(value).ok())
            .filter(|value| range.contains(value))
            .ok_or_else(|| {
                let (low, high) = (range.start(), range.end());
                instead(what, format_args!("an integer from {low} to {high}"), word)
            })
    }

    /// Consumes a score.
    pub fn score(&mut self, what: &str) -> Parsed<Score> {
        let word = self.bytes(what)?;
        let text = std::str::from_utf8(word).map_err(|_| BadScore::NoNumber);
        text.and_then(Score::parse)
            .map_err(|expected| instead(what, expected, word))
    }

    /// Consumes one of the words in `choices`, in any case. `expected` lists
    /// them all for the error.
    pub fn choice<T: Copy>(
        &mut self,
        what: &str,
        expected: &str,
        choices: &[(&str, T)],
    ) -> Parsed<T> {
        let word = self.bytes(what)?;
        choices
            .iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, choice)| *choice)
            .ok_or_else(|| instead(what, expected, word))
    }

    /// Consumes the name of a message state, in any case.
    pub fn state(&mut self, what: &str) -> Parsed<State> {
        let states = State::ALL.map(|state| (state.name(), state));
        let expected = "delayed, ready, blocked, retry, running, finished, dead, cancelled or held";
        self.choice(what, expected, &states)
    }

    /// Consumes the next word if it is the name of a message state, in any case.
    pub fn leading_state(&mut self) -> Option<State> {
        let states = State::ALL.into_iter();
        let mut named = states.filter(|state| self.took(state.name()));
        named.next()
    }

    /// Consumes the number of elements that follow, at least 1. Each element
    /// takes `width` words.
    ///
    /// Errors: fewer words are left than the elements would take.
    pub fn count(&mut self, what: &str, width: usize) -> Parsed<usize> {
        let count = self.number(what, SOME)?;
        let room = self.left() / width;
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= room)
            .ok_or_else(|| format!("ERR {what} is followed by fewer values than it says").into())
    }

    /// Consumes a receipt, which may be any 64-bit integer. An integer that no
    /// delivery can have becomes 0, which is never a current receipt.
    pub fn receipt(&mut self) -> Parsed<Receipt> {
        let word = self.bytes("receipt")?;
        let receipt = integer(word).ok_or_else(|| instead("receipt", "an integer", word))?;
        Ok(Receipt::try_from(receipt)
            .ok()
            .filter(|receipt| *receipt <= MAX_EXACT)
            .unwrap_or(0))
    }

    /// Consumes one receipt, and then every further word up to the first that
    /// does not look like a number.
    pub fn receipts(&mut self) -> Parsed<Receipts> {
        let mut receipts = Receipts::new();
        receipts.push(self.receipt()?);
        while self.peek().is_some_and(looks_like_number) {
            receipts.push(self.receipt()?);
        }
        Ok(receipts)
    }

    /// Consumes the payload of a message, at most `max` bytes.
    pub fn payload(&mut self, max: u64) -> Parsed<&'a [u8]> {
        let payload = self.bytes("payload")?;
        if payload.len() as u64 > max {
            let len = payload.len();
            return Err(format!(
                "ERR payload must be at most {max} bytes long (dq.max-payload), not {len}"
            )
            .into());
        }
        Ok(payload)
    }

    /// Checks that no word is left.
    ///
    /// Errors: the next word, as an unknown option.
    pub fn end(&mut self) -> Parsed<()> {
        match self.option() {
            Some(word) => Err(word.unknown()),
            None => Ok(()),
        }
    }
}

/// Checks that a name is 1 to `max` bytes long.
pub fn check_name(what: &str, name: &[u8], max: usize) -> Parsed<()> {
    if (1..=max).contains(&name.len()) {
        return Ok(());
    }
    let len = name.len();
    Err(format!("ERR {what} must be 1 to {max} bytes long, not {len}").into())
}

/// Whether a word begins with a digit or a sign, as no option does.
pub fn looks_like_number(word: &[u8]) -> bool {
    matches!(word, [b'0'..=b'9' | b'-' | b'+', ..])
}

#[cold]
fn needs_value(what: &str) -> ArgError {
    format!("ERR {what} needs a value").into()
}

/// The error for an unexpected word.
#[cold]
pub fn instead(what: &str, expected: impl Display, word: &[u8]) -> ArgError {
    format!("ERR {what} must be {expected}, not {}", quote(word)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    #[test]
    fn numbers_outside_their_range_are_refused() {
        let read = |text: &str| words(text, |mut w| w.number("DELAY", 3..=5u64));
        assert_eq!(read("3"), Ok(3));
        assert_eq!(read("5"), Ok(5));
        for bad in ["2", "6", "-3", "3.0", "DELAY"] {
            let text = format!("ERR DELAY must be an integer from 3 to 5, not '{bad}'");
            assert_eq!(error(read(bad)), text);
        }
        assert_eq!(error(read("")), "ERR DELAY needs a value");
        let priority = |text: &str| words(text, |mut w| w.number("PRIORITY", i8::MIN..=i8::MAX));
        assert_eq!(priority("-128"), Ok(-128));
        assert!(priority("128").is_err());
    }

    #[test]
    fn scores_that_are_no_numbers_or_would_be_rounded_are_refused() {
        let read = |text: &str| words(text, |mut w| w.score("SCORE"));
        for text in ["1.5", "-3", "1e3", "0", "18446744073709551615"] {
            assert_eq!(read(text), Ok(Score::parse(text).unwrap()));
        }
        for bad in ["nan", "inf", "-inf", "infinity", "x", "1.5x", "0x1"] {
            let text = format!("ERR SCORE must be a finite number, not '{bad}'");
            assert_eq!(error(read(bad)), text);
        }
        let text =
            "ERR SCORE must be a number that is kept exactly: an integer from -2^63 to 2^64-1, or \
                    a double, not '9007199254740993.5'";
        assert_eq!(error(read("9007199254740993.5")), text);
    }

    #[test]
    fn any_integer_is_a_receipt_and_an_impossible_one_becomes_zero() {
        let read = |text: &str| words(text, |mut w| w.receipts().map(|r| r.to_vec()));
        assert_eq!(read("7 8 7"), Ok(vec![7, 8, 7]));
        assert_eq!(read("-1 0 9007199254740992"), Ok(vec![0, 0, 0]));
        assert_eq!(read("9007199254740991 x"), Ok(vec![MAX_EXACT]));
        for bad in ["1.5", "9223372036854775808", "RESULT", "-"] {
            let text = format!("ERR receipt must be an integer, not '{bad}'");
            assert_eq!(error(read(bad)), text);
        }
        assert!(read("1 2.5").is_err());
    }

    #[test]
    fn a_count_larger_than_the_words_that_follow_is_refused() {
        let read = |text: &str| words(text, |mut w| w.count("HEADERS", 2));
        assert_eq!(read("2 a b c d e"), Ok(2));
        for many in ["3 a b c d e", "9007199254740991 a b"] {
            let text = "ERR HEADERS is followed by fewer values than it says";
            assert_eq!(error(read(many)), text);
        }
        assert!(read("0 a b").is_err());
    }

    #[test]
    fn names_must_have_1_to_1024_bytes() {
        for len in [1, 1024] {
            assert_eq!(check_name("ID", &vec![0xff; len], MAX_NAME), Ok(()));
        }
        for len in [0, 1025] {
            let text = format!("ERR ID must be 1 to 1024 bytes long, not {len}");
            assert_eq!(error(check_name("ID", &vec![b'x'; len], MAX_NAME)), text);
        }
    }
}
