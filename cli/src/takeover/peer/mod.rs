//! The peers: one file each, with what it keeps where, and what becomes of it.

mod bullmq;
mod celery;
mod delayqueue;
mod dramatiq;
mod laravel;

use std::collections::BTreeSet;

use redis::Cmd;

use super::read::{clock, number, texts};
use super::record::{Bytes, Record};
use crate::failure::Failure;
use crate::server::Server;

/// A command at the target, as its words. `DEAD` and `SCHEDULER` are words of the script that sends.
pub type Words = Vec<Bytes>;

/// The jobs of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Jobs that have failed for good. They go first.
    Dead,
    /// Jobs that are due.
    Waiting,
    /// Jobs that are due later.
    Delayed,
    /// Jobs that workers have. Only the lost ones are taken, and only if the command line says so.
    Running,
}

/// The part of a peer in the shared script that claims and puts back, and the queue that is made for it.
#[derive(Debug)]
pub struct Row {
    /// The text between the name of a queue and that of a place.
    pub sep: &'static str,
    /// The end of a list at which its next job is, `head` or `tail`.
    pub next: &'static str,
    /// The work of the script on each job.
    pub lua: &'static str,
    /// The options of the queue at the target.
    pub options: &'static str,
}

impl Row {
    /// Returns the parts of the script.
    pub fn script(&self) -> String {
        let (begin, end) = (
            include_str!("../lua/begin.lua"),
            include_str!("../lua/end.lua"),
        );
        let Row { sep, next, lua, .. } = self;
        format!("local SEP, NEXT = '{sep}', '{next}'\n{begin}{lua}{end}")
    }

    /// Returns a place of the queue whose keys begin with `stem`: the list `queue` itself, or what is beside it.
    pub fn place(&self, stem: &[u8], name: &str, state: State, kind: &'static str) -> Place {
        let rest = match name {
            "queue" => String::new(),
            name => format!("{}{name}", self.sep),
        };
        Place {
            name: name.to_owned(),
            state,
            key: beside(stem, &rest),
            kind,
            words: Vec::new(),
        }
    }
}

/// A key with jobs.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its name, which is that in the records.
    pub name: String,
    /// Its jobs.
    pub state: State,
    /// Its key.
    pub key: Bytes,
    /// Its kind, as `lua/begin.lua` has it.
    pub kind: &'static str,
    /// More words for the peer's script.
    pub words: Vec<Bytes>,
}

impl Place {
    /// Returns the command that counts its jobs.
    pub fn count(&self) -> Cmd {
        on(
            if self.kind == "list" { "LLEN" } else { "ZCARD" },
            &self.key,
        )
    }
}

/// A queue of a peer, as it is now.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Its places, in the order in which they are moved.
    pub places: Vec<Place>,
    /// The commands that let the workers of the new queue pause, if those of the old one do.
    pub pause: Vec<Words>,
    /// Commands for the target, beside those that each queue of the peer needs.
    pub settings: Vec<Words>,
    /// The jobs that do not move, and why, with their number.
    pub stays: Vec<(String, u64)>,
}

/// The jobs that workers have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    /// Their number.
    pub count: u64,
    /// The ids of those that are lost by the peer's own rules.
    pub lost: Vec<Bytes>,
    /// Those whom nobody has heard of since this time of the source are lost, Unix ms.
    pub since: u64,
    /// A word about them for a person.
    pub remark: Option<String>,
}

/// The form of a record at the target, or why it stays.
pub type Translation = Result<Vec<Words>, String>;

/// The names of a queue there and here.
#[derive(Debug, Clone)]
pub struct Names {
    /// The name as the peer has it.
    pub queue: String,
    /// The key at the target.
    pub key: Bytes,
    /// The time of the target at the start, Unix ms.
    pub now: u64,
}

