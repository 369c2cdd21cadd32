//! Writes the parts that a plain message does not have: its options, deliveries, failures and end.

use super::children::put_children;
use super::frames::put_counts;
use super::{extra, texts, Bases};
use crate::codec::options::{put_choices, put_due};
use crate::codec::wire::{put_bytes, put_delta, put_number, put_optional_bytes};
use crate::message::after::Counts;
use crate::message::errors::FailedAttempt;
use crate::message::extension::Texts;
use crate::message::rerun::Rerun;
use crate::message::state::StoredState;
use crate::queue::rebuild::Numbered;
use crate::seeded::{seeded, Bug};
use crate::{Millis, NEVER};

/// Writes the history of a message, with its lease and its sets: a named batch and siblings.
pub fn put_history(
    out: &mut Vec<u8>,
    numbered: Numbered,
    consumer: Option<u64>,
    [batch, siblings]: [Option<u64>; 2],
    bases: &mut Bases,
) {
    let flag = |is: bool, bit: u64| if is { bit } else { 0 };
    let (message, due) = (numbered.message, numbered.message.due);
    let (choices, texts) = (message.choices(), message.texts());
    let signal = message.left().and_then(|left| left.signal());
    let due_at = message.due_at();
    // Of a parked message, since when it is.
    let ended_at = message.extension().map_or(NEVER, |ext| ext.ended_at);
    let (first_started_at, started_at) = (message.first_started_at(), message.started_at());
    let (receipt, attempt) = (message.receipt(), message.history.attempt());
    let (score_base, ttl_base) = (message.score_base(), message.ttl_base());
    let counts = message
        .after()
        .map_or(Counts::default(), |after| after.counts);
    put_number(
        out,
        flag(choices.is_some(), extra::CHOICES)
            | flag(numbered.term.is_some(), extra::RUNNING)
            | flag(started_at != NEVER, extra::STARTED)
            | flag(first_started_at != started_at, extra::FIRST_STARTED)
            | flag(attempt != 0, extra::ATTEMPT)
            | flag(consumer.is_some(), extra::CONSUMER)
            | flag(ended_at != NEVER, extra::ENDED)
            | flag(message.failures() != 0, extra::FAILURES)
            | flag(score_base != due, extra::SCORE_BASE)
            | flag(ttl_base != due, extra::TTL_BASE)
            | flag(texts.is_some(), extra::TEXTS)
            | flag(due_at != due, extra::DUE_AT)
            | flag(numbered.first_sent.is_some(), extra::FIRST_SENT)
            | flag(batch.is_some(), extra::BATCH)
            | flag(counts != Counts::default(), extra::AFTER_COUNTS)
            | flag(message.is_due_at_point(), extra::POINT)
            | flag(!message.errors().is_empty(), extra::ERRORS)
            | flag(message.rerun().is_some(), extra::RERUN)
            | flag(signal.is_some(), extra::SIGNAL)
            | flag(message.children().is_some(), extra::CHILDREN)
            | flag(siblings.is_some(), extra::SIBLINGS)
            | flag(message.stored == StoredState::Leaving, extra::LEAVING),
    );
    if let Some(choices) = choices {
        put_choices(out, choices);
    }
    if started_at != NEVER {
        put_delta(out, started_at, due);
    }
    if first_started_at != started_at {
        put_delta(out, first_started_at, due);
    }
    if let Some(term) = numbered.term {
        put_delta(out, receipt, bases.receipt);
        put_number(out, receipt.wrapping_sub(term.batch));
        put_delta(out, term.until, started_at);
        bases.receipt = receipt;
    }
    if attempt != 0 {
        put_number(out, u64::from(attempt));
    }
    if let Some(consumer) = consumer {
        put_number(out, consumer);
    }
    if ended_at != NEVER {
        put_delta(out, ended_at, due);
    }
    if message.failures() != 0 {
        put_number(out, u64::from(message.failures()));
        put_number(out, u64::from(message.timeouts()));
    }
    for base in [score_base, ttl_base, due_at] {
        if base != due {
            put_delta(out, base, due);
        }
    }
    if let Some(texts) = texts {
        put_texts(out, texts);
    }
    if let Some(first_sent) = numbered.first_sent {
        put_delta(out, first_sent, message.sent_at);
    }
    if let Some(batch) = batch {
        put_number(out, batch);
    }
    if counts != Counts::default() {
        put_counts(out, &counts);
    }
    if !message.errors().is_empty() {
        put_errors(out, message.errors(), due);
    }
    if let Some(rerun) = message.rerun() {
        put_rerun(out, rerun);
    }
    if let Some(signal) = signal {
        put_bytes(out, &signal.text);
        put_number(out, signal.during);
    }
    if let Some(children) = message.children() {
        put_children(out, children);
    }
    if let Some(siblings) = siblings {
        put_number(out, siblings);
    }
}

fn put_rerun(out: &mut Vec<u8>, rerun: &Rerun) {
    put_bytes(out, &rerun.payload);
    put_due(out, rerun.due);
    put_optional_bytes(out, rerun.group.as_deref());
    out.push(rerun.priority as u8);
    put_choices(out, &rerun.choices);
    put_number(out, rerun.first_at);
}

fn put_errors(out: &mut Vec<u8>, errors: &[FailedAttempt], due: Millis) {
    put_number(out, errors.len() as u64);
    for failed in errors {
        put_number(out, u64::from(failed.attempt));
        put_delta(out, failed.at, due);
        put_optional_bytes(out, failed.consumer.as_deref());
        put_bytes(out, &failed.text);
    }
}

fn put_texts(out: &mut Vec<u8>, told: &Texts) {
    put_optional_bytes(out, told.error.as_deref());
    put_optional_bytes(out, told.result.as_deref());
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    let note = told.left.as_ref().and_then(|left| left.note());
    let note = note.filter(|_| !seeded(Bug::SnapshotForgetsNote));
    out.push(
        told.reason.map_or(0, |reason| reason as u8)
            | flag(told.snoozed, texts::SNOOZED)
            | flag(note.is_some(), texts::NOTE),
    );
    if let Some(note) = note {
        put_bytes(out, note);
    }
}
