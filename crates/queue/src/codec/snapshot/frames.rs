//! Writes the data of the frames of a snapshot.

use super::{group_flags, limit_flags, phase, tag};
use crate::codec::options::{
    put_clock, put_limit_rule, put_rate, put_rule, put_send_options, put_settings, Manner, OfSend,
};
use crate::codec::wire::{
    put_bytes, put_delta, put_fixed, put_flag, put_number, put_optional, put_optional_bytes,
};
use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::{Circuit, Phase};
use crate::index::batches::NamedBatch;
use crate::index::fair_line::{FairLine, Usage};
use crate::message::after::Counts;
use crate::named_limits::Limit;
use crate::queue::rebuild::{GroupSeen, Known, ReleasedPart, SavedPosition, Whole};
use crate::schedule::Schedule;
use crate::seeded::{seeded, Bug};
use crate::stats::Totals;
use crate::Seq;

pub fn put_whole(out: &mut Vec<u8>, whole: &Whole) {
    out.push(tag::WHOLE);
    put_settings(out, &whole.settings);
    put_clock(out, whole.clock);
    put_fixed(out, whole.salt);
    for n in [whole.last, whole.next_seq, whole.last_receipt] {
        put_number(out, n);
    }
    put_totals(out, &whole.totals);
    put_optional(
        out,
        whole
            .paused_until
            .filter(|_| !seeded(Bug::SnapshotForgetsPause)),
    );
    put_window(out, &whole.window);
    let counts = whole.lateness.counts();
    put_number(out, counts.len() as u64);
    let mut base = 0;
    for (late, n) in counts {
        put_delta(out, late, base);
        put_number(out, n);
        base = late;
    }
    put_number(out, whole.lateness.max().unwrap_or(0));
    if let Some(position) = whole.plain_position {
        put_position(out, position);
    }
}

fn put_totals(out: &mut Vec<u8>, totals: &Totals) {
    for n in [
        totals.sent,
        totals.duplicates,
        totals.delivered,
        totals.redelivered,
        totals.acked,
        totals.nacked,
        totals.timeouts,
        totals.deaths,
        totals.expired,
        totals.cancellations,
        totals.redriven,
        totals.skipped_fires,
    ] {
        put_number(out, n.get());
    }
}

fn put_window(out: &mut Vec<u8>, window: &RateWindow) {
    let given = window.given();
    put_number(out, given.len() as u64);
    let mut base = 0;
    for (at, n) in given {
        put_delta(out, at, base);
        put_number(out, n);
        base = at;
    }
}

fn put_position(out: &mut Vec<u8>, position: SavedPosition) {
    out.push(position.priority as u8);
    for n in [position.time, position.rank, position.seq] {
        put_number(out, n);
    }
}

/// Writes a group without its name, which is the end of the frame.
pub fn put_group(out: &mut Vec<u8>, seen: &GroupSeen) {
    let GroupSeen {
        group,
        held_by,
        line,
        turn,
        wake,
        home,
        breaker: _,
    } = seen;
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    let ext = group.ext();
    out.push(
        flag(ext.settings.is_some(), group_flags::SETTINGS)
            | flag(ext.paused_until.is_some(), group_flags::PAUSE)
            | flag(!held_by.is_empty(), group_flags::HELD)
            | flag(line.is_some(), group_flags::LINE)
            | flag(*turn != 0, group_flags::TURN)
            | flag(wake.is_some(), group_flags::WAKE)
            | flag(home.is_some(), group_flags::HOME),
    );
    if let Some(settings) = &ext.settings {
        put_number(out, settings.weight);
        put_number(out, settings.concurrency);
        put_rate(out, settings.rate);
        put_window(out, &settings.window);
    }
    if let Some(until) = ext.paused_until {
        put_number(out, until);
    }
    if !held_by.is_empty() {
        put_number(out, held_by.len() as u64);
        for (seq, id) in held_by {
            put_number(out, *seq);
            put_bytes(out, id.as_bytes());
        }
    }
    if let Some(position) = line {
        put_position(out, *position);
    }
    if *turn != 0 {
        put_number(out, *turn);
    }
    if let Some(wake) = wake {
        put_number(out, *wake);
    }
    if let Some((limit, cost)) = home {
        put_bytes(out, limit);
        put_number(out, *cost);
    }
}

