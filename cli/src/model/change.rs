//! Changes that a person has asked for and confirmed.

use redis::Cmd;

use super::family;
use super::keys;
use super::record::integer;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{span, Millis};

/// The target of a change: a queue, or all queues of a family, of a pattern or of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The queue of this name.
    Queue(Vec<u8>),
    /// All queues of this family.
    Family(Vec<u8>),
    /// The queues of these names.
    Several(Vec<Vec<u8>>),
    /// All queues whose names match this pattern, as of KEYS.
    Matching(Vec<u8>),
}

/// The pattern of all names.
pub const ALL: &[u8] = b"*";

impl Target {
    /// Returns its name, printable.
    pub fn shown(&self) -> String {
        match self {
            Target::Queue(name) => printable(name),
            Target::Family(name) => printable(&family::shown(name)),
            Target::Matching(pattern) if pattern == ALL => "all queues".to_owned(),
            Target::Matching(pattern) => printable(pattern),
            Target::Several(names) => {
                let shown: Vec<String> = names.iter().take(5).map(|name| printable(name)).collect();
                let more = names.len().saturating_sub(shown.len());
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                shown.join(", ") + &more
            }
        }
    }

    /// Returns the names of its queues.
    pub fn queues(&self, server: &mut Server) -> Result<Vec<Vec<u8>>, Failure> {
        match self {
            Target::Queue(name) => Ok(vec![name.clone()]),
            Target::Family(name) => family::queues(server, name),
            Target::Several(names) => Ok(names.clone()),
            Target::Matching(pattern) => keys::all(server, Some(pattern)),
        }
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Pause a queue, or a group of it, for a time or without end.
    Pause(Target, Option<Vec<u8>>, Option<Millis>),
    /// Resume a queue, or a group of it.
    Resume(Target, Option<Vec<u8>>),
    /// Redrive the oldest dead messages, up to this number, or all.
    Redrive(Target, Option<u64>),
}

/// Number of queues that are changed in one round trip.
const CHUNK: usize = 100;

impl Change {
    fn target(&self) -> &Target {
        match self {
            Change::Pause(target, ..) | Change::Resume(target, _) | Change::Redrive(target, _) => {
                target
            }
        }
    }

    fn cmd(&self, queue: &[u8]) -> Cmd {
        let (name, group) = match self {
            Change::Pause(_, group, _) => ("DQ.PAUSE", group.as_deref()),
            Change::Resume(_, group) => ("DQ.RESUME", group.as_deref()),
            Change::Redrive(..) => ("DQ.REDRIVE", None),
        };
        let mut cmd = verb(name, queue);
        if let Some(group) = group {
            cmd.arg("GROUP").arg(group);
        }
        match self {
            Change::Pause(_, _, Some(time)) => {
                cmd.arg("FOR").arg(*time);
            }
            Change::Redrive(_, count) => {
                cmd.arg("ALL");
                if let Some(count) = count {
                    cmd.arg("COUNT").arg(*count);
                }
            }
            _ => {}
        }
        cmd
    }

    /// Makes the change. Returns how many messages were redriven, otherwise 0. The first
    /// refusal ends it, and what was done before stays done.
    pub fn execute(&self, server: &mut Server) -> Result<u64, Failure> {
        let queues = self.target().queues(server)?;
        let mut redriven = 0;
        // A redrive with a limit takes the rest of it from the next queue.
        if let Change::Redrive(target, Some(limit)) = self {
            for queue in &queues {
                let left = limit.saturating_sub(redriven);
                if left == 0 {
                    break;
                }
                let cmd = Change::Redrive(target.clone(), Some(left)).cmd(queue);
                redriven += integer(&server.call(&cmd)?)?;
            }
            return Ok(redriven);
        }
        for chunk in queues.chunks(CHUNK) {
            let cmds: Vec<_> = chunk.iter().map(|queue| self.cmd(queue)).collect();
            for reply in server.pipeline(&cmds)? {
                let reply = reply?;
                if let Change::Redrive(..) = self {
                    redriven += integer(&reply)?;
                }
            }
        }
        Ok(redriven)
    }

    /// Returns a sentence about the changes that were made. `redriven` is the result of
    /// `execute`.
    pub fn done(&self, redriven: u64) -> String {
        match self {
            Change::Pause(target, group, time) => {
                let time = time.map(|time| format!(" for {}", span(time)));
                let what = what(target, group.as_deref());
                format!("{what} is paused{}", time.unwrap_or_default())
            }
            Change::Resume(target, group) => {
                format!("{} goes on", what(target, group.as_deref()))
            }
            Change::Redrive(target, _) => {
                let redriven = plural(redriven, "message");
                format!("{}: {redriven} pending again", target.shown())
            }
        }
    }
}

/// Names a queue, or a group of it.
pub fn what(target: &Target, group: Option<&[u8]>) -> String {
    match group {
        Some(group) => format!("group {} of {}", printable(group), target.shown()),
        None => target.shown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(change: &Change) -> String {
        String::from_utf8(change.cmd(b"q").get_packed_command()).unwrap()
    }

    #[test]
    fn changes_become_commands_and_sentences() {
        let queue = Target::Queue(b"q".to_vec());
        let pause = Change::Pause(queue.clone(), Some(b"g\x1b".to_vec()), Some(5000));
        assert!(packed(&pause).contains("GROUP\r\n$2\r\ng\x1b\r\n$3\r\nFOR\r\n$4\r\n5000"));
        assert_eq!(pause.done(0), "group g\\x1b of q is paused for 5.0s");
        assert_eq!(Change::Resume(queue.clone(), None).done(0), "q goes on");
        let redrive = Change::Redrive(queue, Some(7));
        assert!(packed(&redrive).ends_with("ALL\r\n$5\r\nCOUNT\r\n$1\r\n7\r\n"));
        let all = Change::Redrive(Target::Family(b"mails".to_vec()), None);
        assert_eq!(all.done(2), "mails:{*}: 2 messages pending again");
    }
}
