//! COST and WEIGHT: how much a message counts for in a limit.

use super::*;

#[test]
fn what_costs_more_than_a_limit_ever_allows_holds_up_nobody_else() {
    let mut f = fixture(&[]);
    let large = f.send(limited(Some("g"), &["b", "a"], 11));
    f.apply(&set("a", weighted(0, &[(10, 100)])));
    f.apply(&set("b", rule(1, &[])));
    let small = f.limited(&["a"], 1);
    let is_stuck = |f: &Fixture| {
        let limits = f.queue.limits().unwrap();
        limits.get(limits.find(b"a").unwrap()).unwrap().is_stuck()
    };
    assert_eq!(seqs(&f.most(9)), [small]);
    assert!(is_stuck(&f));
    assert_eq!(f.why(large), ("limit", None, Some("a".into())));
    f.wait(1000);
    assert!(f.most(9).is_empty());
    f.apply(&set("a", weighted(0, &[(11, 100)])));
    assert!(!is_stuck(&f));
    assert_eq!(seqs(&f.most(9)), [large]);
}

#[test]
fn windows_begin_anew_when_weight_comes_or_goes() {
    let mut f = fixture(&[("a", rule(0, &[(2, 1000)]))]);
    for _ in 0..6 {
        f.limited(&["a"], 5);
    }
    assert_eq!(f.most(9).len(), 2);
    f.apply(&set("a", weighted(0, &[(10, 1000)])));
    assert_eq!(f.most(9).len(), 2);
    f.apply(&set("a", rule(0, &[(1, 1000)])));
    assert_eq!(f.most(9).len(), 1);
    validate(&f.queue).unwrap();
}

#[test]
fn a_cost_beyond_all_sums_keeps_a_window_full_and_ends() {
    let mut f = fixture(&[("a", weighted(0, &[(9, 1000)]))]);
    for _ in 0..9 {
        f.limited(&["a"], 1);
    }
    // Each ack adds 2^53-1 to the window: first within one millisecond, then in others.
    for got in f.most(9) {
        f.ack_cost(got, MAX_EXACT);
    }
    let waits = f.limited(&["a"], 1);
    let begun = f.now;
    f.wait(999);
    assert!(f.most(9).is_empty());
    assert_eq!(f.why(waits).1, Some(begun + 1000));
    f.wait(1);
    assert_eq!(seqs(&f.most(9)), [waits]);
}

#[test]
fn costs_beyond_64_bits_in_a_window_leave_it_one_by_one() {
    let mut f = fixture(&[("a", weighted(0, &[(3000, 5000)]))]);
    for _ in 0..3000 {
        f.send(limited(None, &["a"], 1));
    }
    // In each millisecond one delivery, and its cost is known when all have been delivered.
    let mut given = Vec::new();
    for _ in 0..2500 {
        given.extend(f.fetch(Fetch::one()));
        f.wait(1);
    }
    let last = f.now - 1;
    for got in given {
        f.ack_cost(got, MAX_EXACT);
    }
    validate(&f.queue).unwrap();
    assert!(f.most(9).is_empty());
    f.wait(last + 5000 - f.now - 1);
    assert!(f.most(9).is_empty());
    f.wait(1);
    assert_eq!(f.most(9).len(), 9);
}

#[test]
fn what_runs_of_a_limit_is_exact_beyond_64_bits() {
    let mut f = fixture(&[]);
    for _ in 0..2500 {
        f.send(limited(None, &["a"], MAX_EXACT));
    }
    let got = f.fetch(Fetch {
        count: 2500,
        ..Fetch::one()
    });
    f.apply(&set("a", weighted(5, &[])));
    let small = f.limited(&["a"], 1);
    for one in &got[1..] {
        f.ack(&[one.1]);
    }
    validate(&f.queue).unwrap();
    assert!(f.most(9).is_empty(), "one still runs");
    f.ack(&[got[0].1]);
    assert_eq!(seqs(&f.most(9)), [small]);
}
