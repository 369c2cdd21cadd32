//! The seeded bugs of the queue, and the list that must find each of them.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Instant;

use dq_queue::seeded::{self, Bug};

/// The list in which each bug shows, and whether the project had this bug once.
const SHOWN: &[(Bug, &str, bool)] = &[
    (Bug::LetterUnowed, "rerun", false),
    (Bug::LetterKeepsHold, "dead letters", false),
    (Bug::LetterTakesRerun, "rerun", false),
    (Bug::LetterStaysNowhere, "dead letters", false),
    (Bug::DeathTakenBack, "parents", true),
    (Bug::CancelKeepsHold, "groups", false),
    (Bug::CancelKeepsBytes, "groups", false),
    (Bug::CancelKeepsPlace, "groups", false),
    (Bug::RedriveLeavesBatch, "slices", false),
    (Bug::RedriveUntoldToParent, "parents", false),
    (Bug::RedriveForgetsBytes, "timeouts", false),
    (Bug::RedriveKeepsHold, "timeouts", false),
    (Bug::RemovalUntold, "waiting clients", false),
    (Bug::TouchWakesLate, "leases", false),
    (Bug::GraceWakesLate, "leases", false),
    (Bug::RescheduleKeepsPlace, "waiting clients", false),
    (Bug::UpdateForgetsBytes, "records", false),
    (Bug::PauseKeepsPlace, "groups", false),
    (Bug::PauseWakesLate, "timeouts", false),
    (Bug::ResumeUnlogged, "timeouts", false),
    (Bug::GroupSetKeepsPlace, "rates", false),
    (Bug::AckKeepsBytes, "groups", false),
    (Bug::AckKeepsPlace, "groups", false),
    (Bug::NackKeepsPlace, "groups", false),
    (Bug::LimitStaysClosed, "limits", false),
    (Bug::LimitWakesLate, "limits", false),
    (Bug::FetchGivesPaused, "groups", false),
    (Bug::FetchDoesNotEnd, "limits", false),
    (Bug::PrunedHoldStays, "timeouts", false),
    (Bug::CopyRuns, "leases", false),
    (Bug::SnapshotForgetsPause, "groups", false),
    (Bug::SnapshotForgetsNote, "timeouts", false),
    (Bug::SnapshotForgetsOldEnd, "leases", false),
    (Bug::SnapshotForgetsDedup, "records", false),
    (Bug::LogForgetsSpare, "clocks", false),
    (Bug::LetterRedriven, "rerun", true),
    (Bug::LetterReplaced, "dead letters", true),
    (Bug::LetterKeepsId, "rerun", true),
    (Bug::LimitByBacklog, "limited groups", true),
    (Bug::PurgeKeepsUsage, "fair", true),
    (Bug::EmptyBatchesStay, "batches", true),
    (Bug::SignalJoinsEarly, "park", true),
    (Bug::CancelledHasReason, "records", true),
    (Bug::AckSendCountsDead, "acksend", true),
    (Bug::RedriveKeepsTtl, "records", false),
    (Bug::RerunJoinsByCommand, "timeouts", false),
    (Bug::StaleWrites, "effects", false),
    (Bug::ConditionComesLate, "effects", false),
    (Bug::EffectUnlogged, "effects", false),
    (Bug::ExpiredKeyStays, "effects", false),
    (Bug::TokenForgetsEffects, "effects", false),
];

/// Selects the bug with this name.
///
/// # Errors
/// There is no such bug.
pub fn select(name: &str) -> Result<(), String> {
    let named = seeded::ALL.iter().find(|bug| format!("{bug:?}") == name);
    seeded::select(*named.ok_or(format!("there is no bug {name}"))?);
    Ok(())
}

/// Looks for each bug in a process of its own, since one of them does not end, and prints what
/// finds it. Returns whether all were found.
///
/// # Errors
/// A process cannot be started.
pub fn find_all() -> Result<bool, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((bug, list, had)) = SHOWN.get(next.fetch_add(1, Relaxed)) {
                    let began = Instant::now();
                    let name = format!("{bug:?}");
                    let args = [
                        "--first",
                        "--threads",
                        "1",
                        "--depth",
                        "7",
                        "--seconds",
                        "150",
                    ];
                    let ran = Command::new(&this)
                        .args([list, "--patience", "5", "--bug", &name])
                        .args(args)
                        .output();
                    let told = ran.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
                    let told = told.unwrap_or_default();
                    let took = began.elapsed().as_secs_f64();
                    let had = if *had { "had" } else { "" };
                    match fault_in(&told) {
                        Some(fault) => println!("{name} | {had} | {list} | {fault} | {took:.1}"),
                        None => {
                            println!("{name} | {had} | {list} | not found | {took:.1}");
                            if let Ok(mut missed) = missed.lock() {
                                missed.push(name);
                            }
                        }
                    }
                }
            });
        }
    });
    let mut missed = missed.into_inner().unwrap_or_default();
    if !is_made_short(&this) {
        missed.push("a random walk".to_owned());
    }
    println!(
        "{} bugs; not found: {}",
        SHOWN.len(),
        match missed.is_empty() {
            true => "none".to_owned(),
            false => missed.join(", "),
        }
    );
    Ok(missed.is_empty())
}

/// Whether a random walk finds a bug, and is made shorter.
fn is_made_short(this: &Path) -> bool {
    let bug = format!("{:?}", Bug::SignalJoinsEarly);
    let ran = Command::new(this)
        .args(["walk", "--seconds", "150", "--bug", &bug])
        .output();
    let told = ran.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
    let told = told.unwrap_or_default();
    let numbers = told.lines().find_map(|line| {
        let (long, short) = line.split_once(": ")?.1.split_once(" actions, made ")?;
        Some((long.parse::<usize>().ok()?, short.parse::<usize>().ok()?))
    });
    let (long, short) = numbers.unwrap_or_default();
    println!("{bug} | a random walk | {long} actions, made {short}");
    short > 0 && short * 2 < long
}

/// The rule of the first fault in the report of a run, and the number of commands that lead to it.
fn fault_in(told: &str) -> Option<String> {
    let (_, first) = told.split_once("\n\n")?;
    let (head, path) = first.split_once('\n')?;
    let (rule, why) = head.split_once(": ")?;
    // A step that does not end is told with the name of its list.
    let rule = if why == "this does not end" {
        why
    } else {
        rule
    };
    let path = path.split("\n\n").next().unwrap_or_default();
    let commands = path.lines().filter(|line| line.starts_with("DQ.")).count();
    Some(format!("{rule} | {commands}"))
}
