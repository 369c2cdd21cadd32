//! A run over several lists: its options, its threads, its progress, its report.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lists::{self, List};
use crate::pairs;
use crate::paste;
use crate::search::{search, Bounds, Outcome, Progress};
use crate::store::Store;

/// How many seconds one step may take until it counts as one that does not end.
const LONGEST_STEP: u64 = 20;
/// The time between two lines of progress.
const LINE: Duration = Duration::from_secs(30);

/// The options of a run.
#[derive(Debug)]
struct Options {
    lists: Vec<&'static List>,
    depth: Option<usize>,
    states: usize,
    seconds: u64,
    threads: usize,
    keep: Option<PathBuf>,
    until_found: bool,
    patience: Duration,
}

impl Options {
    fn read(args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            lists: Vec::new(),
            depth: None,
            states: usize::MAX,
            seconds: u64::from(u32::MAX),
            threads: 2,
            keep: None,
            until_found: false,
            patience: Duration::from_secs(LONGEST_STEP),
        };
        let mut args = args;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            let number = |text: String| {
                text.parse::<u64>()
                    .map_err(|_| format!("no number: {text}"))
            };
            match arg.as_str() {
                "--depth" => options.depth = Some(number(value()?)? as usize),
                "--states" => options.states = number(value()?)? as usize,
                "--seconds" => options.seconds = number(value()?)?,
                "--threads" => options.threads = number(value()?)?.max(1) as usize,
                "--keep" => options.keep = Some(PathBuf::from(value()?)),
                "--patience" => options.patience = Duration::from_secs(number(value()?)?),
                #[cfg(feature = "bugs")]
                "--bug" => crate::bugs::select(&value()?)?,
                "--pairs" => options.lists.extend(pairs::lists()),
                "--first" => options.until_found = true,
                name => {
                    let list = lists::find(name).ok_or(format!("there is no list {name}"))?;
                    options.lists.push(list);
                }
            }
        }
        if options.lists.is_empty() {
            options.lists = lists::all().chain(pairs::lists()).collect();
        }
        Ok(options)
    }
}

/// Runs what the arguments say. Returns whether nothing was found.
///
/// # Errors
/// Wrong arguments, or a file that cannot be written.
pub fn run(args: impl Iterator<Item = String>) -> Result<bool, String> {
    let options = Options::read(args)?;
    if let Some(folder) = &options.keep {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    // The report says what a panic was.
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicUsize::new(0);
    let left = AtomicUsize::new(options.threads);
    let works: Vec<Progress> = options.lists.iter().map(|_| Progress::default()).collect();
    let totals = Mutex::new(Totals::default());
    let began = Instant::now();
    println!(
        "{:<22} {:>7} {:>10} {:>6} {:>9} {:>8}",
        "list", "actions", "states", "depth", "steps", "seconds"
    );
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    let (Some(list), Some(work)) = (options.lists.get(number), works.get(number))
                    else {
                        break;
                    };
                    let began = Instant::now();
                    let found = explore(list, &options, work);
                    let took = began.elapsed();
                    if !list.is_pair || !found.found.is_empty() {
                        report(list, work, &found, took);
                    }
                    if let Ok(mut totals) = totals.lock() {
                        totals.add(list, work, &found, took);
                    }
                }
                left.fetch_sub(1, Relaxed);
            });
        }
        watch(&options, &works, &left);
    });
    let totals = totals.into_inner().unwrap_or_default();
    println!("{}", totals.pairs_row());
    let took = began.elapsed().as_secs_f64();
    let (table, is_complete) = pairs::table();
    if !is_complete {
        println!("{table}");
    }
    let (states, steps) = (totals.states, totals.steps);
    println!("exploring: {states} states, {steps} steps, {took:.1} s");
    Ok(totals.faults == 0 && is_complete)
}

/// The sums over all lists.
#[derive(Debug, Default)]
struct Totals {
    states: u64,
    steps: u64,
    faults: usize,
    /// The number of worlds of pairs, their states and steps, and how long they took.
    pairs: (u64, u64, u64, Duration),
}

