use super::*;
use crate::message::score::Score;
use crate::Seq;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The pending messages of a group with their states: the model of a backlog.
type Model = BTreeMap<OrderKey, (StoredState, Member)>;

fn member(seq: Seq, due: Millis, kind: u8) -> Member {
    // Most messages are plain, as in real groups.
    let score = if kind == 9 { -1.5 } else { due as f64 };
    let score = Score::of_double(score).unwrap();
    Member {
        key: OrderKey::new(if kind == 8 { -3 } else { 0 }, score, seq),
        due,
        failed: kind == 7,
    }
}

fn check(backlog: &Backlog, model: &Model) {
    let now = 40;
    let pending = backlog.all();
    for (side, failed) in [(pending.fresh, false), (pending.failed, true)] {
        let of_side = || model.values().filter(|(_, m)| m.failed == failed);
        for (order, due) in [(side.due, true), (side.ahead, false)] {
            let of_order = || of_side().filter(|(stored, _)| (*stored == StoredState::Due) == due);
            let expected: Vec<_> = of_order().map(|(_, m)| (m.key, m.due)).collect();
            assert_eq!(order.iter().collect::<Vec<_>>(), expected);
            assert_eq!(order.len(), expected.len());
        }
        let keys = || of_side().map(|(_, m)| m.key);
        let due = || of_side().filter(|(_, m)| m.due <= now);
        assert_eq!(side.first(), keys().next());
        assert_eq!(side.first_due(now), due().map(|(_, m)| m.key).next());
        assert!(side.all_due(now).eq(due().map(|(_, m)| m.key)));
        assert_eq!(side.earliest(), of_side().map(|(_, m)| m.due).min());
        let bound = OrderKey::start_of(0);
        let before = of_side().filter(|(_, m)| m.key < bound);
        assert_eq!(
            side.earliest_before(&bound),
            before.map(|(_, m)| m.due).min()
        );
        for order in [side.due, side.ahead] {
            let all: Vec<_> = order.keys(Bound::Unbounded).collect();
            assert!(order.iter().map(|(key, _)| key).eq(all.iter().copied()));
            for (at, key) in all.iter().enumerate() {
                assert!(order
                    .keys(Bound::Included(*key))
                    .eq(all[at..].iter().copied()));
                assert!(order
                    .keys(Bound::Excluded(*key))
                    .eq(all[at + 1..].iter().copied()));
            }
        }
    }
    for stored in [StoredState::Delayed, StoredState::Due, StoredState::Retry] {
        let there = || model.values().filter(|(at, _)| *at == stored);
        assert_eq!(pending.count_at(stored), there().count() as u64);
    }
    let again = Backlog::from_members(model.values().copied().collect());
    assert_eq!(format!("{backlog:?}"), format!("{again:?}"));
    if model.is_empty() {
        assert_eq!(backlog.memory_bytes(), 0);
    }
}

proptest! {
    #[test]
    fn a_backlog_equals_a_map_of_its_messages_after_any_steps(
        steps in prop::collection::vec((0u8..10, 0u64..60, 0u8..40, any::<prop::sample::Index>()), 1..60),
    ) {
        let mut backlog = Backlog::default();
        let mut model = Model::new();
        // Numbers in no order, as when failed or delayed messages become pending
        // again.
        let numbers = (1u64 << 33..).map(|n| n ^ 21);
        for (seq, (step, due, kind, index)) in numbers.zip(steps) {
            let any = || model.keys().copied().nth(index.index(model.len().max(1)));
            match step {
                0..=4 => {
                    let member = member(seq, due, kind);
                    let stored = match (due <= 20, member.failed) {
                        (true, _) => StoredState::Due,
                        (false, true) => StoredState::Retry,
                        (false, false) => StoredState::Delayed,
                    };
                    let known = backlog.insert(stored, member);
                    let mut due = model.values().filter(|(stored, _)| *stored == StoredState::Due);
                    let behind = stored == StoredState::Due && due.any(|(_, m)| m.key < member.key);
                    prop_assert_eq!(known, behind && matches!(backlog, Backlog::Few(_)));
                    model.insert(member.key, (stored, member));
                }
                5..=7 => {
                    if let Some((stored, member)) = any().and_then(|key| model.remove(&key)) {
                        backlog.remove(stored, member);
                    }
                }
                _ => {
                    let waiting = model.values().filter(|(stored, _)| *stored != StoredState::Due);
                    // Step 8 promotes the message that is due first, the usual
                    // case; step 9 another one.
                    let next = match step {
                        8 => waiting.min_by_key(|(_, m)| (m.due, m.key.seq())),
                        _ => waiting.max_by_key(|(_, m)| m.key),
                    };
                    if let Some((from, member)) = next.copied() {
                        backlog.promote(from, member);
                        model.insert(member.key, (StoredState::Due, member));
                    }
                }
            }
            check(&backlog, &model);
        }
    }
}

#[test]
fn four_plain_messages_of_a_group_take_48_bytes() {
    assert_eq!(size_of::<Backlog>(), 32);
    let mut list = List::default();
    for seq in 0..4 {
        assert!(list.insert(StoredState::Due, member(seq, 5, 0)).is_ok());
    }
    assert_eq!(list.memory_bytes(), 48);
}

#[test]
fn due_times_and_numbers_beyond_48_bits_are_not_kept_in_a_list() {
    const MOST: u64 = (1 << 48) - 1;
    let kept = [(0, 1), (0x1234_5678_9abc, 0x0fed_cba9_8765), (MOST, MOST)];
    for (due, seq) in kept {
        let mut backlog = Backlog::default();
        backlog.insert(StoredState::Delayed, member(seq, due, 0));
        assert!(matches!(backlog, Backlog::Few(_)));
        let known: Vec<_> = backlog.all().fresh.ahead.iter().collect();
        assert_eq!(known, [(OrderKey::new(0, Score::of_time(due), seq), due)]);
    }
    for (due, seq) in [(MOST + 1, 1), (1, MOST + 1)] {
        let mut backlog = Backlog::default();
        backlog.insert(StoredState::Delayed, member(seq, due, 0));
        assert!(matches!(backlog, Backlog::Any(_)));
        assert_eq!(backlog.all().fresh.earliest(), Some(due));
    }
}
