//! Helpers for the tests of argument parsing.

use super::{Parsed, Words};

/// Splits `text` at white space and reads the words. A `\0` in the text becomes
/// a space inside a word.
pub fn words<T>(text: &str, read: impl FnOnce(Words<'_>) -> T) -> T {
    let owned: Vec<Vec<u8>> = text
        .split_ascii_whitespace()
        .map(|word| word.replace('\0', " ").into_bytes())
        .collect();
    let slices: Vec<&[u8]> = owned.iter().map(Vec::as_slice).collect();
    read(Words::new(&slices))
}

/// The text of an error, or `no error`.
pub fn error<T>(parsed: Parsed<T>) -> String {
    match parsed {
        Ok(_) => "no error".to_owned(),
        Err(failure) => failure.0.into_owned(),
    }
}
