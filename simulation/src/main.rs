//! `make simulate`: worlds of random seeds, one after the other, until the time
//! is up.
//!
//! SIM_SECONDS says for how long (60), STEPS for how many steps instead; SEED
//! is that of the first world, a new one each time unless it is given. CLOSELY=1
//! looks into every index after each step: which one was it?

use std::env;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use dq_simulation::story::Tally;
use dq_simulation::world::World;

/// A world ends after so many steps.
const STEPS_OF_A_WORLD: u64 = 20_000;

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
    let began = Instant::now();
    let time = Duration::from_secs(seconds);
    let most = most.unwrap_or(u64::MAX);
    let mut all = Tally::default();
    for seed in first.. {
        if all.steps >= most || began.elapsed() >= time {
            break;
        }
        let mut world = World::new(seed, closely);
        let left = STEPS_OF_A_WORLD.min(most - all.steps);
        let lived = catch_unwind(AssertUnwindSafe(|| live(&mut world, left)));
        all += world.tally;
        let failure = match lived {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "panicked, see above".to_owned(),
        };
        let step = world.tally.steps;
        println!("The last operations:\n{}", world.story());
        println!("FAILED in step {step} of seed {seed}: {failure}");
        println!("Again: make simulate SEED={seed} STEPS={step} CLOSELY=1");
        return ExitCode::FAILURE;
    }
    println!("simulation: {}", summary(&all, first, began.elapsed()));
    ExitCode::SUCCESS
}

fn live(world: &mut World, steps: u64) -> Result<(), String> {
    for _ in 0..steps {
        world.step()?;
    }
    world.end()
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
