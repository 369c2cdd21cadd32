//! The server of the queues, as the gateway uses it: shared connections that are made again
//! when they break, scripts, and connections for commands that wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Cmd, ToRedisArgs, Value};
use ring::digest;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::fault::{Fault, Kind};
use crate::failure::Failure;
use crate::server::{slot, Endpoint, Line};
use crate::text::hex;

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
        Script {
            text,
            name: hex(hash),
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
    pub async fn are_apart(&self, keys: &[String; 2]) -> Result<bool, Fault> {
        let (_, line) = self.line().await?;
        let [one, other] = keys.each_ref().map(|key| slot(key.as_bytes()));
        Ok(matches!(line, Line::Cluster(_)) && one != other)
    }

    /// Runs commands that change something. If changes are to be on disk, it returns when
    /// they are.
    pub async fn change(&self, mut cmds: Vec<Cmd>) -> Result<Vec<Result<Value, Failure>>, Fault> {
        if self.durable {
            cmds.push(cmd("WAITAOF", (1, 0, SYNC)));
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

    /// Runs one command that changes something.
    pub async fn change_one(&self, cmd: Cmd) -> Result<Value, Fault> {
        let mut replies = self.change(vec![cmd]).await?;
        Ok(replies.pop().ok_or_else(Fault::reply)??)
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
                self.change_one(script.cmd(true, keys, args)).await
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

/// Creates a command with its arguments.
pub fn cmd(name: &str, args: impl ToRedisArgs) -> Cmd {
    let mut cmd = redis::cmd(name);
    cmd.arg(args);
    cmd
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

/// Returns the texts of a map.
pub fn texts(value: Value) -> BTreeMap<String, String> {
    let pairs = pairs(value).into_iter();
    pairs
        .filter_map(|(field, value)| Some((text(&field)?, text(&value)?)))
        .collect()
}

/// Returns a random UUID.
pub fn uuid() -> String {
    Uuid::new_v4().to_string()
}