impl Totals {
    fn add(&mut self, list: &List, work: &Progress, outcome: &Outcome, took: Duration) {
        let states = work.states.load(Relaxed);
        let steps = work.steps.load(Relaxed);
        self.states += states;
        self.steps += steps;
        self.faults += outcome.found.len();
        if list.is_pair {
            let (worlds, of_states, of_steps, of_time) = self.pairs;
            self.pairs = (
                worlds + 1,
                of_states + states,
                of_steps + steps,
                of_time + took,
            );
        }
    }

    /// The row of the report about all pairs of options.
    fn pairs_row(&self) -> String {
        let (worlds, states, steps, took) = self.pairs;
        format!(
            "{:<22} {worlds:>7} {states:>10} {:>6} {steps:>9} {:>8.1}",
            "pairs of options",
            "",
            took.as_secs_f64()
        )
    }
}

fn explore(list: &'static List, options: &Options, work: &Progress) -> Outcome {
    let depth = options.depth.unwrap_or(list.depth);
    let bounds = Bounds {
        depth: match list.is_pair {
            true => depth.min(list.depth + 2),
            false => depth,
        },
        states: options.states,
        time: Duration::from_secs(options.seconds),
        until_found: options.until_found,
    };
    let file = options
        .keep
        .as_ref()
        .filter(|_| !list.is_pair)
        .map(|folder| folder.join(list.name.replace(' ', "-")));
    let of = format!("{} {:?} {:?}", list.name, list.setup, list.actions);
    let kept = file.as_ref().and_then(|file| Store::load(file, &of).ok());
    let mut store = kept.unwrap_or_default();
    search(list, bounds, &mut store, work, |store| {
        if let Some(file) = &file {
            if let Err(error) = store.save(file, &of) {
                eprintln!("explore: {}: {error}", file.display());
            }
        }
    })
}

fn report(list: &List, work: &Progress, outcome: &Outcome, took: Duration) {
    let depth = outcome.by_depth.len().saturating_sub(1);
    let states: u64 = outcome.by_depth.iter().sum();
    let mut text = format!(
        "{:<22} {:>7} {states:>10} {depth:>5}{} {:>9} {:>8.1}",
        list.name,
        list.actions.len(),
        if outcome.is_complete { ' ' } else { '+' },
        work.steps.load(Relaxed),
        took.as_secs_f64(),
    );
    let mut found: Vec<_> = outcome.found.values().collect();
    found.sort_by_key(|found| found.actions.len());
    for found in found {
        text += &format!("\n\n{}: {}\n", found.fault.rule, found.fault.text);
        text += &paste::text(list, &found.actions);
    }
    println!("{text}");
}

/// Looks after the threads: prints how far they are, and ends the run if a step does not end.
fn watch(options: &Options, works: &[Progress], left: &AtomicUsize) {
    let (began, mut lines) = (Instant::now(), Instant::now());
    let mut seen: Vec<(u64, Instant)> = works.iter().map(|_| (0, Instant::now())).collect();
    while left.load(Relaxed) > 0 {
        std::thread::sleep(Duration::from_millis(20));
        for ((work, list), (steps, since)) in works.iter().zip(&options.lists).zip(&mut seen) {
            let now = work.steps.load(Relaxed);
            let path = work
                .path
                .lock()
                .map(|path| path.clone())
                .unwrap_or_default();
            if now != *steps || path.is_empty() {
                (*steps, *since) = (now, Instant::now());
            } else if since.elapsed() > options.patience {
                // Nothing can end the thread but the end of the process. The last command is the
                // one that does not end, so it is not done again here.
                let (last, others) = path.split_last().unwrap_or((&"", &[]));
                println!(
                    "\n{}: this does not end\n{}",
                    list.name,
                    paste::text(list, others)
                );
                println!("{last}");
                std::process::exit(1);
            }
        }
        if lines.elapsed() > LINE {
            lines = Instant::now();
            let states: u64 = works.iter().map(|work| work.states.load(Relaxed)).sum();
            let depths = works.iter().zip(&options.lists);
            let depths =
                depths.filter(|(work, _)| work.path.lock().is_ok_and(|path| !path.is_empty()));
            let depths =
                depths.map(|(work, list)| format!("{} {}", list.name, work.depth.load(Relaxed)));
            let rate = states / began.elapsed().as_secs().max(1);
            eprintln!(
                "{states} states, {rate} a second; depths: {}",
                depths.collect::<Vec<_>>().join(", ")
            );
        }
    }
}
