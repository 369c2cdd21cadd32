//! Moves the messages of move tasks. Each gateway looks every second which tasks there are, and
//! takes one that no other gateway has.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::sleep;

use super::delivery::{self, Delivery};
use super::fault::{self, Fault, Kind};
use super::gateway::Gateway;
use super::message::{Meta, HEADER};
use super::moves::{self, Task};
use super::queue::Queue;
use super::store::{cmd, text, uuid};
use super::waits::Ask;
use crate::bounds;

/// How often a gateway looks for tasks.
const LOOK: Duration = Duration::from_secs(1);

/// How long a gateway has a task without saying so again, in milliseconds.
const LEASE: i64 = 10_000;

/// Makes a task known to all gateways.
pub async fn announce(gateway: &Gateway, source: &str) -> Result<(), Fault> {
    gateway
        .store
        .call(cmd("SADD", (gateway.names.common("moves"), source)))
        .await?;
    Ok(())
}

/// Looks for tasks, for ever.
pub async fn run(gateway: Arc<Gateway>) {
    loop {
        sleep(LOOK).await;
        let all = cmd("SMEMBERS", gateway.names.common("moves"));
        let sources = match gateway.store.call(all).await {
            Ok(Value::Array(names) | Value::Set(names)) => names,
            _ => continue,
        };
        for source in sources.iter().filter_map(text) {
            let word = uuid();
            if take(&gateway, &source, &word).await.unwrap_or(false) {
                tokio::spawn(drive(Arc::clone(&gateway), source, word));
            }
        }
    }
}

fn lease(gateway: &Gateway, source: &str) -> String {
    gateway.names.beside(source, "move-lease")
}

async fn take(gateway: &Gateway, source: &str, word: &str) -> Result<bool, Fault> {
    let set = cmd("SET", (lease(gateway, source), word, "NX", "PX", LEASE));
    Ok(gateway.store.call(set).await? != Value::Nil)
}

/// Says that this gateway still has the task. Returns whether that is so.
async fn keep(gateway: &Gateway, source: &str, word: &str) -> Result<bool, Fault> {
    let holder = gateway
        .store
        .call(cmd("GET", lease(gateway, source)))
        .await?;
    if text(&holder).as_deref() != Some(word) {
        return Ok(false);
    }
    gateway
        .store
        .call(cmd("PEXPIRE", (lease(gateway, source), LEASE)))
        .await?;
    Ok(true)
}

/// Moves messages until the task has ended, or another gateway has it.
async fn drive(gateway: Arc<Gateway>, source: String, word: String) {
    // If the server is away, the lease ends, and some gateway goes on.
    while let Ok(true) = keep(&gateway, &source, &word).await {
        let Ok(task) = moves::task(&gateway, &source).await else {
            return;
        };
        match step(&gateway, &source, &task).await {
            Ok(None) => {}
            Ok(Some((status, reason))) => {
                if end(&gateway, &source, status, reason).await.is_err() {
                    return;
                }
                break;
            }
            Err(_) => sleep(LOOK).await,
        }
        let pause = rate(&task).map_or(0, |rate| 1000 * batch(rate) / rate);
        sleep(Duration::from_millis(pause.unsigned_abs())).await;
    }
    // If this fails, the lease ends.
    let _ = gateway
        .store
        .call(cmd("DEL", lease(&gateway, &source)))
        .await;
}

/// Returns how many messages a second a task moves, if it has a limit.
fn rate(task: &Task) -> Option<i64> {
    bounds::MOVES.text(task.get("rate")?)
}

/// Returns how many messages are moved at once at this rate.
fn batch(rate: i64) -> i64 {
    (rate / 10).clamp(1, 10)
}

/// Moves some messages. Returns how the task has ended, if it has.
async fn step(
    gateway: &Gateway,
    source: &str,
    task: &Task,
) -> Result<Option<(&'static str, &'static str)>, Fault> {
    match task.get("status").map(String::as_str) {
        Some("RUNNING") => {}
        Some("CANCELLING") => return Ok(Some(("CANCELLED", ""))),
        // The source was deleted.
        _ => return Ok(Some(("", ""))),
    }
    let gone = Some(("FAILED", fault::GONE));
    let destination = task.get("destination").filter(|arn| !arn.is_empty());
    if let Some(arn) = destination {
        if target(gateway, arn).await?.is_none() {
            return Ok(gone);
        }
    }
    let ask = Ask {
        key: gateway.names.key(source),
        count: rate(task).map_or(10, batch),
        lease: LEASE,
        is_fifo: source.ends_with(".fifo"),
        token: None,
    };
    let reply = gateway.store.call(ask.cmd(None)).await?;
    let deliveries = delivery::read(reply)?;
    if deliveries.is_empty() {
        return Ok(Some(("COMPLETED", "")));
    }
    for delivery in deliveries {
        let arn = match destination {
            Some(arn) => Some(arn.clone()),
            None => delivery
                .died_in(&gateway.names)
                .map(|queue| gateway.names.arn(queue)),
        };
        let target = match arn {
            Some(arn) => target(gateway, &arn).await?,
            None => None,
        };
        let Some(target) = target else {
            gateway
                .store
                .call(cmd("DQ.NACK", (&ask.key, delivery.receipt, "SILENT")))
                .await?;
            return Ok(gone);
        };
        let count = cmd(
            "HINCRBY",
            (gateway.names.beside(source, "move"), "moved", 1),
        );
        let cmds = vec![moved(&ask.key, &target, &delivery), count];
        for reply in gateway.store.change(cmds).await? {
            reply?;
        }
    }
    Ok(None)
}

async fn target(gateway: &Gateway, arn: &str) -> Result<Option<Arc<Queue>>, Fault> {
    let Some(name) = gateway.names.of_arn(arn) else {
        return Ok(None);
    };
    match gateway.read(name).await {
        Ok(queue) => Ok(Some(queue)),
        Err(fault) if fault.kind == Kind::QueueDoesNotExist => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Returns the command that acknowledges a message and sends it to another queue, in one
/// step. It keeps its id, and what the API says of it.
fn moved(source: &str, target: &Queue, delivery: &Delivery) -> Cmd {
    let meta = Meta {
        received: delivery.received_before() + delivery.attempt - 1,
        ..delivery.meta.clone()
    };
    let mut headers = vec![(HEADER.to_owned(), meta.header())];
    let ours = |name: &str| name == HEADER || name.starts_with("dead-");
    let others = delivery.headers.iter().filter(|(name, _)| !ours(name));
    headers.extend(others.cloned());
    let mut cmd = redis::cmd("DQ.ACKSEND");
    cmd.arg(source).arg(delivery.receipt);
    cmd.arg("NEXT").arg(&target.key).arg(&delivery.body);
    cmd.arg("ID").arg(&delivery.id);
    if let Some(group) = &delivery.group {
        cmd.arg("GROUP").arg(group);
    }
    cmd.arg("HEADERS").arg(headers.len());
    for (name, value) in headers {
        cmd.arg(name).arg(value);
    }
    cmd
}

async fn end(gateway: &Gateway, source: &str, status: &str, reason: &str) -> Result<(), Fault> {
    let mut cmds = Vec::new();
    if !status.is_empty() {
        let place = gateway.names.beside(source, "move");
        cmds.push(cmd("HSET", (place, "status", status, "reason", reason)));
    }
    cmds.push(cmd("SREM", (gateway.names.common("moves"), source)));
    for reply in gateway.store.change(cmds).await? {
        reply?;
    }
    Ok(())
}
