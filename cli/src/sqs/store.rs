//! The server of the queues, as the gateway uses it: shared connections that are made again
//! when they break, scripts, and connections for commands that wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use redis::{Cmd, Value};
use ring::digest;
use tokio::sync::Mutex;

use super::fault::{Fault, Kind};
use crate::failure::Failure;
use crate::server::{slot, Endpoint, Line};

/// Maximum time for a reply of a command that does not wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shared connections where each change waits until it is on disk. While one of them
/// waits, the changes of others gather for the next.
const DURABLE_LINES: usize = 8;

/// Maximum number of idle connections that are kept for commands that wait.
const IDLE: usize = 32;

/// Time for WAITAOF, in milliseconds.
const SYNC: usize = 8000;

/// A script of the server, and its name there.
pub struct Script {
    text: &'static str,
    name: String,
}

impl Script {
    /// Creates a script.
    pub fn new(text: &'static str) -> Script {
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        let name = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Script {
            text,
            name: name.collect(),
        }
    }

    fn cmd(&self, whole: bool, keys: &[String], args: &[Vec<u8>]) -> Cmd {
        let mut cmd = redis::cmd(if whole { "EVAL" } else { "EVALSHA" });
        cmd.arg(if whole { self.text } else { &self.name });
        cmd.arg(keys.len()).arg(keys);
        for arg in args {
            cmd.arg(arg.as_slice());
        }
        cmd
    }
}

/// The server of the queues.
pub struct Store {
    endpoint: Endpoint,
    durable: bool,
    lines: Vec<Mutex<Option<Line>>>,
    turn: AtomicUsize,
    idle: Mutex<Vec<Line>>,
}

impl Store {
    /// Creates it without a connection. With `durable` changes are on disk before they are
    /// confirmed.
    pub fn new(endpoint: Endpoint, durable: bool) -> Store {
        let count = if durable { DURABLE_LINES } else { 1 };
        Store {
            endpoint,
            durable,
            lines: (0..count).map(|_| Mutex::new(None)).collect(),
            turn: AtomicUsize::new(0),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Runs one command, whose first argument is its key.
    pub async fn call(&self, cmd: Cmd) -> Result<Value, Fault> {
        let mut replies = self.pipeline(vec![cmd]).await?;
        Ok(replies.pop().ok_or_else(Fault::reply)??)
    }

    /// Runs commands in one round trip. Returns a reply or an error for each.
    pub async fn pipeline(&self, cmds: Vec<Cmd>) -> Result<Vec<Result<Value, Failure>>, Fault> {
        let (place, mut line) = self.line().await?;
        let replies = line.pipeline(cmds).await;
        if matches!(replies, Err(Failure::Lost(_))) {
            *place.lock().await = None;
        }
        Ok(replies?)
    }

    /// Returns a shared connection, and its place, which whoever finds it broken empties.
    async fn line(&self) -> Result<(&Mutex<Option<Line>>, Line), Fault> {
        let number = self.turn.fetch_add(1, Ordering::Relaxed) % self.lines.len();
        let place = self.lines.get(number).ok_or_else(Fault::reply)?;
        let mut held = place.lock().await;
        let line = match held.as_ref() {
            Some(line) => line.clone(),
            None => {
                let line = Line::open(&self.endpoint, Some(PATIENCE)).await?;
                held.insert(line).clone()
            }
        };
        Ok((place, line))
    }

    /// Returns whether no command can take both keys, because a cluster has them in two slots.
    pub async fn are_apart(&self, one: &str, other: &str) -> Result<bool, Fault> {
        let (_, line) = self.line().await?;
        Ok(matches!(line, Line::Cluster(_)) && slot(one.as_bytes()) != slot(other.as_bytes()))
    }

    /// Runs commands that change something. If changes are to be on disk, it returns when
    /// they are.
    pub async fn change(&self, mut cmds: Vec<Cmd>) -> Result<Vec<Result<Value, Failure>>, Fault> {
        if self.durable {
            let mut wait = redis::cmd("WAITAOF");
            wait.arg(1).arg(0).arg(SYNC);
            cmds.push(wait);
        }
        let mut replies = self.pipeline(cmds).await?;
        if self.durable {
            match replies.pop().ok_or_else(Fault::reply)?? {
                Value::Array(counts) if counts.first() != Some(&Value::Int(0)) => {}
                _ => {
                    return Err(Fault::new(
                        Kind::ServiceUnavailable,
                        "The log did not reach the disk in time.",
                    ))
                }
            }
        }
        Ok(replies)
    }

    /// Runs a script that changes something.
    pub async fn script(
        &self,
        script: &Script,
        keys: &[String],
        args: &[Vec<u8>],
    ) -> Result<Value, Fault> {
        let mut replies = self.change(vec![script.cmd(false, keys, args)]).await?;
        match replies.pop().ok_or_else(Fault::reply)? {
            Err(Failure::Refused(words)) if words.starts_with("NOSCRIPT") => {
                let mut replies = self.change(vec![script.cmd(true, keys, args)]).await?;
                Ok(replies.pop().ok_or_else(Fault::reply)??)
            }
            reply => Ok(reply?),
        }
    }

    /// Takes a connection for commands that wait. Give it back if it is whole.
    pub async fn take(&self) -> Result<Line, Fault> {
        if let Some(line) = self.idle.lock().await.pop() {
            return Ok(line);
        }
        Ok(Line::open(&self.endpoint, None).await?)
    }

    /// Forgets the connections that were given back: when one is broken, all may be.
    pub async fn forget_idle(&self) {
        self.idle.lock().await.clear();
    }

    /// Gives a connection back.
    pub async fn give_back(&self, line: Line) {
        let mut idle = self.idle.lock().await;
        if idle.len() < IDLE {
            idle.push(line);
        }
    }
}

/// Returns a text of a reply.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the pairs of a map, which a script gives as a list.
pub fn pairs(value: Value) -> Vec<(Value, Value)> {
    match value {
        Value::Map(pairs) => pairs,
        Value::Array(items) => {
            let mut items = items.into_iter();
            let mut pairs = Vec::new();
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                pairs.push((key, value));
            }
            pairs
        }
        _ => Vec::new(),
    }
}

/// Returns random bytes.
pub fn random<const N: usize>() -> Result<[u8; N], Fault> {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; N];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Fault::new(Kind::InternalFailure, "No random numbers.")),
    }
}

/// Returns a random word.
pub fn random_word() -> Result<String, Fault> {
    let bytes = random::<12>()?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns a random UUID.
pub fn uuid() -> Result<String, Fault> {
    let number = u128::from_be_bytes(random()?);
    let number = number & !(0xf000 << 64) & !(0xc000 << 48) | (0x4000 << 64) | (0x8000 << 48);
    let hex = format!("{number:032x}");
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    let parts: Vec<&str> = parts
        .iter()
        .filter_map(|(from, to)| hex.get(*from..*to))
        .collect();
    Ok(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_their_form() {
        let uuid = uuid().unwrap();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]));
    }
}
