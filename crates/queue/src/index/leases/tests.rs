use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn lease(receipt: Receipt) -> Lease {
    Lease {
        receipt,
        seq: receipt * 10,
        until: 1000 - receipt,
    }
}

#[test]
fn a_lease_is_found_by_its_receipt_and_by_its_end() {
    let mut leases = Leases::default();
    (1..=500).for_each(|receipt| leases.insert(lease(receipt)));
    assert_eq!(leases.first_end(), Some((500, 500)));
    leases.move_end(lease(500), 2000);
    assert_eq!(leases.first_end(), Some((501, 499)));
    let moved = leases.find(500).unwrap();
    assert_eq!((moved.seq, moved.until), (5000, 2000));
    assert_eq!(leases.take_current(500, 2000), None);
    assert_eq!(leases.take_current(500, 1999), Some(moved));
    assert_eq!((leases.find(500), leases.len()), (None, 499));
    assert_eq!(leases.by_end(Bound::Unbounded).count(), 499);
    assert_eq!(leases.iter().count(), 499);
}

proptest! {
    #[test]
    fn leases_of_any_length_are_in_order_of_receipts_and_of_ends(
        acts in vec((0u8..8, 0usize..400, 0u64..40), 1..600),
    ) {
        let mut leases = Leases::default();
        let mut model: BTreeMap<Receipt, Millis> = BTreeMap::new();
        let mut receipt = 0;
        for (act, which, length) in acts {
            let some = model.iter().nth(which % (model.len() + 1));
            let some = some.map(|(receipt, until)| (*receipt, *until));
            match (act, some) {
                (0, Some((receipt, until))) => {
                    let lease = Lease { receipt, seq: receipt * 10, until };
                    leases.move_end(lease, until + length);
                    model.insert(receipt, until + length);
                }
                (1..=3, Some((receipt, until))) => {
                    let taken = leases.take(receipt).map(|l| (l.seq, l.until));
                    prop_assert_eq!(taken, Some((receipt * 10, until)));
                    model.remove(&receipt);
                }
                _ => {
                    // Most leases have the same length.
                    receipt += 1;
                    let until = receipt + if length < 35 { 50 } else { length };
                    leases.insert(Lease { receipt, seq: receipt * 10, until });
                    model.insert(receipt, until);
                }
            }
            leases.in_step.check();
            prop_assert_eq!(leases.find(receipt).is_some(), model.contains_key(&receipt));
            prop_assert_eq!(leases.len(), model.len());
        }
        let listed = |leases: &Leases| -> Vec<_> {
            leases.iter().map(|lease| (lease.receipt, lease.until)).collect()
        };
        prop_assert!(listed(&leases).into_iter().eq(model.clone()));
        let mut ends: Vec<_> = model.iter().map(|(r, until)| (*until, *r)).collect();
        ends.sort_unstable();
        prop_assert_eq!(leases.first_end(), ends.first().copied());
        for from in 0..receipt + 60 {
            let bound = (from, receipt / 2);
            let behind = leases.by_end(Bound::Excluded(bound));
            prop_assert!(behind.eq(ends.iter().copied().filter(|end| *end > bound)));
            let before = leases.by_end_back(bound);
            prop_assert!(before.eq(ends.iter().rev().copied().filter(|end| *end < bound)));
            let at = leases.by_end(Bound::Included(bound));
            prop_assert!(at.eq(ends.iter().copied().filter(|end| *end >= bound)));
        }
        let loaded = Leases::from_parts(leases.iter().collect(), Vec::new());
        prop_assert_eq!(listed(&loaded), listed(&leases));
        prop_assert!(loaded.by_end(Bound::Unbounded).eq(ends));
        for (receipt, until) in model {
            let taken = leases.take(receipt).map(|lease| (lease.seq, lease.until));
            prop_assert_eq!(taken, Some((receipt * 10, until)));
        }
        prop_assert_eq!(leases.by_end(Bound::Unbounded).count(), 0);
        prop_assert!(leases.memory_bytes() < 200, "{}", leases.memory_bytes());
    }

    #[test]
    fn a_series_has_the_leases_that_were_added_and_not_removed(
        acts in vec((0u8..12, 0usize..4, 1u64..50), 1..100),
    ) {
        let mut series = Series::default();
        let mut model: BTreeMap<Receipt, Lease> = BTreeMap::new();
        let mut latest = Lease::with(0);
        for (act, from, count) in acts {
            let some = model.keys().nth(from * model.len() / 4).copied().unwrap_or(0);
            let from_there: Vec<Receipt> = model.range(some..).map(|(receipt, _)| *receipt).collect();
            let leaving: Vec<Receipt> = match act {
                // Removal from the front, from the end, and of most leases in a
                // range.
                0 => from_there.into_iter().take(count as usize).collect(),
                1 => from_there.into_iter().rev().take(count as usize).collect(),
                2 => from_there.into_iter().filter(|receipt| receipt % 17 > 0).collect(),
                3 => model.keys().copied().collect(),
                4 => vec![some],
                _ => Vec::new(),
            };
            for receipt in leaving {
                let taken = series.take(receipt).map(|lease| (lease.seq, lease.until));
                let known = model.remove(&receipt).map(|lease| (lease.seq, lease.until));
                prop_assert_eq!(taken, known);
                prop_assert!(series.take(receipt).is_none());
                series.check();
            }
            for _ in 0..if act > 4 { count } else { 0 } {
                latest = Lease {
                    receipt: latest.receipt + 1 + count % 3,
                    seq: count,
                    until: latest.until + count % 2,
                };
                prop_assert!(series.push(latest));
                prop_assert!(!series.push(latest));
                model.insert(latest.receipt, latest);
                series.check();
            }
            prop_assert_eq!(series.len(), model.len());
            prop_assert_eq!(series.first(), model.values().next().copied());
            prop_assert_eq!(series.find(some), model.get(&some).copied());
            let behind = series.iter_behind(|lease| lease.receipt <= some);
            prop_assert!(behind.eq(model.range(some + 1..).map(|(_, lease)| *lease)));
        }
        prop_assert!(series.clone().iter_behind(|_| false).eq(model.into_values()));
        while series.drain_some(20) > 0 {}
        prop_assert_eq!(series.iter_behind(|_| false).count(), 0);
    }
}