/// Everything that the engine asks a peer.
pub trait Peer: Send + Sync {
    /// Returns the names of all queues, for `--queue '*'`.
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure>;
    /// Returns the name with which the keys of a queue begin. The keys of the import lie beside them.
    fn stem(&self, queue: &str) -> Bytes;
    /// Returns what the peer is on the shared script.
    fn row(&self) -> &'static Row;
    /// Returns the key at the target if the command line names none.
    fn key(&self, queue: &str) -> String {
        String::from_utf8_lossy(&self.stem(queue)).into_owned()
    }
    /// Looks at a queue.
    fn look(&self, source: &mut Server, names: &Names) -> Result<Seen, Failure>;
    /// Returns the commands that make the queue at the target.
    fn prepare(&self, _source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure> {
        Ok(vec![self.create(b"DQ.CREATE", names)])
    }
    /// Returns the command that makes the queue, or gives it the options of the peer.
    fn create(&self, verb: &[u8], names: &Names) -> Words {
        let mut all = words([verb, &names.key]);
        all.extend((verb == b"DQ.CREATE").then(|| b"NX".to_vec()));
        let options = self.row().options.split_ascii_whitespace();
        all.extend(options.map(|word| word.as_bytes().to_vec()));
        all
    }
    /// Translates a record into the commands at the target, the first of which sends it.
    fn translate(&self, record: &Record, names: &Names) -> Translation;
    /// Returns the commands that take what hangs on a message away with it, for the undo.
    fn forget(&self, _record: &Record, _names: &Names) -> Vec<Words> {
        Vec::new()
    }
    /// Returns the id of the message that a record has become.
    fn id(&self, record: &Record) -> Bytes {
        record.id.clone()
    }
    /// Returns when a job was added and when it is due, Unix ms, as far as its record says.
    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>);
    /// Returns what workers have.
    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure>;
}

/// Returns words as bytes.
pub fn words<const N: usize>(words: [&[u8]; N]) -> Words {
    words.iter().map(|word| word.to_vec()).collect()
}

/// Makes a command of words.
pub fn command(words: &Words) -> Cmd {
    let mut cmd = Cmd::new();
    for word in words {
        cmd.arg(word);
    }
    cmd
}

/// Returns a key with more behind it.
pub fn beside(stem: &[u8], rest: &str) -> Bytes {
    [stem, rest.as_bytes()].concat()
}

/// Begins a command on a key.
pub fn on(name: &str, key: &[u8]) -> Cmd {
    let mut cmd = redis::cmd(name);
    cmd.arg(key);
    cmd
}

/// Returns the names that are in the keys of a pattern, each once.
fn named<'a>(
    keys: &'a [String],
    name: impl Fn(&'a str) -> Option<&'a str>,
) -> Result<Vec<String>, Failure> {
    let names: BTreeSet<&str> = keys.iter().filter_map(|key| name(key)).collect();
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns what is in a sorted set of those that workers have, by the second until which they have it.
fn held(source: &mut Server, key: &[u8]) -> Result<Running, Failure> {
    let now = clock(source)?;
    let mut late = on("ZRANGEBYSCORE", key);
    late.arg("-inf").arg(now / 1000);
    Ok(Running {
        count: number(source, &on("ZCARD", key))?.unsigned_abs(),
        lost: texts(source.call(&late)?),
        since: now,
        remark: None,
    })
}

/// Returns a time in a score that has whole seconds, Unix ms.
fn second(record: &Record) -> u64 {
    (record.score() * 1000.0).round().max(0.0) as u64
}

/// Returns TYPE with this name, if there can be one.
fn kind_of(name: &str) -> Words {
    match name.len() {
        1..=1024 => words([b"TYPE", name.as_bytes()]),
        _ => Words::new(),
    }
}

pub use bullmq::{BullMq, Options as BullOptions};
pub use celery::{Celery, Options as CeleryOptions};
pub use delayqueue::DelayQueue;
pub use dramatiq::Dramatiq;
pub use laravel::Laravel;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the commands of a record as lines.
    pub fn translated(peer: &dyn Peer, record: &Record) -> Result<Vec<String>, String> {
        let names = Names {
            queue: "default".to_owned(),
            key: peer.key("default").into_bytes(),
            now: 1000,
        };
        let line = |words: Words| String::from_utf8_lossy(&words.join(&b' ')).into_owned();
        Ok(peer
            .translate(record, &names)?
            .into_iter()
            .map(line)
            .collect())
    }
}
