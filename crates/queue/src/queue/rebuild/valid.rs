//! Validation of a queue for tests: the queue that is rebuilt from its parts must
//! be equal in every index and count.

use std::collections::HashMap;
use std::ops::Bound;

use crate::index::records::Own;
use crate::message::state::{State, StoredState};
use crate::queue::rebuild::batches::told;
use crate::queue::rebuild::{Builder, GroupPart, Marks, Names, ReleasedPart};
use crate::queue::Queue;
use crate::{GroupIx, Seq};

/// Builds a queue from the parts of another one.
pub fn rebuild(queue: &Queue) -> Result<Queue, String> {
    let parts = queue.parts();
    let mut builder = Builder::new(parts.whole())?;
    if let Some(circuit) = parts.plain_breaker() {
        builder.breaker(None, circuit.clone())?;
    }
    let mut groups = HashMap::new();
    for (ix, _) in queue.groups.starting_at(0) {
        let Some(seen) = parts.group(ix) else {
            continue;
        };
        let group = seen.group;
        groups.insert(ix, groups.len() as u64);
        let part = GroupPart {
            settings: group.ext().settings.clone(),
            paused_until: group.ext().paused_until,
            held_by: seen
                .held_by
                .iter()
                .map(|(seq, id)| (*seq, id.to_box()))
                .collect(),
            line: seen.line,
            turn: seen.turn,
            wake: seen.wake,
            breaker: None,
        };
        builder.group(&group.name, part)?;
        if let Some(circuit) = seen.breaker {
            builder.breaker(groups.get(&ix).copied(), circuit.clone())?;
        }
    }
    let mut consumers: HashMap<&[u8], u64> = HashMap::new();
    for (name, known) in parts.consumers() {
        consumers.insert(name, consumers.len() as u64);
        builder.consumer(name, Some(known))?;
    }
    for (name, delivery) in parts.token_deliveries() {
        builder.token(name, delivery.clone())?;
    }
    for (receipt, end) in parts.old_ends() {
        builder.old_end(receipt, end)?;
    }
    for (name, schedule) in parts.schedules() {
        builder.schedule(name, schedule.clone())?;
    }
    for (id, ended_at) in parts.dedup() {
        builder.dedup(id, ended_at)?;
    }
    for batch in parts.batches() {
        builder.batch(batch.first, batch.count())?;
    }
    let mut named = Vec::new();
    for numbered in parts.messages() {
        let message = numbered.message;
        if let Some(batch) = numbered.batch.filter(|batch| !named.contains(batch)) {
            let of_number = parts.named_batch(batch).ok_or("a batch is missing")?;
            let counts = of_number.counts;
            builder.named_batch(&of_number.name, batch, counts.finished, counts.cancelled)?;
            named.push(batch);
        }
        let name = parts.consumer(message.history.consumer());
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
            numbered.content,
            Names {
                group: groups.get(&message.group).copied(),
                consumer,
                batch: numbered
                    .batch
                    .and_then(|batch| named.iter().position(|known| *known == batch))
                    .map(|number| number as u64),
            },
            numbered.term,
            Marks {
                first_sent: numbered.first_sent,
                ..Marks::default()
            },
        )?;
    }
    for released in parts.released() {
        builder.released(ReleasedPart::of(released))?;
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
        for stored in [StoredState::Delayed, StoredState::Due, StoredState::Retry] {
            for index in queue.waiting.indexes(stored) {
                if !index.is_empty() {
                    all.push(index.iter().collect());
                }
            }
        }
        all
    };
    let counts = |queue: &Queue| {
        let states: Vec<u64> = State::ALL.iter().map(|s| queue.count(*s)).collect();
        let bytes = (queue.bytes, queue.running_bytes);
        let grouped = (queue.grouped_ready, queue.grouped_running);
        (states, bytes, queue.live(), grouped)
    };
    let groups = |queue: &Queue| {
        let mut groups: Vec<_> = queue.groups.starting_at(0).filter_map(|g| g.1).collect();
        groups.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let told = groups.into_iter().map(|group| {
            (
                group.name.clone(),
                (
                    group.running,
                    group.batches().collect::<Vec<_>>(),
                    group.ext().turn,
                    group.ext().wake,
                    group.ext().held,
                ),
                (group.counted, group.listed, group.held, group.breaker()),
                group
                    .expected(GroupIx::NONE)
                    .map(|key| (key.priority, key.join, key.seq))
                    .collect::<Vec<_>>(),
                group.backlog.clone(),
            )
        });
        format!("{:?}", told.collect::<Vec<_>>())
    };
    let others = |queue: &Queue| {
        let batches: Vec<_> = queue.leases.batches().collect();
        let line: Vec<_> = queue
            .ready_line
            .iter()
            .map(|key| (key.priority, key.seq))
            .collect();
        let records = &queue.records;
        let none = Own::default();
        let own = records.own.as_deref().unwrap_or(&none);
        let own = [&own.finished, &own.cancelled].map(|own| [&own.by_time, &own.by_end]);
        (
            format!("{:?}", (&queue.expiring, line, batches)),
            format!(
                "{:?}",
                ([&records.finished, &records.dead, &records.cancelled], own),
            ),
            queue.leases.by_end(Bound::Unbounded).collect::<Vec<_>>(),
            queue.leases.iter().collect::<Vec<_>>(),
            (
                queue.groups.listed(),
                queue.groups.held_count(),
                queue.plain_breaker.clone(),
                queue.breaker_change_times(),
            ),
        )
    };
    let consumers = |queue: &Queue| {
        let known = queue.consumers.known();
        let known: Vec<_> = known.iter().map(|c| (&c.name, c.running)).collect();
        let old_ends: Vec<_> = queue.old_ends().collect();
        let tokens = queue.consumers.token_deliveries();
        format!("{:?}", (known, tokens, old_ends))
    };
    same("batches", told(queue.batches()), told(rebuilt.batches()))?;
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
