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
    let seqs: Vec<Seq> = std::iter::from_fn(|| leases.pop()).collect();
    assert_eq!(seqs.len(), 499);
    assert_eq!(leases.by_end(Bound::Unbounded).count(), 0);
}

proptest! {
    #[test]
    fn leases_of_any_length_are_found_in_both_orders(
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
                    // Most are of one length.
                    receipt += 1;
                    let until = receipt + if length < 35 { 50 } else { length };
                    leases.insert(Lease { receipt, seq: receipt * 10, until });
                    model.insert(receipt, until);
                }
            }
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
            let at = leases.by_end(Bound::Included(bound));
            prop_assert!(at.eq(ends.iter().copied().filter(|end| *end >= bound)));
        }
        let loaded = Leases::from_parts(leases.iter().collect(), Vec::new());
        prop_assert_eq!(listed(&loaded), listed(&leases));
        prop_assert!(loaded.by_end(Bound::Unbounded).eq(ends));
        let mut freed: Vec<Seq> = std::iter::from_fn(|| leases.pop()).collect();
        freed.sort_unstable();
        prop_assert!(freed.into_iter().eq(model.keys().map(|receipt| receipt * 10)));
        prop_assert_eq!(leases.memory_bytes(), 0);
    }
}

#[test]
fn leases_of_one_length_are_in_one_index() {
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
fn a_batch_is_over_with_the_last_of_its_leases() {
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
