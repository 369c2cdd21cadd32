//! `make simulate`: runs simulated clusters, one seed after the other, until the
//! time is up or one of them fails. After some of them it runs a few queues that send
//! each other messages, and after others a server with thousands of queues.
//!
//! These environment variables control it:
//! - SIM_SECONDS is how long it runs (60).
//! - STEPS is how many steps it runs instead.
//! - SEED is the seed of the first cluster. By default it is the time.
//! - NEIGHBOURS=1 runs only the queues that send each other messages.
//! - CLOSELY=1 checks every index after each step, which finds the first step
//!   that goes wrong.

use std::env;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use dq_simulation::cluster::Cluster;
use dq_simulation::neighbours::Neighbours;
use dq_simulation::town::Town;
use dq_simulation::trace::Tally;

/// The number of steps after which a cluster ends and that of the next seed begins. What
/// depends on a mixture of operations is found soonest in many short lives.
const SHORT_LIFE: u64 = 600;
/// The number of steps of every [`SHORT_LIVES`]th cluster.
const LONG_LIFE: u64 = 20_000;
const SHORT_LIVES: u64 = 32;
/// Every so many short lives are followed by a few queues that send each other messages, for this
/// number of steps.
const LIVES_WITH_NEIGHBOURS: u64 = 4;
const STEPS_OF_NEIGHBOURS: u64 = 600;
/// Each long life is followed by a server with this number of queues, for this number of turns.
const QUEUES: usize = 2_000;
const TURNS: u64 = 500;

fn main() -> ExitCode {
    let first = number("SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(1, |since| since.as_secs())
    });
    let most = number("STEPS");
    let seconds = match most {
        Some(_) => u64::MAX,
        None => number("SIM_SECONDS").unwrap_or(60),
    };
    let closely = number("CLOSELY").is_some();
    let only_neighbours = number("NEIGHBOURS").is_some();
    let began = Instant::now();
    let time = Duration::from_secs(seconds);
    let most = most.unwrap_or(u64::MAX);
    let mut all = Tally::default();
    for seed in first.. {
        if all.steps >= most || began.elapsed() >= time {
            break;
        }
        if only_neighbours {
            if !run_neighbours(seed) {
                return ExitCode::FAILURE;
            }
            all.steps += STEPS_OF_NEIGHBOURS;
            continue;
        }
        let mut cluster = Cluster::new(seed, closely);
        let is_long = (seed - first).is_multiple_of(SHORT_LIVES);
        let life = if is_long { LONG_LIFE } else { SHORT_LIFE };
        let left = life.min(most - all.steps);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut cluster, left)));
        all += cluster.tally;
        let failure = match outcome {
            Ok(Ok(())) if !is_long => {
                if (seed - first).is_multiple_of(LIVES_WITH_NEIGHBOURS) && !run_neighbours(seed) {
                    return ExitCode::FAILURE;
                }
                continue;
            }
            Ok(Ok(())) => match run_town(seed) {
                Ok(()) => continue,
                Err(failure) => {
                    println!("FAILED with {QUEUES} queues, seed {seed}: {failure}");
                    println!("Again: make simulate SEED={seed}");
                    return ExitCode::FAILURE;
                }
            },
            Ok(Err(why)) => why,
            Err(_) => "panicked, see above".to_owned(),
        };
        let step = cluster.tally.steps;
        println!("The last operations:\n{}", cluster.trace());
        println!("FAILED in step {step} of seed {seed}: {failure}");
        println!("Again: make simulate SEED={seed} STEPS={step} CLOSELY=1");
        return ExitCode::FAILURE;
    }
    println!("simulation: {}", summary(&all, first, began.elapsed()));
    ExitCode::SUCCESS
}

fn run(cluster: &mut Cluster, steps: u64) -> Result<(), String> {
    for _ in 0..steps {
        cluster.step()?;
    }
    cluster.end()
}

/// A few queues that send each other messages. Returns whether all went well.
fn run_neighbours(seed: u64) -> bool {
    let mut neighbours = Neighbours::new(seed);
    let run = || (0..STEPS_OF_NEIGHBOURS).find_map(|_| neighbours.step().err());
    let failure = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(None) => return true,
        Ok(Some(why)) => why,
        Err(_) => "panicked, see above".to_owned(),
    };
    println!("The last operations:\n{}", neighbours.trace());
    let step = neighbours.steps;
    println!("FAILED in step {step} of the neighbours of seed {seed}: {failure}");
    println!("Again: make simulate SEED={seed} NEIGHBOURS=1");
    false
}

/// Many queues on one server.
fn run_town(seed: u64) -> Result<(), String> {
    let mut town = Town::new(seed, QUEUES);
    for _ in 0..TURNS {
        town.step()
            .map_err(|broken| format!("turn {}: {broken}", town.steps))?;
    }
    town.compare()
}

fn summary(all: &Tally, seed: u64, took: Duration) -> String {
    let minutes = took.as_secs_f64() / 60.0;
    format!(
        "{} steps from seed {seed} on, {:.1} million a minute; {} records ({} as commands), {} comparisons, \
         {} crashes, {} promotions; broken bytes: {} refused, {} taken; nothing found",
        all.steps,
        all.steps as f64 / minutes / 1e6,
        all.records,
        all.commands,
        all.compared,
        all.crashes,
        all.promotions,
        all.refused,
        all.taken
    )
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => {
            eprintln!("{name} is no number: {text}");
            std::process::exit(2);
        }
    }
}
