//! Long polling: who waits for the messages of a queue. However many wait, one connection
//! to the server waits for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{timeout_at, Instant};

use super::delivery::{self, Delivery};
use super::fault::Fault;
use super::store::Store;
use crate::server::Line;

/// A request for messages.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The key of the queue.
    pub key: String,
    /// The most messages.
    pub count: i64,
    /// How long they are leased, in milliseconds.
    pub lease: i64,
    /// Whether several messages of one group may come.
    pub is_fifo: bool,
    /// The name of this request, under which a repeated one gets the same messages.
    pub token: Option<String>,
}

impl Ask {
    /// Returns the command that takes messages. With `block` it waits, in milliseconds.
    pub fn cmd(&self, block: Option<u128>) -> Cmd {
        let mut cmd = redis::cmd("DQ.FETCH");
        cmd.arg(&self.key).arg("COUNT").arg(self.count);
        cmd.arg("LEASE").arg(self.lease).arg("WITHMETA");
        if self.is_fifo {
            cmd.arg("PERGROUP").arg(self.count);
        }
        if let Some(token) = &self.token {
            cmd.arg("CONSUMER").arg(token).arg("TOKEN").arg(token);
        }
        if let Some(block) = block {
            cmd.arg("BLOCK").arg(block.max(1).to_string());
        }
        cmd
    }
}

struct Waiter {
    ask: Ask,
    until: Instant,
    reply: oneshot::Sender<Result<Vec<Delivery>, Fault>>,
}

type Lines = Mutex<HashMap<String, mpsc::UnboundedSender<Waiter>>>;

/// Those who wait.
pub struct Waits {
    store: Arc<Store>,
    lines: Arc<Lines>,
}

impl Waits {
    /// Creates it. Nobody waits.
    pub fn new(store: Arc<Store>) -> Waits {
        Waits {
            store,
            lines: Arc::default(),
        }
    }

    /// Waits for messages. If there are none in time, none are returned.
    pub async fn wait(&self, ask: Ask, time: Duration) -> Result<Vec<Delivery>, Fault> {
        let (reply, answer) = oneshot::channel();
        let until = Instant::now() + time;
        self.stand(Waiter { ask, until, reply });
        match timeout_at(until, answer).await {
            Ok(Ok(answer)) => answer,
            _ => Ok(Vec::new()),
        }
    }

    /// Puts a waiter at the end of the line of its queue.
    fn stand(&self, waiter: Waiter) {
        let key = waiter.ask.key.clone();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let waiter = match lines.get(&key) {
            Some(line) => match line.send(waiter) {
                Ok(()) => return,
                Err(refused) => refused.0,
            },
            None => waiter,
        };
        let (line, waiters) = mpsc::unbounded_channel();
        if line.send(waiter).is_ok() {
            lines.insert(key.clone(), line);
            let (store, lines) = (Arc::clone(&self.store), Arc::clone(&self.lines));
            tokio::spawn(serve(store, lines, key, waiters));
        }
    }
}

/// Serves the waiters of one queue in their order, until none is left.
async fn serve(
    store: Arc<Store>,
    lines: Arc<Lines>,
    key: String,
    mut waiters: mpsc::UnboundedReceiver<Waiter>,
) {
    let mut line: Option<Line> = None;
    while let Some(waiter) = next(&lines, &key, &mut waiters) {
        let left = waiter.until.saturating_duration_since(Instant::now());
        // A waiter whose client has gone, or whose time is over, waits no longer.
        if waiter.reply.is_closed() || left.is_zero() {
            continue;
        }
        let answer = match take(&store, &mut line).await {
            Err(fault) => Err(fault),
            Ok(line) => fetch(line, waiter.ask.cmd(Some(left.as_millis()))).await,
        };
        if answer.is_err() {
            line = None;
            store.forget_idle().await;
        }
        // Its client may have gone while it waited. The messages go back, and no receive
        // is counted.
        if let (Err(Ok(unread)), Some(line)) = (waiter.reply.send(answer), line.as_mut()) {
            give_back(line, &key, &unread).await;
        }
    }
    if let Some(line) = line {
        store.give_back(line).await;
    }
}

/// Returns the next waiter. If there is none, the line of the queue is closed.
fn next(lines: &Lines, key: &str, waiters: &mut mpsc::UnboundedReceiver<Waiter>) -> Option<Waiter> {
    if let Ok(waiter) = waiters.try_recv() {
        return Some(waiter);
    }
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    let waiter = waiters.try_recv().ok();
    if waiter.is_none() {
        lines.remove(key);
    }
    waiter
}

async fn take<'a>(store: &Store, line: &'a mut Option<Line>) -> Result<&'a mut Line, Fault> {
    match line {
        Some(line) => Ok(line),
        None => Ok(line.insert(store.take().await?)),
    }
}

async fn fetch(line: &mut Line, cmd: Cmd) -> Result<Vec<Delivery>, Fault> {
    let reply: Value = line.call(&cmd).await?;
    delivery::read(reply)
}

async fn give_back(line: &mut Line, key: &str, unread: &[Delivery]) {
    if unread.is_empty() {
        return;
    }
    let mut cmd = redis::cmd("DQ.NACK");
    cmd.arg(key);
    for delivery in unread {
        cmd.arg(delivery.receipt);
    }
    cmd.arg("SILENT");
    // If this fails, their leases end.
    let _ = line.call(&cmd).await;
}
