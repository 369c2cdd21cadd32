//! `make explore` and the exploring part of `make test`.
//!
//! Usage: `explore [LIST ...] [--pairs] [--depth N] [--states N] [--seconds N] [--threads N]
//! [--keep FOLDER] [--first]`. Without names it explores all lists and the pairs of options, and only
//! those with `--pairs`. `--keep` saves the states that were reached, and goes on with those of an
//! earlier run. `--first` ends at the first fault. `explore pairs` prints the table of pairs, and
//! `explore walk [--seconds N] [--seed N]` walks at random. A build with the feature `bugs` looks for
//! all seeded bugs with `explore bugs`, and has one of them with `--bug NAME`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("explore: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    #[cfg(feature = "bugs")]
    if std::env::args().nth(1).as_deref() == Some("bugs") {
        return dq_explorer::bugs::find_all();
    }
    if std::env::args().nth(1).as_deref() == Some("pairs") {
        let (table, is_complete) = dq_explorer::pairs::table();
        println!("{table}");
        return Ok(is_complete);
    }
    if std::env::args().nth(1).as_deref() == Some("walk") {
        return dq_explorer::walk::run(std::env::args().skip(2));
    }
    dq_explorer::run::run(std::env::args().skip(1))
}
