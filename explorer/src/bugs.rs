//! The seeded bugs of the queue, and the list that must find each of them.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Instant;

use dq_queue::seeded::{self, Bug};

/// The list in which each bug shows.
const SHOWN: &[(Bug, &str)] = &[
    (Bug::LetterUnowed, "rerun"),
    (Bug::LetterKeepsHold, "dead letters"),
    (Bug::LetterTakesRerun, "rerun"),
    (Bug::LetterStaysNowhere, "dead letters"),
    (Bug::DeathTakenBack, "parents"),
    (Bug::CancelKeepsHold, "groups"),
    (Bug::CancelKeepsBytes, "groups"),
    (Bug::CancelKeepsPlace, "groups"),
    (Bug::RedriveLeavesBatch, "slices"),
    (Bug::RedriveUntoldToParent, "parents"),
    (Bug::RedriveForgetsBytes, "timeouts"),
    (Bug::RedriveKeepsHold, "timeouts"),
    (Bug::RemovalUntold, "waiting clients"),
    (Bug::TouchWakesLate, "leases"),
    (Bug::GraceWakesLate, "leases"),
    (Bug::RescheduleKeepsPlace, "waiting clients"),
    (Bug::UpdateForgetsBytes, "records"),
    (Bug::PauseKeepsPlace, "groups"),
    (Bug::PauseWakesLate, "timeouts"),
    (Bug::ResumeUnlogged, "timeouts"),
    (Bug::GroupSetKeepsPlace, "rates"),
    (Bug::AckKeepsBytes, "groups"),
    (Bug::AckKeepsPlace, "groups"),
    (Bug::NackKeepsPlace, "groups"),
    (Bug::LimitStaysClosed, "limits"),
    (Bug::LimitWakesLate, "limits"),
    (Bug::FetchGivesPaused, "groups"),
    (Bug::FetchDoesNotEnd, "limits"),
    (Bug::PrunedHoldStays, "timeouts"),
    (Bug::CopyRuns, "leases"),
    (Bug::SnapshotForgetsPause, "groups"),
    (Bug::SnapshotForgetsNote, "timeouts"),
    (Bug::SnapshotForgetsOldEnd, "leases"),
    (Bug::SnapshotForgetsDedup, "records"),
    (Bug::LogForgetsSpare, "clocks"),
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
                while let Some((bug, list)) = SHOWN.get(next.fetch_add(1, Relaxed)) {
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
                    match fault_in(&told) {
                        Some(fault) => println!("{name} | {list} | {fault} | {took:.1}"),
                        None => {
                            println!("{name} | {list} | not found | {took:.1}");
                            if let Ok(mut missed) = missed.lock() {
                                missed.push(name);
                            }
                        }
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap_or_default();
    println!(
        "{} of {} bugs found",
        SHOWN.len() - missed.len(),
        SHOWN.len()
    );
    Ok(missed.is_empty())
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
