//! `make explore` and the exploring part of `make test`.
//!
//! Usage: `explore [LIST ...] [--depth N] [--states N] [--seconds N] [--threads N] [--keep FOLDER]
//! [--first]`. Without names it explores all lists. `--keep` saves the states that were reached,
//! and goes on with those of an earlier run. `--first` ends at the first fault.

use std::process::ExitCode;

fn main() -> ExitCode {
    match dq_explorer::run::run(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("explore: {why}");
            ExitCode::from(2)
        }
    }
}
