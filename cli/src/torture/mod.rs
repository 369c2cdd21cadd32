//! `dq torture`: a proof on the user's own disk and kernel. It starts servers of its own, does to them what happens to
//! servers, and checks the history of all calls against the promises.

mod actors;
mod fault;
mod history;
mod link;
mod node;
#[cfg(target_os = "linux")]
mod power;
mod report;
mod round;
mod rules;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::command::server::Programs;
use crate::failure::Failure;
use crate::output::Output;
use crate::takeover::Stop;
use fault::Fault;
use report::Report;

/// The longest time in which one fault is done again and again, and the shortest one that is worth its start, in s.
const ROUND: (f64, f64) = (30.0, 2.0);
/// The time that a round takes besides, in s: until its servers run, its queue is empty and its history is checked.
const BESIDES: f64 = 10.0;

/// Options of `dq torture`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long it takes, all faults together
    #[arg(long, default_value_t = 10.0, value_parser = minutes)]
    minutes: f64,
    /// Where the servers keep their data: on the disk that you want to try
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Only these faults
    #[arg(long, value_enum, value_name = "FAULT", num_args = 1..)]
    fault: Vec<Fault>,
    /// The numbers of an earlier run. The times of processes do not follow from them
    #[arg(long)]
    seed: Option<u64>,
    /// Keep the data of the servers, and the histories
    #[arg(long)]
    keep: bool,
    /// The server: that of DQ_ENGINE, beside this program or on PATH unless told
    #[arg(long, value_name = "PROGRAM")]
    engine: Option<PathBuf>,
    /// The module: that of DQ_MODULE, or beside this program unless told
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= 100_000.0 => Ok(minutes),
        _ => Err("expected a number of minutes, more than 0".to_owned()),
    }
}

/// The folder of a run, which is deleted with everything in it.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Runs all faults, and prints the report.
pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let programs = Programs::named(args.engine.as_deref(), args.module.as_deref())?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000_000));
    let stop = Stop::listen()?;
    let path = std::path::absolute(&args.dir)?.join(format!("dq-torture-{}", std::process::id()));
    fs::create_dir(&path).map_err(|error| {
        Failure::mistake(format!(
            "{} cannot be made: {error}; --dir names another place",
            path.display()
        ))
    })?;
    let folder = Folder {
        path,
        keep: args.keep,
    };
    let faults = match args.fault.as_slice() {
        [] => Fault::ALL.to_vec(),
        named => named.to_vec(),
    };
    let mut report = Report::default();
    let total = args.minutes * 60.0;
    let time = (total / faults.len() as f64 - BESIDES).clamp(ROUND.1, ROUND.0);
    let begin = Instant::now();
    let mut possible = Vec::new();
    for fault in faults {
        match fault.is_possible(&folder.path) {
            Ok(()) => possible.push(fault),
            Err(why) => report.leave_out(fault, &why),
        }
    }
    let rounds = possible.iter().cycle().enumerate();
    for (number, &fault) in rounds {
        let is_first = number < possible.len();
        if !is_first && begin.elapsed().as_secs_f64() + time + BESIDES > total {
            break;
        }
        eprintln!("dq torture: {}, {time:.0} s and the end", fault.name());
        let place = folder.path.join(format!("{number}-{}", fault.name()));
        let seed = seed.wrapping_add(number as u64);
        let time = Duration::from_secs_f64(time);
        let outcome = round::run(fault, &programs, &place, time, seed, &stop)?;
        if args.keep {
            let lines = outcome.history.lines(None).join("\n");
            fs::write(place.join("history"), lines)?;
        } else {
            fs::remove_dir_all(&place)?;
        }
        if stop.is_asked() {
            report.leave_out(
                fault,
                &Failure::mistake("a signal has ended it, so this round is not judged"),
            );
            break;
        }
        report.add(fault, outcome);
    }
    report.print(out, seed)?;
    if args.keep {
        out.line(&format!("kept        {}", folder.path.display()))?;
    }
    match report.violations() {
        0 => Ok(()),
        count => Err(Failure::mistake(format!("{count} promises were broken"))),
    }
}
