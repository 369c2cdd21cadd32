//! ReceiveMessage.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest;
use serde_json::Value as Json;

use super::delivery::{self, Delivery, Wanted};
use super::fault::Fault;
use super::gateway::Gateway;
use super::params::{self, Built, Params};
use super::queue::{Queue, VERSION};
use super::request::Call;
use super::store::{cmd, text, texts};
use super::waits::Ask;
use crate::bounds::{self, Bound};
use crate::text::hex;

/// Returns the time, in Unix ms.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
    })
}

/// The result of a request for messages.
pub enum Received {
    /// An answer.
    Now(Params),
    /// Messages that are still to come.
    Later(Poll),
}

/// A request that waits for messages. It holds no more than it needs, because many wait.
pub struct Poll {
    queue: Arc<Queue>,
    wanted: Wanted,
    ask: Ask,
    time: Duration,
}

impl Poll {
    /// Waits for messages. If there are none in time, the answer has none.
    pub async fn wait(self, gateway: &Gateway) -> Result<Params, Fault> {
        let deliveries = gateway.waits.wait(self.ask, self.time).await?;
        Box::pin(answer(gateway, &self.queue, &self.wanted, &deliveries)).await
    }
}

/// Receives messages.
pub async fn receive(gateway: &Gateway, call: &Call) -> Result<Received, Fault> {
    let mut queue = gateway.named(call).await?;
    let wanted = wanted(&call.params);
    let mut ask = ask(&queue, &call.params)?;
    let wait = seconds(
        &call.params,
        &bounds::WAIT,
        "Must be >= 0 and <= 20, if provided.",
    )?;
    let cmds = vec![queue.version(), ask.cmd(None)];
    let mut replies = gateway.store.change(cmds).await?.into_iter();
    let version = replies.next().ok_or_else(Fault::reply)??;
    if text(&version).as_deref() != Some(queue.text(VERSION)) {
        queue = gateway.read(&queue.name).await?;
        ask.lease = self::ask(&queue, &call.params)?.lease;
    }
    let deliveries = delivery::read(replies.next().ok_or_else(Fault::reply)??)?;
    let wait = wait.unwrap_or_else(|| queue.number("ReceiveMessageWaitTimeSeconds"));
    if deliveries.is_empty() && wait > 0 {
        let time = Duration::from_secs(wait.unsigned_abs());
        return Ok(Received::Later(Poll {
            queue,
            wanted,
            ask,
            time,
        }));
    }
    let answer = answer(gateway, &queue, &wanted, &deliveries).await?;
    Ok(Received::Now(answer))
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
    let token = token.map(|id| hex(digest::digest(&digest::SHA256, id.as_bytes())));
    Ok(Ask {
        key: queue.key.clone(),
        count: count.unwrap_or(1),
        // A message that is to be seen at once is leased for the shortest time there is.
        lease: (lease * 1000).max(1),
        is_fifo: queue.is_fifo(),
        token,
    })
}

async fn answer(
    gateway: &Gateway,
    queue: &Queue,
    wanted: &Wanted,
    deliveries: &[Delivery],
) -> Result<Params, Fault> {
    if deliveries.is_empty() {
        return Ok(Params::new());
    }
    let ids = deliveries.iter().map(|one| (one.id.as_str(), one.receipt));
    let handles = gateway.seal.handles(gateway, &queue.name, ids).await?;
    let firsts = firsts(gateway, queue, wanted, deliveries).await?;
    let all = deliveries.iter().zip(handles).zip(firsts);
    let messages: Vec<Json> = all
        .map(|((delivery, handle), first)| {
            Json::Object(delivery.shown(&gateway.names, wanted, handle, first))
        })
        .collect();
    Ok(Built::default().with("Messages", messages).done())
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
    let cmds = deliveries
        .iter()
        .map(|one| cmd("DQ.GET", (&queue.key, &one.id)));
    let replies = gateway.store.pipeline(cmds.collect()).await?;
    for (first, reply) in firsts.iter_mut().zip(replies) {
        let time = texts(reply?).remove("first-started-at");
        *first = time.and_then(|time| time.parse().ok()).unwrap_or(now);
    }
    Ok(firsts)
}
