//! Groups, and why they are held.

use redis::{Cmd, Value};

use super::queue::Queue;
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::time_text::{relative, Millis};

/// The groups that are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Groups that need attention: blocked ones and paused ones.
    #[default]
    Held,
    /// Groups with messages that cannot deliver now, and have no lease.
    Blocked,
    /// Groups that are paused.
    Paused,
    /// Groups with leases that cannot deliver more now.
    Running,
    /// Groups that can deliver.
    Ready,
    /// All groups.
    All,
}

impl Wanted {
    /// Returns the next choice. The first one follows the last one.
    pub fn next(self) -> Wanted {
        match self {
            Wanted::Held => Wanted::Blocked,
            Wanted::Blocked => Wanted::Paused,
            Wanted::Paused => Wanted::Running,
            Wanted::Running => Wanted::Ready,
            Wanted::Ready => Wanted::All,
            Wanted::All => Wanted::Held,
        }
    }

    /// All choices, in their order.
    pub const ALL: [Wanted; 6] = [
        Wanted::Held,
        Wanted::Blocked,
        Wanted::Paused,
        Wanted::Running,
        Wanted::Ready,
        Wanted::All,
    ];

    /// Returns the choices of the server of which it consists.
    fn parts(self) -> &'static [Wanted] {
        match self {
            Wanted::Held => &[Wanted::Blocked, Wanted::Paused],
            Wanted::Blocked => &[Wanted::Blocked],
            Wanted::Paused => &[Wanted::Paused],
            Wanted::Running => &[Wanted::Running],
            Wanted::Ready => &[Wanted::Ready],
            Wanted::All => &[Wanted::All],
        }
    }

    /// Returns the word for it. Except for held and all, it is the word of the server.
    pub fn word(self) -> &'static str {
        match self {
            Wanted::Held => "held",
            Wanted::Blocked => "blocked",
            Wanted::Paused => "paused",
            Wanted::Running => "running",
            Wanted::Ready => "ready",
            Wanted::All => "all",
        }
    }
}

/// Why a message is not delivered now, as in the reply of DQ.EXPLAIN.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Why {
    /// The code of the reason: one word.
    pub code: String,
    /// The reason, in one sentence.
    pub why: String,
    /// When the reason ends without an action, in Unix ms.
    pub until: Option<Millis>,
    /// The id, group or consumer that holds it, printable. Empty if there is none.
    pub by: String,
}

impl Why {
    /// Reads the map of DQ.EXPLAIN. Returns `None` for a null.
    pub fn of(reply: Value) -> Result<Option<Why>, Failure> {
        Ok(Record::maybe(reply)?.map(|answer| Why {
            code: answer.text("code"),
            why: answer.text("why"),
            until: answer.number("until"),
            by: answer.text("by"),
        }))
    }
}

/// A group at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Vec<u8>,
    /// ready, running, blocked, paused or waiting.
    pub state: String,
    /// Number of pending messages.
    pub waiting: u64,
    /// Number of leased messages.
    pub running: u64,
    /// The id of the first pending message.
    pub head: Option<Vec<u8>>,
    /// When the first pending message is due, in Unix ms.
    pub head_due_at: Option<Millis>,
    /// Its breaker: closed, open or half-open. Empty with an older module.
    pub breaker: String,
    /// When its open breaker becomes half-open, in Unix ms.
    pub open_until: Option<Millis>,
    /// Weight and concurrency, as set for it or for the queue.
    pub settings: [u64; 2],
    /// The reason why the first pending message is not delivered, if that was asked and
    /// the user may ask it.
    pub why: Option<Why>,
}

impl Group {
    fn of(record: &Record) -> Group {
        Group {
            name: record.bytes("group").unwrap_or_default().to_vec(),
            state: record.text("state"),
            waiting: record.count("waiting"),
            running: record.count("running"),
            head: record.bytes("head").map(<[u8]>::to_vec),
            head_due_at: record.number("head-due-at"),
            breaker: record.text("breaker"),
            open_until: record.number("open-until"),
            settings: ["weight", "concurrency"].map(|field| record.count(field)),
            why: None,
        }
    }
}

impl Group {
    /// Returns the breaker with when it ends, unless it is closed: "open, ends in 5s".
    pub fn breaker_words(&self, now: Millis) -> String {
        match (self.breaker.as_str(), self.open_until) {
            ("" | "closed", _) => String::new(),
            (breaker, Some(until)) => format!("{breaker}, ends {}", relative(until, now)),
            (breaker, None) => breaker.to_owned(),
        }
    }
}

/// Some groups of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// The groups that were found.
    pub found: Vec<Group>,
    /// Whether there may be more than these.
    pub more: bool,
}

/// Maximum number of pages that are read. In a queue with very many groups of which
/// few are wanted, asking for them must stay cheap for the server.
const PAGES: usize = 10;

