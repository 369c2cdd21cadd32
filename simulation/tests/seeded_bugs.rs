//! The simulation finds every seeded bug, by the rule that is about it.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use dq_simulation::bugs::{self, Bug};
use dq_simulation::cluster::Cluster;
use dq_simulation::neighbours::{self, Neighbours};
use dq_simulation::town::{self, Town};

/// The maximum number of steps of a cluster.
const STEPS: u64 = 3_000;
/// The number of clusters in which a bug is searched, and the maximum number of steps of each,
/// round by round. A step costs more the longer a cluster lives, so the bugs that can show
/// early, nearly all, are found soonest in many short lives.
const ROUNDS: [(u64, u64); 3] = [(1_000, 30), (250, 300), (2_000, STEPS)];
/// Bugs that few clusters show, each with the seed of a cluster that shows it. It is tried
/// first, and then all others, in case it no longer shows the bug.
const SHOWN: [(&str, u64); 21] = [
    ("a breaker counts failures of a tenth of the window", 154),
    ("a breaker opens one failure early", 32),
    ("an open breaker delivers", 70),
    ("a breaker opens for no longer the second time", 36),
    ("a breaker closes in half the time", 36),
    ("a half-open breaker has two probes", 147),
    ("FIND passes over BATCH", 29),
    ("FIND passes over UNTIL", 766),
    ("FIND passes over HEADER", 566),
    ("FIND passes over PAYLOAD", 493),
    ("FIND passes over ERROR", 331),
    ("FIND leaves out its last message", 363),
    ("FIND includes UNTIL", 357),
    ("ERRORS is one too many", 603),
    ("MAXTIMEOUTS is passed over", 869),
    ("schedules fire in a closed queue", 789),
    ("the lead of a clock is kept", 13),
    ("spans lose time with the lead", 13),
    ("a parent waits for one child too few", 111),
    ("GO is HOLD", 194),
    ("HOLD is GO", 11),
];

/// The clusters in which a bug is searched: the seed and the maximum number of steps of each.
fn lives(bug: Bug) -> impl Iterator<Item = (u64, u64)> {
    let shown = SHOWN.into_iter().filter(move |(name, _)| *name == bug.name);
    let rounds = ROUNDS.into_iter();
    let all = rounds.flat_map(|(seeds, steps)| (1..=seeds).map(move |seed| (seed, steps)));
    shown.map(|(_, seed)| (seed, STEPS)).chain(all)
}

/// The message of the simulation in the first cluster in which it finds the bug by its
/// rule. If there is none, its other messages. If there is none, what else it says.
fn hunt(bug: Bug) -> Result<String, Vec<String>> {
    let mut others = Vec::new();
    for (seed, steps) in lives(bug) {
        let mut cluster = Cluster::new(seed, false).with_bug(bug);
        let run = || (0..steps).find_map(|_| cluster.step().err());
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Some(found)) if found.contains(bug.finds) => return Ok(found),
            Ok(Some(other)) => others.push(other),
            Ok(None) => {}
            Err(_) => others.push("it panicked".into()),
        }
    }
    others.sort_unstable();
    others.dedup();
    others.truncate(5);
    Err(others)
}

#[test]
fn every_seeded_bug_is_found_by_the_rule_that_is_about_it() {
    let next = AtomicUsize::new(0);
    let hunt_all = || {
        let mut missed = Vec::new();
        while let Some(bug) = bugs::all().nth(next.fetch_add(1, Ordering::Relaxed)) {
            match hunt(*bug) {
                Ok(found) => println!("{}: {found}", bug.name),
                Err(others) => missed.push((bug.name, bug.finds, others)),
            }
        }
        missed
    };
    let missed = thread::scope(|scope| {
        let hunters: Vec<_> = (0..2).map(|_| scope.spawn(hunt_all)).collect();
        let missed = hunters.into_iter().map(|hunter| hunter.join().unwrap());
        missed.flatten().collect::<Vec<_>>()
    });
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

/// Number of queues of a town, and of steps that it does at most until a bug is found.
const QUEUES: usize = 1_000;
const STEPS_OF_A_TOWN: u64 = 4_000;

#[test]
fn every_seeded_bug_of_many_queues_is_found_by_the_rule_that_is_about_it() {
    let mut missed = Vec::new();
    for (bug, finds) in town::BUGS {
        let found = (1..=8).find_map(|seed| {
            let mut town = Town::new(seed, QUEUES).with_bug(*bug);
            let broken = (0..STEPS_OF_A_TOWN).find_map(|_| town.step().err());
            broken.filter(|broken| broken.contains(finds))
        });
        match found {
            Some(found) => println!("{bug:?}: {found}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
fn thousands_of_queues_keep_the_rules() {
    for (seed, queues) in [(1, 3_000), (2, 1_000), (3, 40)] {
        let mut town = Town::new(seed, queues);
        for _ in 0..STEPS_OF_A_TOWN {
            town.step()
                .unwrap_or_else(|broken| panic!("seed {seed}, step {}: {broken}", town.steps));
        }
        town.compare().unwrap();
        assert!(town.delivered > 500, "{} deliveries", town.delivered);
    }
}

/// Number of steps of queues that send each other messages.
const STEPS_OF_NEIGHBOURS: u64 = 600;

#[test]
fn every_seeded_bug_between_queues_is_found_by_the_rule_that_is_about_it() {
    for (bug, finds) in neighbours::BUGS {
        let found = (1..=64).find_map(|seed| {
            let mut neighbours = Neighbours::new(seed).with_bug(*bug);
            let broken = (0..STEPS_OF_NEIGHBOURS).find_map(|_| neighbours.step().err());
            broken.filter(|broken| broken.contains(finds))
        });
        assert!(found.is_some(), "{bug:?} was not found");
    }
}

#[test]
fn queues_that_send_each_other_messages_equal_their_replicas() {
    let mut sent = 0;
    for seed in 1..=32 {
        let mut neighbours = Neighbours::new(seed);
        for step in 0..STEPS_OF_NEIGHBOURS {
            let broken = neighbours.step().err();
            assert_eq!(broken, None, "seed {seed}, step {step}");
        }
        sent += neighbours.sent;
    }
    assert!(sent > 500, "the queues have sent each other {sent} times");
}
