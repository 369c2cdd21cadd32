//! What must be true of each part, and of a queue as a whole.

use super::super::super::lease::Batch;
use super::super::super::limits::{self, ensure, exact, name, Invalid, MAX_COUNT};
use super::super::super::message::{Message, Place};
use super::super::super::schedule::Schedule;
use super::super::super::settings::{Clock, Rate};
use super::super::super::{Millis, Receipt, Seq, MAX_EXACT, NEVER};
use super::build::GroupPart;
use super::{Checked, Standing, Whole};
use crate::core::rate::RateWindow;

/// What the queue has once.
pub fn whole(whole: &Whole) -> Checked {
    let numbers = [
        whole.last,
        whole.next_seq,
        whole.last_receipt,
        whole.redriven.0,
        whole.redriven.1,
    ];
    numbers.into_iter().try_for_each(exact)?;
    ensure(whole.next_seq > 0, "messages are numbered from 1")?;
    ensure(
        matches!(whole.clock, Clock::Server) || whole.clock == Clock::Manual(whole.last),
        "a manual clock does not show the time of its queue",
    )?;
    time_or_never(whole.paused_until)?;
    window(&whole.window, whole.settings.rate, whole.last)?;
    whole
        .plain_line
        .map_or(Ok(()), |at| standing(at, whole.next_seq))
}

/// A group.
pub fn group(part: &GroupPart, next_seq: Seq, last: Millis) -> Checked {
    if let Some(settings) = &part.settings {
        [settings.weight, settings.concurrency]
            .into_iter()
            .try_for_each(exact)?;
        settings.rate.map_or(Ok(()), limits::rate)?;
        window(&settings.window, settings.rate, last)?;
        ensure(
            **settings != Default::default(),
            "a group has settings that say nothing",
        )?;
    }
    time_or_never(part.paused_until)?;
    for (seq, id) in &part.held_by {
        ensure(*seq < next_seq, "a group is held by no message")?;
        name(id)?;
    }
    exact(part.turn)?;
    part.wake.map_or(Ok(()), exact)?;
    part.line.map_or(Ok(()), |at| standing(at, next_seq))
}

/// A schedule.
pub fn schedule(schedule: &Schedule, next_seq: Seq) -> Checked {
    let template = &schedule.template;
    template.group.as_deref().map_or(Ok(()), name)?;
    limits::choices(&template.choices)?;
    let times = [schedule.next_at, schedule.last_at, Some(schedule.fired)];
    times.into_iter().flatten().try_for_each(exact)?;
    ensure(
        schedule.last_seq.is_none_or(|seq| seq < next_seq),
        "a schedule names no message",
    )
}

/// A batch, behind one whose last receipt is `before`.
pub fn batch(first: Receipt, len: u64, before: Receipt, last_receipt: Receipt) -> Checked {
    let last = first.saturating_add(len).saturating_sub(1);
    ensure(
        (2..=MAX_COUNT).contains(&len) && first > before && last <= last_receipt,
        "a batch is out of its range",
    )
}

/// A message.
pub fn message(message: &Message, redriving: bool, last_receipt: Receipt) -> Checked {
    exact(message.due)?;
    exact(message.sent_at)?;
    message.given_id().map_or(Ok(()), name)?;
    let place = message.place;
    ensure(
        !redriving || place == Place::Dead,
        "a message is redriven that is not dead",
    )?;
    let Some(ext) = message.ext.as_deref() else {
        return ensure(
            matches!(place, Place::Delayed | Place::Due),
            "a message is at a place that it cannot have come to",
        );
    };
    ext.choices.as_deref().map_or(Ok(()), limits::choices)?;
    exact(ext.score_base)?;
    exact(ext.ttl_base)?;
    for at in [ext.started_at, ext.first_started_at] {
        ensure(at == NEVER || at <= MAX_EXACT, "a time is beyond 2^53-1")?;
    }
    ensure(
        match place {
            Place::Delayed => ext.failures == 0,
            Place::Retry => ext.failures > 0,
            _ => true,
        },
        "a message waits at a place that its failures do not fit",
    )?;
    ensure(
        ext.timeouts <= ext.failures,
        "a message has more timeouts than failures",
    )?;
    ensure(
        match place.is_ended() {
            true => ext.ended_at <= MAX_EXACT,
            false => ext.ended_at == NEVER,
        },
        "the end of a message does not fit its place",
    )?;
    ensure(
        match place {
            Place::Running => {
                (1..=last_receipt).contains(&ext.receipt)
                    && (1..=ext.receipt).contains(&ext.batch)
                    && ext.lease_until <= MAX_EXACT
                    && ext.attempt > 0
            }
            _ => ext.receipt == 0 && ext.batch == 0 && ext.lease_until == NEVER,
        },
        "the lease of a message does not fit its place",
    )
}