#[test]
fn a_series_refuses_a_lease_that_ends_before_its_last_one() {
    let of = |receipt, until| Lease {
        receipt,
        seq: 1,
        until,
    };
    let mut series = Series::default();
    assert!(series.push(of(5, 100)));
    assert!(!series.push(of(6, 99)) && !series.push(of(4, 200)) && !series.push(of(5, 100)));
    assert!(series.push(of(7, 3600)));
    // A lease that was removed no longer limits what may be added.
    assert!(series.take(7).is_some());
    assert!(series.push(of(8, 101)));
    assert!(series.take(8).is_some() && series.take(5).is_some());
    assert!(series.push(of(9, 1)));
}

#[test]
fn a_long_series_frees_memory_as_leases_are_removed() {
    let mut series = Series::default();
    let lease = |receipt| Lease {
        receipt,
        seq: receipt,
        until: receipt,
    };
    (1..=100_000).for_each(|receipt| assert!(series.push(lease(receipt))));
    let full = series.memory_bytes();
    assert!(full < 100_000 * 40, "{full}");
    // Leases are removed from the end of each run in the first half, and from its front in the
    // second.
    for receipt in (1..=50_000).rev().chain(50_001..=100_000) {
        let stays = receipt % 100 == 0;
        assert!(stays || series.take(receipt).is_some());
    }
    series.check();
    let thin = series.memory_bytes();
    // Each remaining lease has its own run, and the same number of runs is empty.
    assert!(thin < full / 12, "{thin} of {full}");
    for receipt in (1..=100_000).filter(|receipt| receipt % 100 == 0) {
        assert!(series.take(receipt).is_some());
    }
    assert_eq!((series.len(), series.memory_bytes()), (0, 0));
}

#[test]
fn leases_of_one_length_all_stay_in_the_series() {
    let mut leases = Leases::default();
    let lease = |receipt| Lease {
        receipt,
        seq: receipt,
        until: receipt / 100 + 30_000,
    };
    (1..=100_000).for_each(|receipt| leases.insert(lease(receipt)));
    for receipt in (1..=100_000).filter(|receipt| receipt % 3 > 0) {
        assert!(leases.take(receipt).is_some());
    }
    (100_001..=200_000).for_each(|receipt| leases.insert(lease(receipt)));
    assert!(leases.others.is_empty() && leases.others_by_end.is_empty());
}

#[test]
fn a_batch_ends_with_the_last_of_its_leases() {
    let mut leases = Leases::default();
    (1..=6).for_each(|receipt| leases.insert(lease(receipt)));
    leases.open_batch(Batch::new(2, 3));
    leases.open_batch(Batch::new(5, 1));
    let batches: Vec<Batch> = leases.batches().collect();
    assert_eq!(batches, [Batch { last: 4, first: 2 }]);
    let firsts = (1..=6).map(|receipt| leases.batch_of(receipt).first);
    assert!(firsts.eq([1, 2, 2, 2, 5, 6]));
    let later = leases.later_of_batch(2).map(|lease| lease.receipt);
    assert!(later.eq([3, 4]));
    for (receipt, is_over) in [(3, false), (2, false), (6, true), (4, true)] {
        assert_eq!(leases.take(receipt), Some(lease(receipt)));
        assert_eq!(leases.leave_batch(receipt).is_some(), is_over, "{receipt}");
    }
    assert_eq!(leases.batches().count(), 0);
}
