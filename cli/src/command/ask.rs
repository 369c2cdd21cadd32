//! The question before a change in bulk.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::Failure;

/// Asks a question on the terminal, unless it was answered before. Fails if the answer is
/// no. Without a terminal there is nobody to ask, so then it fails, too.
pub fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !is_terminal() {
        return Err(Failure::mistake(format!(
            "{question} Without a terminal to ask on, --yes is needed"
        )));
    }
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::mistake("nothing was changed")),
    }
}

/// Returns whether somebody can be asked.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
