//! `dq completion`: the words that a shell completes; and the manual pages.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::Output;

/// Options of `dq completion`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Options of `dq man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The directory that the pages are written to
    directory: PathBuf,
}

/// Prints the script for a shell.
pub fn run(mut program: Command, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "dq", &mut script);
    Ok(out.to.write_all(&script)?)
}

/// Writes a page for the program and one for each command.
pub fn man(program: Command, args: &ManArgs) -> Result<(), Failure> {
    std::fs::create_dir_all(&args.directory)?;
    clap_mangen::generate_to(program, &args.directory)?;
    Ok(())
}
