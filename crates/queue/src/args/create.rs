//! Reads the arguments of CREATE.

use super::option::{flag, once};
use super::queue_options::read_setting;
use super::words::{looks_like_number, MS};
use super::{Parsed, Words};
use crate::settings::{Changes, Clock};

/// The arguments of CREATE.
#[derive(Debug, PartialEq, Eq)]
pub struct NewQueue {
    /// The options that are given; the others come from the module's defaults.
    pub changes: Changes,
    /// The clock that the queue follows.
    pub clock: Clock,
    /// Whether a queue that exists is left as it is, without an error.
    pub if_missing: bool,
}

/// Reads the arguments of CREATE: `[NX] [option value ...]`
pub fn create(mut words: Words<'_>) -> Parsed<NewQueue> {
    let mut changes = Changes::default();
    let mut clock = None;
    let mut if_missing = false;
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CLOCK" => once(&mut clock, what, read_clock(&mut words, what)?)?,
            what @ "NX" => flag(&mut if_missing, what)?,
            _ => read_setting(&mut changes, &option, &mut words)?,
        }
    }
    Ok(NewQueue {
        changes,
        clock: clock.unwrap_or(Clock::Server),
        if_missing,
    })
}

/// The indices of the keys that the arguments of CREATE or ALTER name, besides that of the queue.
/// None where the arguments are not valid.
pub fn other_keys(mut words: Words<'_>) -> Vec<usize> {
    let mut changes = Changes::default();
    let mut keys = Vec::new();
    while let Some(option) = words.option() {
        let at = words.position();
        let names_key = matches!(option.name(), "DEADTO" | "EVENTS") && words.peek() != Some(b"");
        let read = match option.name() {
            what @ "CLOCK" => read_clock(&mut words, what).map(|_| ()),
            "NX" => Ok(()),
            _ => read_setting(&mut changes, &option, &mut words),
        };
        if read.is_err() {
            return Vec::new();
        }
        if names_key {
            keys.push(at);
        }
    }
    keys
}

/// Reads the value of CLOCK: `SERVER` or `MANUAL [start-ms]`. Without a start,
/// a manual clock starts at 0.
fn read_clock(words: &mut Words<'_>, what: &str) -> Parsed<Clock> {
    let choices = [("SERVER", false), ("MANUAL", true)];
    let manual = words.choice(what, "SERVER or MANUAL", &choices)?;
    if !manual {
        return Ok(Clock::Server);
    }
    // No option begins like a number, so a word that does is the start.
    let start = match words.peek().is_some_and(looks_like_number) {
        true => words.number("CLOCK MANUAL", MS)?,
        false => 0,
    };
    Ok(Clock::Manual(start))
}
