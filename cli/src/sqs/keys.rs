//! The file of access keys, which says who may use which queues.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::fault::{Fault, Kind};
use crate::failure::Failure;
use crate::glob::matches;
use crate::secret;

/// Actions that change nothing and take nothing.
const READING: [&str; 6] = [
    "GetQueueUrl",
    "ListQueues",
    "ListDeadLetterSourceQueues",
    "GetQueueAttributes",
    "ListQueueTags",
    "ListMessageMoveTasks",
];

/// An access key.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// Its public part.
    pub id: String,
    /// Its secret part.
    pub secret: String,
    writes: bool,
    globs: Vec<String>,
}

impl Key {
    /// Returns the key of everybody, where no key is asked for.
    pub fn anyone() -> Key {
        Key {
            id: String::new(),
            secret: String::new(),
            writes: true,
            globs: vec!["*".to_owned()],
        }
    }

    /// Returns whether the key may see a queue.
    pub fn sees(&self, queue: &str) -> bool {
        self.globs
            .iter()
            .any(|glob| matches(glob.as_bytes(), queue.as_bytes()))
    }

    /// Fails unless the key may do this to a queue.
    pub fn check(&self, queue: &str, action: &str) -> Result<(), Fault> {
        if self.sees(queue) && (self.writes || READING.contains(&action)) {
            return Ok(());
        }
        let name = queue.chars().take(80).collect::<String>();
        Err(Fault::new(
            Kind::AccessDenied,
            format!("Access to the resource {name} is denied."),
        ))
    }
}

/// The access keys, by their public parts.
pub type Keys = HashMap<String, Arc<Key>>;

/// Reads a file of keys. Each line has an access key, its secret, `rw` or `r`, and the queues
/// as globs. Empty lines and those that begin with # are passed over.
pub fn read(path: &Path) -> Result<Keys, Failure> {
    let bytes = secret::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut keys = Keys::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| {
            let place = format!("{}:{}", path.display(), number + 1);
            Failure::mistake(format!("{place}: {what}"))
        };
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(id), Some(secret)) = (words.next(), words.next()) else {
            return Err(wrong("expected an access key and its secret"));
        };
        let writes = match words.next().as_deref() {
            None | Some("rw") => true,
            Some("r") => false,
            Some(_) => return Err(wrong("expected rw or r after the secret")),
        };
        let mut globs: Vec<String> = words.collect();
        if globs.is_empty() {
            globs.push("*".to_owned());
        }
        let key = Key {
            id: id.clone(),
            secret,
            writes,
            globs,
        };
        if keys.insert(id, Arc::new(key)).is_some() {
            return Err(wrong("this access key is here twice"));
        }
    }
    match keys.is_empty() {
        true => Err(Failure::mistake(format!(
            "{}: no access key",
            path.display()
        ))),
        false => Ok(keys),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_reads_changes_nothing() {
        let key = Key {
            writes: false,
            globs: vec!["jobs-*".to_owned()],
            ..Key::anyone()
        };
        assert!(key.check("jobs-1", "GetQueueUrl").is_ok());
        assert!(key.check("jobs-1", "ReceiveMessage").is_err());
        assert!(key.check("mails", "GetQueueUrl").is_err());
    }
}
