//! The queues that a connection may be used for.

use std::sync::Arc;

use redis::Cmd;

use super::key;
use crate::failure::Failure;
use crate::glob::matches;

/// Commands without a key. All others have one as their first argument.
const KEYLESS: [&[u8]; 4] = [b"SCAN", b"INFO", b"CONFIG", b"CLUSTER"];

/// Commands with options that name another key.
const NAMING: [&[u8]; 3] = [b"DQ.ALTER", b"DQ.CREATE", b"DQ.SEND"];

/// The options that name another key.
const NAMES: [&[u8]; 3] = [b"DEADTO", b"EVENTS", b"PARENT"];

/// Globs of queues, of which one must match. The default is all queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope(Option<Arc<[Vec<u8>]>>);

impl Scope {
    /// Returns the scope of these globs. Without any it is all queues.
    pub fn of<'a>(globs: impl Iterator<Item = &'a str>) -> Scope {
        let globs: Vec<_> = globs.map(|glob| glob.as_bytes().to_vec()).collect();
        Scope((!globs.is_empty()).then(|| globs.into()))
    }

    /// Returns whether there are queues that it leaves out.
    pub fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether a queue is in it.
    pub fn sees(&self, queue: &[u8]) -> bool {
        let globs = self.0.as_ref();
        globs.is_none_or(|globs| globs.iter().any(|glob| matches(glob, queue)))
    }

    /// Fails if a command is about a queue that is not in it, in the words with which a server
    /// refuses a key.
    pub(super) fn check(&self, cmd: &Cmd) -> Result<(), Failure> {
        if !self.is_limited() {
            return Ok(());
        }
        let mut words = cmd.args_iter().map(key);
        let name = words.next().unwrap_or_default().to_ascii_uppercase();
        if KEYLESS.contains(&name.as_slice()) {
            return Ok(());
        }
        let mut is_seen = self.sees(words.next().unwrap_or_default());
        if NAMING.contains(&name.as_slice()) {
            if name == b"DQ.SEND" {
                // A payload may be any word.
                words.next();
            }
            while let Some(word) = words.next() {
                if NAMES.contains(&word.to_ascii_uppercase().as_slice()) {
                    let other = words.next().unwrap_or_default();
                    is_seen &= other.is_empty() || self.sees(other);
                }
            }
        }
        match is_seen {
            true => Ok(()),
            false => Err(Failure::Refused(
                "NOPERM this queue is not one of yours".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_a_command_must_be_in_the_scope() {
        let scope = Scope::of(["jobs:*", "mails"].into_iter());
        for (words, is_allowed) in [
            ("DQ.INFO jobs:a", true),
            ("DQ.INFO mails", true),
            ("dq.info other", false),
            ("UNLINK other", false),
            ("DQ.ALTER mails DEADTO jobs:dead", true),
            ("DQ.ALTER mails deadto other", false),
            ("DQ.ALTER mails EVENTS other", false),
            ("DQ.SEND mails x PARENT other p", false),
            ("DQ.SEND mails PARENT PARENT other p", false),
            ("DQ.SEND mails PARENT", true),
            ("INFO server", true),
            ("SCAN 0", true),
        ] {
            let mut words_of = words.split(' ');
            let mut cmd = redis::cmd(words_of.next().unwrap());
            words_of.for_each(|word| {
                cmd.arg(word);
            });
            assert_eq!(scope.check(&cmd).is_ok(), is_allowed, "{words}");
            assert!(Scope::default().check(&cmd).is_ok());
        }
    }
}
