//! Writes an operation.

use std::borrow::Cow;

use super::{
    flags_of_send, has_options, limits_of, more, more_of_children, more_of_nack, silence_of,
};
use crate::codec::options::{
    put_changes, put_due, put_limit_rule, put_rate, put_rule, put_send_options, Manner, OfSend,
};
use crate::codec::wire::{
    put_bytes, put_delta, put_fixed, put_number, put_optional_bytes, put_signed,
};
use crate::dead_letters::Moved;
use crate::message::state::State;
use crate::op::{
    AckSend, Counted, DueTime, Fetch, NackKind, NackPause, Paused, Redrive, Removal, Send,
};
use crate::schedule::Extras;
use crate::{Millis, Op, Receipt, Seq};

/// Appends the operation to `out`, without its kind and flags. O(size of the
/// operation).
pub fn put(out: &mut Vec<u8>, op: &Op, receipt: Receipt, time_us: u64) {
    match op {
        Op::Tick | Op::Detach(_) | Op::Duplicate => {}
        Op::Applied(applied) => {
            put_bytes(out, &applied.consumer);
            put_bytes(out, &applied.token);
            out.extend_from_slice(&applied.outcomes);
        }
        Op::Alter(changes) => put_changes(out, changes),
        Op::Send(send) => put_send(out, send),
        Op::Fetch(fetch) => put_fetch(out, fetch, receipt, time_us),
        Op::Ack { receipts, result } => {
            put_receipts(out, receipts, time_us);
            out.extend_from_slice(result.as_deref().unwrap_or_default());
        }
        Op::AckSend(ack_send) => put_ack_send(out, ack_send, time_us),
        Op::Nack {
            receipts,
            kind,
            error,
            random,
            note,
            pause,
        } => {
            put_receipts(out, receipts, time_us);
            put_more_of_nack(out, *pause, silence_of(op));
            if let NackKind::Delay(ms) = kind {
                put_number(out, *ms);
            }
            if *random != 0 {
                put_fixed(out, *random);
            }
            if let Some(note) = note {
                put_bytes(out, note);
            }
            out.extend_from_slice(error.as_deref().unwrap_or_default());
        }
        Op::AckCost {
            receipts,
            cost,
            result,
        } => {
            put_receipts(out, receipts, time_us);
            put_number(out, *cost);
            out.extend_from_slice(result.as_deref().unwrap_or_default());
        }
        Op::Limit { name, rule } => {
            put_limit_rule(out, rule);
            out.extend_from_slice(name);
        }
        Op::AckEach { receipts, results } => {
            put_receipts(out, receipts, time_us);
            results.iter().for_each(|text| put_bytes(out, text));
        }
        Op::Grace { ms, receipts } => {
            put_number(out, *ms);
            put_receipts(out, receipts, time_us);
        }
        Op::Touch { ms, receipts, note } => {
            put_number(out, *ms);
            put_receipts(out, receipts, time_us);
            out.extend_from_slice(note.as_deref().unwrap_or_default());
        }
        Op::EndLeases { receipts } => put_receipts(out, receipts, time_us),
        Op::Advance { to, .. } => put_number(out, *to),
        Op::Cancel { ids } | Op::Redrive(Redrive::Ids(ids)) => put_ids(out, ids),
        Op::Reschedule { id, due } => {
            put_bytes(out, id);
            put_due(out, *due);
        }
        Op::Update { id, payload } => {
            put_bytes(out, id);
            out.extend_from_slice(payload);
        }
        Op::Signal { id, text } => {
            put_bytes(out, id);
            out.extend_from_slice(text);
        }
        Op::Redrive(Redrive::Oldest(most)) => put_number(out, *most),
        Op::Purge { state, group } => {
            if let Some(state) = state {
                let number = State::ALL.iter().position(|other| other == state);
                out.push(number.unwrap_or_default() as u8);
            }
            out.extend_from_slice(group.as_deref().unwrap_or_default());
        }
        Op::FindDo { seqs, .. } => put_seqs(out, seqs),
        Op::Remove(removal) => match removal {
            Removal::Messages(seqs) => put_runs(out, seqs),
            Removal::Holds(groups) => put_ids(out, groups),
            Removal::TakenIds => {}
        },
        Op::Pause { group, ms } => {
            if let Some(ms) = ms {
                put_number(out, *ms);
            }
            out.extend_from_slice(group.as_deref().unwrap_or_default());
        }
        Op::Resume { group } => out.extend_from_slice(group.as_deref().unwrap_or_default()),
        Op::GroupSet { group, changes } => {
            for n in [changes.weight, changes.concurrency].into_iter().flatten() {
                put_number(out, n);
            }
            if let Some(rate) = changes.rate {
                put_rate(out, rate);
            }
            out.extend_from_slice(group);
        }
        Op::Schedule(new) => {
            put_bytes(out, &new.name);
            let extras = Extras {
                limits: new.limits.as_deref().copied().unwrap_or_default(),
                ..Extras::default()
            };
            let manner = Manner {
                missed: new.missed,
                overlap: new.overlap,
                extras,
            };
            put_rule(out, &new.rule, manner);
            let send = &new.send;
            put_optional_bytes(out, send.group.as_deref());
            out.push(send.priority as u8);
            put_send_options(out, &send.choices, of_send(send));
            out.extend_from_slice(send.payloads.first().copied().unwrap_or_default());
        }
        Op::Unschedule { name } | Op::PauseSchedule { name, .. } => out.extend_from_slice(name),
        Op::CatchUp { since, .. } => put_number(out, *since),
        Op::Moved(moved) => put_moved(out, moved),
        Op::Children(counted) => put_counted(out, counted),
    }
}