/// A message that is leased.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    pub receipt: Receipt,
    pub seq: Seq,
    pub batch: Receipt,
    pub until: Millis,
    pub group: Option<u64>,
}

impl Running {
    pub fn of(seq: Seq, message: &Message, group: Option<u64>) -> Option<Running> {
        let ext = message.ext.as_deref()?;
        Some(Running {
            receipt: ext.receipt,
            seq,
            batch: ext.batch,
            until: ext.lease_until,
            group,
        })
    }
}

/// What runs, batch by batch.
#[derive(Debug, Default)]
pub struct Batches {
    /// The batches of more than one message.
    pub batches: Vec<(Receipt, Batch)>,
    /// Groups, by number, and how many more batches they have.
    pub of_groups: Vec<(u64, u64)>,
}

/// Sorts what runs by receipt and finds out which batches there are. A batch
/// is of one group, within its own receipts and without gaps of others'.
pub fn batches(running: &mut [Running], declared: &[(Receipt, u64)]) -> Result<Batches, Invalid> {
    running.sort_unstable_by_key(|r| r.receipt);
    let mut found = Batches::default();
    let mut declared = declared.iter().copied().peekable();
    let mut before: Option<Running> = None;
    for r in running.iter().copied() {
        ensure(
            before.is_none_or(|before| before.receipt < r.receipt),
            "two messages have one receipt",
        )?;
        // A batch that has been passed must have had a message that runs.
        while let Some((first, len)) = declared.next_if(|(first, len)| first + len <= r.receipt) {
            ensure_used(&found, first, len)?;
        }
        let covering = declared.peek().filter(|(first, _)| *first <= r.receipt);
        let (first, len) = covering.copied().unwrap_or((r.receipt, 1));
        ensure(
            r.batch == first,
            "a message is of a batch that is not its own",
        )?;
        ensure(r.group.is_some() || len == 1, "a batch is of no group")?;
        let begins = before.is_none_or(|before| before.batch != r.batch);
        if begins {
            if let Some(group) = r.group {
                found.of_groups.push((group, 1));
            }
            if len > 1 {
                found.batches.push((first, Batch { len, left: 1 }));
            }
        } else {
            ensure(
                before.is_some_and(|before| before.group == r.group),
                "a batch is of several groups",
            )?;
            if let Some((_, batch)) = found.batches.last_mut() {
                batch.left += 1;
            }
        }
        before = Some(r);
    }
    for (first, len) in declared {
        ensure_used(&found, first, len)?;
    }
    Ok(found)
}

fn ensure_used(found: &Batches, first: Receipt, len: u64) -> Checked {
    let last = found.batches.last();
    ensure(
        last.is_some_and(|(at, batch)| *at == first && batch.len == len),
        "nothing of a batch runs",
    )
}

fn standing(at: Standing, next_seq: Seq) -> Checked {
    exact(at.time)?;
    exact(at.rank)?;
    ensure(at.seq < next_seq, "a place in the line is of no message")
}

fn time_or_never(at: Option<Millis>) -> Checked {
    match at {
        None | Some(NEVER) => Ok(()),
        Some(at) => exact(at),
    }
}

fn window(window: &RateWindow, rate: Option<Rate>, last: Millis) -> Checked {
    ensure(
        rate.is_some() || window.is_empty(),
        "deliveries are counted for no limit",
    )?;
    let (mut before, mut total) = (None, 0u64);
    for (at, n) in window.given() {
        limits::positive(n)?;
        ensure(
            before < Some(at) && at <= last,
            "deliveries are counted out of order",
        )?;
        before = Some(at);
        total = total.saturating_add(n);
    }
    exact(total)
}

#[cfg(test)]
pub use whole_queue::{compare, rebuild};

#[cfg(test)]
mod whole_queue {
    use std::collections::HashMap;

    use crate::core::message::{Place, State};
    use crate::core::queue::parts::{Builder, GroupPart};
    use crate::core::queue::Queue;
    use crate::core::Seq;

