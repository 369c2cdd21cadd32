//! The peers: one file each, with what it keeps where, and what becomes of it.

mod bullmq;
mod celery;
mod delayqueue;
mod dramatiq;
mod laravel;

use redis::Cmd;

use super::record::{Bytes, Record};
use crate::failure::Failure;
use crate::server::Server;

/// A command at the target, as its words. `DEAD` and `SCHEDULER` are words of the script that sends.
pub type Words = Vec<Bytes>;

/// What a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Jobs that have failed for good. They go first.
    Dead,
    /// Jobs that are due.
    Waiting,
    /// Jobs that are due later.
    Delayed,
}

/// A list or a sorted set with jobs.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its name, which is that in the records.
    pub name: String,
    /// What it holds.
    pub state: State,
    /// Its keys, in the order in which the peer's script wants them.
    pub keys: Vec<Bytes>,
    /// More words for the peer's script.
    pub words: Vec<String>,
    /// The command that counts its jobs.
    pub count: &'static str,
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
    /// What does not move, and why, with its number.
    pub stays: Vec<(String, u64)>,
}

/// The jobs that workers have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    /// Their number.
    pub count: u64,
    /// The ids of those that are lost by the peer's own rules.
    pub lost: Vec<String>,
    /// A word about them for a person.
    pub remark: Option<String>,
}

/// What a record is at the target, or why it stays.
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
    /// Returns the key at the target if the command line names none.
    fn key(&self, queue: &str) -> String;
    /// Looks at a queue.
    fn look(&self, source: &mut Server, names: &Names) -> Result<Seen, Failure>;
    /// Returns the body of the script that claims.
    fn claim(&self) -> &'static str;
    /// Returns the body of the script that puts records back.
    fn restore(&self) -> &'static str;
    /// Returns the commands that make the queue at the target.
    fn prepare(&self, source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure>;
    /// Translates a record into the commands at the target, the first of which sends it.
    fn translate(&self, record: &Record, names: &Names) -> Translation;
    /// Returns the commands that take what hangs on a message away with it, for the undo.
    fn forget(&self, record: &Record, names: &Names) -> Vec<Words>;
    /// Returns the id of the message that a record has become.
    fn id(&self, record: &Record) -> Bytes;
    /// Returns when a job was added and when it is due, Unix ms, as far as its record says.
    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>);
    /// Returns what workers have.
    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure>;
}

/// Returns words as bytes.
pub fn words<const N: usize>(words: [&[u8]; N]) -> Words {
    words.iter().map(|word| word.to_vec()).collect()
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

pub use bullmq::BullMq;
pub use celery::{Celery, Options as CeleryOptions};
pub use delayqueue::DelayQueue;
pub use dramatiq::Dramatiq;
pub use laravel::Laravel;