fn of_send(send: &Send) -> OfSend {
    OfSend {
        if_group: send.if_group,
        dedup: send.dedup.clone(),
        rerun: send.rerun,
    }
}

fn put_send(out: &mut Vec<u8>, send: &Send) {
    if let Some(id) = &send.id {
        put_bytes(out, id);
    }
    if let Some(group) = &send.group {
        put_bytes(out, group);
    }
    if send.priority != 0 {
        out.push(send.priority as u8);
    }
    if send.due != DueTime::Now {
        put_due(out, send.due);
    }
    if has_options(send) {
        put_send_options(out, &send.choices, of_send(send));
    }
    if let Some(salt) = send.new_salt {
        // A count of 1 marks the salt. A single payload is otherwise written
        // without a count.
        put_number(out, 1);
        put_fixed(out, salt);
    }
    if let [only] = send.payloads[..] {
        if send.replace {
            put_number(out, 0);
        } else if send.new_salt.is_some() {
            put_number(out, 1);
        }
        out.extend_from_slice(only);
    } else {
        put_number(out, send.payloads.len() as u64);
        for payload in &send.payloads {
            put_bytes(out, payload);
        }
    }
}

fn put_ack_send(out: &mut Vec<u8>, ack_send: &AckSend, time_us: u64) {
    if let Some(receipt) = ack_send.receipt {
        put_delta(out, receipt, time_us);
    }
    if let Some(result) = &ack_send.result {
        put_bytes(out, result);
    }
    if !ack_send.signals.is_empty() {
        put_number(out, ack_send.signals.len() as u64);
    }
    for signal in &ack_send.signals {
        put_bytes(out, &signal.id);
        put_bytes(out, &signal.text);
    }
    let mut body = Vec::new();
    for send in &ack_send.sends {
        body.clear();
        body.push(flags_of_send(send));
        put_send(&mut body, send);
        put_bytes(out, &body);
    }
}