/// Writes a limit without its name, which is the end of the frame. Its running messages
/// follow from the messages, and its waiting groups from the groups.
pub fn put_limit(out: &mut Vec<u8>, limit: &Limit) {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    let weighted = limit.own.as_ref().is_some_and(|rule| rule.weighted);
    out.push(tag::LIMIT);
    out.push(
        flag(limit.own.is_some(), limit_flags::RULE)
            | flag(weighted, limit_flags::WEIGHTED)
            | flag(limit.open.is_some(), limit_flags::OPEN),
    );
    if let Some(rule) = &limit.own {
        put_limit_rule(out, rule);
    }
    put_number(out, limit.windows().count() as u64);
    for (_, window) in limit.windows() {
        put_window(out, window);
    }
}

/// Writes the breaker of the group with this number, or of the ungrouped messages
/// (`None`).
pub fn put_breaker(out: &mut Vec<u8>, group: Option<u64>, circuit: &Circuit) {
    out.push(tag::BREAKER);
    put_number(out, group.map_or(0, |number| number + 1));
    put_number(out, circuit.cause());
    match circuit.phase() {
        Phase::Closed(failures) => {
            out.push(phase::CLOSED);
            put_number(out, failures.len() as u64);
            let mut base = 0;
            for at in failures {
                put_delta(out, *at, base);
                base = *at;
            }
        }
        Phase::Open { until, length } => {
            out.push(phase::OPEN);
            put_number(out, *until);
            put_number(out, *length);
        }
        Phase::HalfOpen { length, probe } => {
            out.push(phase::HALF_OPEN);
            put_number(out, *length);
            put_optional(out, *probe);
        }
    }
}

/// Writes the usage of the group with this number, or of the ungrouped messages (`None`), and
/// with the latter the state that is common to all.
pub fn put_usage(out: &mut Vec<u8>, group: Option<u64>, usage: &Usage, of: Option<&FairLine>) {
    out.push(tag::USAGE);
    put_number(out, group.map_or(0, |number| number + 1));
    for n in [usage.tag, usage.mean, usage.estimated] {
        put_number(out, n);
    }
    if let Some(fair) = of {
        put_number(out, fair.clock);
        put_number(out, fair.mean);
    }
}

/// Writes a consumer, with when it was last seen and its counts if it is known.
pub fn put_consumer(out: &mut Vec<u8>, name: &[u8], known: Option<Known>) {
    out.push(tag::CONSUMER);
    put_bytes(out, name);
    if let Some((last_seen, counts)) = known {
        put_number(out, last_seen);
        for n in counts {
            put_number(out, n.get());
        }
    }
}

/// Writes a schedule without its payload, which is the end of the frame.
pub fn put_schedule(out: &mut Vec<u8>, name: &[u8], schedule: &Schedule) {
    put_bytes(out, name);
    let manner = Manner {
        missed: schedule.missed,
        overlap: schedule.overlap,
        extras: schedule.extras(),
    };
    put_rule(out, &schedule.rule, manner);
    put_optional(out, schedule.next_at);
    put_optional(out, schedule.last_at);
    put_number(out, schedule.fired.get());
    put_optional(out, schedule.last_seq);
    let template = &schedule.template;
    put_optional_bytes(out, template.group.as_deref());
    out.push(template.priority as u8);
    let of_send = OfSend {
        if_group: template.if_group,
        ..OfSend::default()
    };
    put_send_options(out, &template.choices, of_send);
}

/// Writes a named batch without its name, which is the end of the frame. The numbers of
/// its pending, running and dead messages follow from the messages.
pub fn put_named_batch(out: &mut Vec<u8>, number: Seq, named: &NamedBatch) {
    out.push(tag::NAMED);
    put_flag(out, false);
    put_number(out, number);
    put_number(out, named.counts.finished);
    put_number(out, named.counts.cancelled);
}

/// Writes messages that are held no longer and have not been released yet.
pub fn put_released(out: &mut Vec<u8>, part: &ReleasedPart) {
    out.push(tag::NAMED);
    put_flag(out, true);
    put_number(out, part.batch);
    put_number(out, part.at);
    put_flag(out, part.dies);
    put_counts(out, &part.counts);
    let mut base = 0;
    for seq in &part.held {
        put_delta(out, *seq, base);
        base = *seq;
    }
}

/// Writes the messages of a batch, by how they are.
pub fn put_counts(out: &mut Vec<u8>, counts: &Counts) {
    for n in [
        counts.pending,
        counts.running,
        counts.dead,
        counts.finished,
        counts.cancelled,
    ] {
        put_number(out, n);
    }
}
