//! `make explore` and the exploring part of `make test`.
//!
//! Usage: `explore [LIST ...] [--depth N] [--states N] [--seconds N] [--threads N] [--keep FOLDER]
//! [--first]`. Without names it explores all lists. `--keep` saves the states that were reached,
//! and goes on with those of an earlier run. `--first` ends at the first fault. A build with the
//! feature `bugs` looks for all seeded bugs with `explore bugs`, and has one of them with `--bug NAME`.

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
    dq_explorer::run::run(std::env::args().skip(1))
}