/// Writes the pause, and the way in which the messages are kept back, if there is either.
fn put_more_of_nack(out: &mut Vec<u8>, pause: Option<NackPause>, silence: Option<(u8, Millis)>) {
    let paused = pause.map_or(0, |pause| match pause.of {
        Paused::Group => more_of_nack::PAUSE_GROUP,
        Paused::Queue => more_of_nack::PAUSE_QUEUE,
    });
    let silenced = silence.map_or(0, |(bit, _)| bit);
    if paused | silenced != 0 {
        out.push(paused | silenced);
    }
    let silence = silence.map(|(_, ms)| ms);
    for ms in [pause.map(|pause| pause.ms), silence].into_iter().flatten() {
        put_number(out, ms);
    }
}

fn put_fetch(out: &mut Vec<u8>, fetch: &Fetch, receipt: Receipt, time_us: u64) {
    let results = if fetch.results.is_empty() {
        0
    } else {
        more::RESULTS
    };
    let token = fetch.token.as_ref().map_or(0, |_| more::TOKEN);
    if results | token != 0 {
        out.push(results | token);
    }
    if let Some(token) = &fetch.token {
        put_bytes(out, token);
    }
    if let Some(consumer) = &fetch.consumer {
        put_bytes(out, consumer);
    }
    if let Some(group) = &fetch.group {
        put_bytes(out, group);
    }
    if !fetch.acks.is_empty() {
        put_receipts(out, &fetch.acks, time_us);
    }
    if receipt != time_us {
        put_delta(out, receipt, time_us);
    }
    let limits = limits_of(fetch);
    if limits != [Some(1), Some(1), None, None] {
        // None of these numbers can be 0, so 0 stands for "not given".
        for n in limits {
            put_number(out, n.unwrap_or(0));
        }
    }
    for text in &fetch.results {
        put_bytes(out, text);
    }
}

/// Writes receipts as differences. They are microseconds of Unix time or
/// slightly more, so they lie close to `time_us` and to each other.
#[inline]
fn put_receipts(out: &mut Vec<u8>, receipts: &[Receipt], time_us: u64) {
    put_number(out, receipts.len() as u64);
    let mut base = time_us;
    for receipt in receipts {
        put_delta(out, *receipt, base);
        base = *receipt;
    }
}

/// Writes the numbers of messages as differences, because messages that are found
/// together were often sent together.
fn put_seqs(out: &mut Vec<u8>, seqs: &[Seq]) {
    put_number(out, seqs.len() as u64);
    let mut base = 0;
    for seq in seqs {
        put_delta(out, *seq, base);
        base = *seq;
    }
}

/// Writes numbers in order. Each run of consecutive numbers is written as its distance
/// from the run before it, and how many numbers follow its first.
fn put_runs(out: &mut Vec<u8>, seqs: &[Seq]) {
    let runs = || seqs.chunk_by(|one, next| *next == one + 1);
    put_number(out, runs().count() as u64);
    let mut end = 0;
    for run in runs() {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        put_number(out, first.wrapping_sub(end));
        put_number(out, last.wrapping_sub(*first));
        end = *last;
    }
}

fn put_moved(out: &mut Vec<u8>, moved: &Moved) {
    if let Some(stays) = moved.stays {
        out.push(stays as u8);
    }
    put_number(out, moved.gone.len() as u64);
    let mut base = 0;
    for (seq, new_id) in &moved.gone {
        put_delta(out, *seq, base);
        base = *seq;
        put_optional_bytes(out, new_id.as_deref());
    }
}

fn put_counted(out: &mut Vec<u8>, counted: &Counted) {
    put_bytes(out, &counted.from);
    put_number(out, counted.of.len() as u64);
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    for one in &counted.of {
        put_bytes(out, &one.id);
        out.push(
            flag(one.delta.dies, more_of_children::DIES)
                | flag(one.dies_later, more_of_children::DIES_LATER),
        );
        for n in one.delta.counts() {
            put_signed(out, n);
        }
    }
}

fn put_ids(out: &mut Vec<u8>, ids: &[Cow<[u8]>]) {
    put_number(out, ids.len() as u64);
    for id in ids {
        put_bytes(out, id);
    }
}
