//! The steps of the random operations with limits.

use proptest::prelude::*;

use crate::Millis;

/// One random step. Small numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(u8, u8, u64, i8, Millis),
    Fetch(u64, u64, u8),
    Ack(u8, Option<u64>),
    Nack(u8, u8),
    Cancel(u8),
    Limit(u8, u64, Vec<(u64, Millis)>, bool),
    Pause(bool),
    Wait(Millis, u64),
    Purge(u8),
}

/// A step in which a message costs at most `costs`.
pub(super) fn step(costs: u64) -> impl Strategy<Value = Step> {
    let cost = 1..=costs;
    let rates = prop::collection::vec((1..6u64, 1..60u64), 0..3);
    prop_oneof![
        8 => (1..32u8, 0..4u8, cost, -1..=1i8, 0..30u64)
            .prop_map(|(names, group, cost, priority, delay)|
                Step::Send(names, group, cost, priority, delay.saturating_sub(20))),
        6 => (1..6u64, 1..3u64, 0..8u8).prop_map(|(n, per, kind)| Step::Fetch(n, per, kind)),
        4 => (any::<u8>(), prop::option::of(0..8u64)).prop_map(|(n, cost)| Step::Ack(n, cost)),
        2 => (any::<u8>(), 0..3u8).prop_map(|(n, kind)| Step::Nack(n, kind)),
        1 => any::<u8>().prop_map(Step::Cancel),
        2 => (0..4u8, 0..4u64, rates, any::<bool>())
            .prop_map(|(n, c, rates, weighs)| Step::Limit(n, c, rates, weighs)),
        1 => any::<bool>().prop_map(Step::Pause),
        4 => (0..40u64, 0..4u64).prop_map(|(ms, most)| Step::Wait(ms, most)),
        1 => (0..6u8).prop_map(Step::Purge),
    ]
}
