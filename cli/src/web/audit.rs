//! The audit log: a line of JSON for each action and each sign-in.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::visitor::Visitor;
use crate::failure::Failure;
use crate::time_text::{here, stamp};

/// The file to which the lines go.
pub struct Audit(Mutex<Option<File>>);

impl Audit {
    /// Opens the log. Lines are appended to the file, or go to the standard error.
    pub fn open(path: Option<&Path>) -> Result<Audit, Failure> {
        let file = path.map(|path| {
            let mut options = OpenOptions::new();
            // Only its owner may read a new file: it has the actions of all users.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = options.create(true).append(true).open(path);
            file.map_err(|error| Failure::mistake(format!("{}: {error}", path.display())))
        });
        Ok(Audit(Mutex::new(file.transpose()?)))
    }

    /// Writes a line with the user, the action and its result. It is JSON, so no name of
    /// a queue can look like another line.
    pub fn write(&self, visitor: &Visitor, action: &str, what: &str, outcome: &str) {
        let line = json!({
            "at": stamp(here()),
            "user": visitor.user,
            "address": visitor.address,
            "action": action,
            "what": what,
            "outcome": outcome,
        });
        let line = format!("{line}\n");
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match file.as_mut() {
            Some(file) => file.write_all(line.as_bytes()).and_then(|()| file.flush()),
            None => std::io::stderr().write_all(line.as_bytes()),
        };
        if let Err(error) = written {
            eprintln!("dq: the audit log: {error}");
        }
    }
}