/// Fetches up to `most` groups of a queue, each with why its first message is not
/// delivered. It costs a few DQ.GROUPS, and one DQ.EXPLAIN for each group.
pub fn fetch(
    server: &mut Server,
    queue: &[u8],
    wanted: Wanted,
    most: usize,
) -> Result<Groups, Failure> {
    let mut groups = Groups::default();
    for part in wanted.parts() {
        walk(server, queue, *part, most, &mut groups)?;
    }
    groups.more |= groups.found.len() > most;
    groups.found.truncate(most);
    explain(server, queue, &mut groups.found)?;
    Ok(groups)
}

/// Adds the groups of one choice of the server.
fn walk(
    server: &mut Server,
    queue: &[u8],
    wanted: Wanted,
    most: usize,
    groups: &mut Groups,
) -> Result<(), Failure> {
    let mut cursor = None;
    for _ in 0..PAGES {
        let cmd = page(queue, wanted, most, cursor.as_deref());
        let (next, records) = Record::page(server.call(&cmd)?)?;
        groups.found.extend(records.iter().map(Group::of));
        cursor = next;
        if cursor.is_none() || groups.found.len() >= most {
            break;
        }
    }
    groups.more |= cursor.is_some();
    Ok(())
}

/// Returns the command for a page of groups.
fn page(queue: &[u8], wanted: Wanted, most: usize, cursor: Option<&[u8]>) -> Cmd {
    let mut cmd = verb("DQ.GROUPS", queue);
    cmd.arg("COUNT").arg(most);
    if wanted != Wanted::All {
        cmd.arg("STATE").arg(wanted.word());
    }
    if let Some(cursor) = cursor {
        cmd.arg("CURSOR").arg(cursor);
    }
    cmd
}

/// Counts the blocked groups of each queue, up to `most`. None are counted where the user may not
/// ask for them.
pub fn blocked(server: &mut Server, queues: &[Queue], most: usize) -> Result<Vec<usize>, Failure> {
    let mut counts = vec![0; queues.len()];
    let places = counts.iter_mut().zip(queues);
    let mut open: Vec<_> = places
        .filter(|(_, queue)| queue.groups > 0)
        .map(|(count, queue)| (count, queue, None::<Vec<u8>>))
        .collect();
    for _ in 0..PAGES {
        let cmds: Vec<_> = open
            .iter()
            .map(|(_, queue, cursor)| page(&queue.name, Wanted::Blocked, most, cursor.as_deref()))
            .collect();
        let mut more = Vec::new();
        for ((count, queue, _), reply) in open.into_iter().zip(server.pipeline(&cmds)?) {
            let (next, found) = match reply {
                Err(Failure::Refused(_)) => continue,
                reply => Record::page(reply?)?,
            };
            *count = most.min(*count + found.len());
            if next.is_some() && *count < most {
                more.push((count, queue, next));
            }
        }
        open = more;
    }
    Ok(counts)
}

fn explain(server: &mut Server, queue: &[u8], groups: &mut [Group]) -> Result<(), Failure> {
    let mut asked: Vec<&mut Group> = groups.iter_mut().filter(|g| g.head.is_some()).collect();
    let cmds: Vec<_> = asked
        .iter()
        .map(|group| {
            let mut cmd = verb("DQ.EXPLAIN", queue);
            cmd.arg(group.head.as_deref());
            cmd
        })
        .collect();
    for (group, reply) in asked.iter_mut().zip(server.pipeline(&cmds)?) {
        // A user who may not run DQ.EXPLAIN still sees the groups.
        group.why = reply.ok().and_then(|reply| Why::of(reply).ok().flatten());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn a_group_is_read() {
        let read = Group::of(&record(&[
            ("group", Value::BulkString(b"user-7".to_vec())),
            ("state", Value::BulkString(b"blocked".to_vec())),
            ("waiting", Value::Int(4)),
            ("running", Value::Int(0)),
            ("head", Value::BulkString(b"m1".to_vec())),
            ("head-due-at", Value::Int(70)),
            ("breaker", Value::BulkString(b"open".to_vec())),
            ("open-until", Value::Int(5070)),
        ]));
        assert_eq!(read.breaker_words(70), "open, ends in 5.0s");
        assert_eq!(read.name, b"user-7");
        assert_eq!(
            (read.state.as_str(), read.waiting, read.running),
            ("blocked", 4, 0)
        );
        assert_eq!(
            (read.head.as_deref(), read.head_due_at),
            (Some(&b"m1"[..]), Some(70))
        );
        assert_eq!(Why::of(Value::Nil), Ok(None));
    }

    #[test]
    fn next_reaches_every_choice() {
        let mut wanted = Wanted::default();
        for expected in Wanted::ALL {
            assert_eq!(wanted, expected);
            wanted = wanted.next();
        }
        assert_eq!(wanted, Wanted::Held);
    }
}
