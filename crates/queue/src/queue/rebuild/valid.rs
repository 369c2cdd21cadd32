//! Validation of a queue for tests: the queue that is rebuilt from its parts must
//! be equal in every index and count.

use std::ops::Bound;

use crate::index::records::Own;
use crate::message::state::{State, StoredState};
use crate::queue::rebuild::batch_members::told;
use crate::queue::Queue;
use crate::{GroupIx, Seq};

/// Compares indexes and counts.
pub fn compare(queue: &Queue, rebuilt: &Queue) -> Result<(), String> {
    let same = |what: &str, a: String, b: String| match a == b {
        true => Ok(()),
        false => Err(format!("{what}: {a} in place of {b}")),
    };
    let pending = |queue: &Queue| -> Vec<Vec<((u64, Seq), ())>> {
        let mut all = Vec::new();
        for stored in [StoredState::Delayed, StoredState::Due, StoredState::Retry] {
            for index in queue.indexes.waiting.indexes(stored) {
                if !index.is_empty() {
                    all.push(index.iter().collect());
                }
            }
        }
        all
    };
    let counts = |queue: &Queue| {
        let states: Vec<u64> = State::ALL.iter().map(|s| queue.count(*s)).collect();
        let bytes = (queue.indexes.bytes, queue.indexes.running_bytes);
        let grouped = (queue.indexes.grouped_ready, queue.indexes.grouped_running);
        (states, bytes, queue.live(), grouped)
    };
    let groups = |queue: &Queue| {
        let mut groups: Vec<_> = queue
            .state
            .groups
            .starting_at(0)
            .filter_map(|g| g.1)
            .collect();
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
                (
                    (group.counted, group.listed, group.held, group.breaker()),
                    (
                        group.is_hidden(),
                        group.home().map(|home| home.cost),
                        group.ext().usage.clone(),
                    ),
                ),
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
        let batches: Vec<_> = queue.state.leases.batches().collect();
        let line: Vec<_> = queue
            .indexes
            .ready_line
            .iter()
            .map(|key| (key.priority, key.seq))
            .collect();
        let records = &queue.state.records;
        let none = Own::default();
        let own = records.own.as_deref().unwrap_or(&none);
        let own = [&own.finished, &own.cancelled].map(|own| [&own.by_time, &own.by_end]);
        (
            format!(
                "{:?}",
                (&queue.indexes.expiring, &queue.indexes.held, line, batches)
            ),
            format!(
                "{:?}",
                ([&records.finished, &records.dead, &records.cancelled], own),
            ),
            queue
                .state
                .leases
                .by_end(Bound::Unbounded)
                .collect::<Vec<_>>(),
            queue.state.leases.iter().collect::<Vec<_>>(),
            (
                queue.state.groups.listed(),
                queue.state.groups.held_count(),
                queue.state.seldom.plain_breaker.clone(),
                queue.breaker_change_times(),
            ),
        )
    };
    let consumers = |queue: &Queue| {
        let known = queue.state.consumers.known();
        let known: Vec<_> = known.iter().map(|c| (&c.name, c.running)).collect();
        let old_ends: Vec<_> = queue.old_ends().collect();
        let tokens = queue.state.consumers.token_deliveries();
        format!("{:?}", (known, tokens, old_ends))
    };
    let limits = |queue: &Queue| -> Vec<String> {
        let parts = queue.parts();
        let limits = parts.limits().into_iter();
        limits.map(|limit| limit.told()).collect()
    };
    same(
        "limits",
        format!("{:?}", limits(queue)),
        format!("{:?}", limits(rebuilt)),
    )?;
    let fair = |queue: &Queue| queue.state.seldom.fair.as_deref().map(|fair| fair.told());
    same(
        "usage",
        format!("{:?}", fair(queue)),
        format!("{:?}", fair(rebuilt)),
    )?;
    let siblings = |queue: &Queue| {
        let all = queue.siblings();
        let sets = all.map(|all| {
            all.iter()
                .map(|(n, of)| (n, of.clone()))
                .collect::<Vec<_>>()
        });
        format!("{:?}", (sets, all.map(|all| all.members.all())))
    };
    same("siblings", siblings(queue), siblings(rebuilt))?;
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
    if !queue
        .indexes
        .first_dues
        .is_same(&rebuilt.indexes.first_dues)
    {
        return Err("first due times are miscounted".into());
    }
    same("consumers", consumers(queue), consumers(rebuilt))
}