    /// A queue of the parts of another one.
    pub fn rebuild(queue: &Queue) -> Result<Queue, String> {
        let parts = queue.parts();
        let mut builder = Builder::new(parts.whole())?;
        let mut groups = HashMap::new();
        for (ix, group) in queue.groups.from_number(0) {
            let Some(group) = group else { continue };
            groups.insert(ix, groups.len() as u64);
            let part = GroupPart {
                settings: group.settings.clone(),
                paused_until: group.paused_until,
                held_by: group.held_by.clone(),
                line: group.line.map(|key| parts.standing(key)),
                turn: group.turn,
                wake: group.wake,
            };
            builder.group(&group.name, part)?;
        }
        let mut consumers: HashMap<&[u8], u64> = HashMap::new();
        for (name, known) in parts.consumers() {
            consumers.insert(name, consumers.len() as u64);
            builder.consumer(name, Some(known))?;
        }
        for (name, schedule) in parts.schedules() {
            builder.schedule(name, schedule.clone())?;
        }
        for (id, ended_at) in parts.dedup() {
            builder.dedup(id, ended_at)?;
        }
        for (first, len) in parts.batches() {
            builder.batch(first, len)?;
        }
        for numbered in parts.messages() {
            let message = numbered.message;
            let name = message
                .ext
                .as_ref()
                .and_then(|ext| parts.consumer(ext.consumer));
            let consumer = match name {
                None => None,
                Some(name) => {
                    let next = consumers.len() as u64;
                    let number = *consumers.entry(name).or_insert(next);
                    if number == next {
                        builder.consumer(name, None)?;
                    }
                    Some(number)
                }
            };
            builder.message(
                numbered.seq,
                message.clone(),
                groups.get(&message.group).copied(),
                consumer,
                numbered.redriving,
            )?;
        }
        Ok(builder.finish()?)
    }

    /// Compares indexes and counts.
    pub fn compare(queue: &Queue, rebuilt: &Queue) -> Result<(), String> {
        let same = |what: &str, a: String, b: String| match a == b {
            true => Ok(()),
            false => Err(format!("{what}: {a} in place of {b}")),
        };
        let pending = |queue: &Queue| -> Vec<Vec<((u64, Seq), ())>> {
            let mut all = Vec::new();
            for place in [Place::Delayed, Place::Due, Place::Retry] {
                let grouped = queue.waiting.grouped.at(place).into_iter();
                for index in queue.waiting.indexes(place).chain(grouped) {
                    if !index.is_empty() {
                        all.push(index.iter().collect());
                    }
                }
            }
            all
        };
        let counts = |queue: &Queue| {
            let states: Vec<u64> = State::ALL.iter().map(|s| queue.count(*s)).collect();
            (states, queue.bytes, queue.live(), queue.grouped_ready)
        };
        let groups = |queue: &Queue| {
            let groups = queue.groups.by_name();
            // One that only records name, purged ones maybe, is nowhere to be seen.
            let seen = groups
                .into_iter()
                .filter(|group| group.pending() + group.running > 0 || !group.held_by.is_empty());
            let told = seen.map(|group| {
                (
                    group.name.clone(),
                    (group.due, group.retrying, group.running, group.batches),
                    (group.ready, group.turn, group.wake),
                    (group.order.clone(), group.failed.clone()),
                )
            });
            format!("{:?}", told.collect::<Vec<_>>())
        };
        let others = |queue: &Queue| {
            let mut batches: Vec<_> = queue.leases.batches().collect();
            batches.sort_unstable_by_key(|(first, _)| *first);
            let line: Vec<_> = queue
                .line
                .iter()
                .map(|(key, ())| (key.priority, key.seq))
                .collect();
            let records = &queue.records;
            (
                format!("{:?}", (&queue.expiring, &queue.redriving, line, batches)),
                format!(
                    "{:?}",
                    (&records.finished, &records.dead, &records.cancelled)
                ),
                format!("{:?}", queue.leases.by_end()),
                queue.groups.listed(),
            )
        };
        let consumers = |queue: &Queue| {
            let known = queue.consumers.known();
            format!(
                "{:?}",
                known
                    .iter()
                    .map(|c| (&c.name, c.running))
                    .collect::<Vec<_>>()
            )
        };
        same("groups", groups(queue), groups(rebuilt))?;
        same(
            "counts",
            format!("{:?}", counts(queue)),
            format!("{:?}", counts(rebuilt)),
        )?;
        same(
            "pending",
            format!("{:?}", pending(queue)),
            format!("{:?}", pending(rebuilt)),
        )?;
        same(
            "others",
            format!("{:?}", others(queue)),
            format!("{:?}", others(rebuilt)),
        )?;
        same("consumers", consumers(queue), consumers(rebuilt))
    }
}
