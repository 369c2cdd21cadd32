//! Options: words that may come in any order and any case, each at most once.

use super::{ArgError, Parsed, UNKNOWN_OPTION};
use crate::quote::quote;

/// Length of the longest option, GROUPCONCURRENCY, in bytes.
const MAX_LEN: usize = 16;

/// A word in a position where an option is expected.
pub struct OptionWord<'a> {
    raw: &'a [u8],
    upper: [u8; MAX_LEN],
}

impl<'a> OptionWord<'a> {
    /// Wraps a word in a position where an option is expected.
    #[inline]
    pub fn new(raw: &'a [u8]) -> Self {
        // The word is assembled in a register, because loading bytes as a whole
        // right after storing them one by one is slow.
        let mut upper = 0u128;
        if raw.len() <= MAX_LEN {
            for byte in raw.iter().rev() {
                upper = upper << 8 | u128::from(byte.to_ascii_uppercase());
            }
        }
        OptionWord {
            raw,
            upper: upper.to_le_bytes(),
        }
    }

    /// The word in upper case; empty if it is longer than any option or not
    /// UTF-8.
    #[inline]
    pub fn name(&self) -> &str {
        let upper = self.upper.get(..self.raw.len()).unwrap_or_default();
        std::str::from_utf8(upper).unwrap_or_default()
    }

    /// The error for a word that is not an option of this command.
    #[cold]
    pub fn unknown(&self) -> ArgError {
        format!("{UNKNOWN_OPTION}{}", quote(self.raw)).into()
    }
}

/// Stores the value of an option.
///
/// Errors: the option already has a value.
pub fn once<T>(slot: &mut Option<T>, what: &str, value: T) -> Parsed<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice(what)),
    }
}

/// Sets an option that takes no value.
///
/// Errors: the option is already set.
pub fn flag(slot: &mut bool, what: &str) -> Parsed<()> {
    match std::mem::replace(slot, true) {
        false => Ok(()),
        true => Err(twice(what)),
    }
}

/// Checks that not both of two options are given. Each is the name of the
/// option and whether it is given.
pub fn exclude(one: (&str, bool), other: (&str, bool)) -> Parsed<()> {
    match one.1 && other.1 {
        true => Err(both(one.0, other.0)),
        false => Ok(()),
    }
}

#[cold]
fn both(one: &str, other: &str) -> ArgError {
    format!("ERR {one} and {other} exclude each other").into()
}

/// Checks that an option that was just read is given once. `is_first` says whether it
/// was not given before.
pub fn unless_twice(is_first: bool, what: &str) -> Parsed<()> {
    match is_first {
        true => Ok(()),
        false => Err(twice(what)),
    }
}

#[cold]
fn twice(what: &str) -> ArgError {
    format!("ERR {what} is given twice").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::error;
    use crate::args::Words;

    #[test]
    fn options_match_in_any_case_and_other_words_match_none() {
        let raw: [&[u8]; 5] = [b"GroupConcurrency", b"delay", b"", &[b'x'; 999], b"a\xff"];
        let mut words = Words::new(&raw);
        let names: Vec<String> = std::iter::from_fn(|| words.option())
            .map(|option| option.name().to_owned())
            .collect();
        assert_eq!(names, ["GROUPCONCURRENCY", "DELAY", "", "", ""]);
        let unknown = error::<()>(Err(OptionWord::new(b"a\r\n").unknown()));
        assert_eq!(unknown, r"ERR unknown option 'a\r\n'");
    }

    #[test]
    fn options_that_are_given_twice_or_exclude_each_other_are_refused() {
        let mut slot = None;
        assert_eq!(once(&mut slot, "TTL", 5), Ok(()));
        assert_eq!(error(once(&mut slot, "TTL", 5)), "ERR TTL is given twice");
        let mut noted = false;
        assert_eq!(flag(&mut noted, "BIND"), Ok(()));
        assert!(noted);
        assert_eq!(error(flag(&mut noted, "BIND")), "ERR BIND is given twice");
        let both = exclude(("DELAY", true), ("AT", true));
        assert_eq!(error(both), "ERR DELAY and AT exclude each other");
        assert_eq!(exclude(("DELAY", true), ("AT", false)), Ok(()));
    }
}
