//! ReceiveMessage.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest;
use serde_json::Value as Json;

use super::delivery::{self, Delivery, Wanted};
use super::fault::Fault;
use super::gateway::Gateway;
use super::params::{self, Built, Params};
use super::queue::{Queue, VERSION};
use super::request::Call;
use super::store::{pairs, text};
use super::waits::Ask;
use crate::bounds::{self, Bound};

/// Returns the time, in Unix ms.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Receives messages.
pub async fn receive(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let mut queue = gateway.named(call).await?;
    let wanted = wanted(&call.params);
    let mut ask = ask(&queue, &call.params)?;
    let wait = seconds(
        &call.params,
        &bounds::WAIT,
        "Must be >= 0 and <= 20, if provided.",
    )?;
    let mut version = redis::cmd("HGET");
    version.arg(&queue.beside).arg(VERSION);
    let mut replies = gateway
        .store
        .change(vec![version, ask.cmd(None)])
        .await?
        .into_iter();
    let version = replies.next().ok_or_else(Fault::reply)??;
    if text(&version).as_deref() != Some(queue.text(VERSION)) {
        queue = gateway.read(&queue.name).await?;
        ask.lease = self::ask(&queue, &call.params)?.lease;
    }
    let mut deliveries = delivery::read(replies.next().ok_or_else(Fault::reply)??)?;
    let wait = wait.unwrap_or_else(|| queue.number("ReceiveMessageWaitTimeSeconds"));
    if deliveries.is_empty() && wait > 0 {
        let time = Duration::from_secs(wait.unsigned_abs());
        deliveries = gateway.waits.wait(ask, time).await?;
    }
    let messages = shown(gateway, &queue, &wanted, &deliveries).await?;
    Ok(Built::default().with("Messages", messages).done())
}

fn wanted(given: &Params) -> Wanted {
    let mut system = params::texts(given, "AttributeNames");
    system.extend(params::texts(given, "MessageSystemAttributeNames"));
    Wanted {
        system,
        attributes: params::texts(given, "MessageAttributeNames"),
    }
}

/// Reads a number of a request that must be within its bound.
pub fn seconds(given: &Params, bound: &Bound, reason: &str) -> Result<Option<i64>, Fault> {
    match params::number(given, bound.name)? {
        Some(number) if bound.check(number).is_none() => {
            Err(Fault::parameter(number, bound.name, reason))
        }
        number => Ok(number),
    }
}

fn ask(queue: &Queue, given: &Params) -> Result<Ask, Fault> {
    let count = seconds(
        given,
        &bounds::MESSAGES,
        "Must be between 1 and 10, if provided.",
    )?;
    let lease = seconds(
        given,
        &bounds::VISIBILITY,
        "Must be >= 0 and <= 43200, if provided.",
    )?;
    let lease = lease.unwrap_or_else(|| queue.number("VisibilityTimeout"));
    let token = params::text(given, "ReceiveRequestAttemptId").filter(|_| queue.is_fifo());
    let token = token.map(|id| {
        let hash = digest::digest(&digest::SHA256, id.as_bytes());
        let hash = hash.as_ref().iter().take(16);
        hash.map(|byte| format!("{byte:02x}")).collect()
    });
    Ok(Ask {
        key: queue.key.clone(),
        count: count.unwrap_or(1),
        // A message that is to be seen at once is leased for the shortest time there is.
        lease: (lease * 1000).max(1),
        is_fifo: queue.is_fifo(),
        token,
    })
}

async fn shown(
    gateway: &Gateway,
    queue: &Queue,
    wanted: &Wanted,
    deliveries: &[Delivery],
) -> Result<Vec<Json>, Fault> {
    if deliveries.is_empty() {
        return Ok(Vec::new());
    }
    let ids = deliveries.iter().map(|one| (one.id.as_str(), one.receipt));
    let handles = gateway.seal.handles(gateway, &queue.name, ids).await?;
    let firsts = firsts(gateway, queue, wanted, deliveries).await?;
    let all = deliveries.iter().zip(handles).zip(firsts);
    Ok(all
        .map(|((delivery, handle), first)| {
            Json::Object(delivery.shown(&gateway.names, wanted, handle, first))
        })
        .collect())
}

/// Returns when each message was received first. The server is asked only about those that
/// were received before, and only if the client wants to know.
async fn firsts(
    gateway: &Gateway,
    queue: &Queue,
    wanted: &Wanted,
    deliveries: &[Delivery],
) -> Result<Vec<i64>, Fault> {
    let now = now();
    let mut firsts: Vec<i64> = deliveries.iter().map(|_| now).collect();
    let again = deliveries.iter().any(|one| one.attempt > 1);
    if !again || !wanted.system("ApproximateFirstReceiveTimestamp") {
        return Ok(firsts);
    }
    let cmds = deliveries.iter().map(|one| {
        let mut cmd = redis::cmd("DQ.GET");
        cmd.arg(&queue.key).arg(&one.id);
        cmd
    });
    let replies = gateway.store.pipeline(cmds.collect()).await?;
    for (first, reply) in firsts.iter_mut().zip(replies) {
        for (field, value) in pairs(reply?) {
            if text(&field).as_deref() == Some("first-started-at") {
                let time = text(&value).and_then(|time| time.parse().ok());
                *first = time.unwrap_or(now);
            }
        }
    }
    Ok(firsts)
}
