//! DeleteMessage and ChangeMessageVisibility, each alone and in batches.

use redis::Value;
use serde_json::json;

use super::batch::{self, Entry};
use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::handle::Handle;
use super::params::{self, Built, Params};
use super::queue::Queue;
use super::receive::seconds;
use super::request::Call;
use super::store::{cmd, texts};
use crate::bounds;

/// A handle, and the text that the client has sent.
struct Named {
    handle: Handle,
    text: String,
}

/// Deletes a message.
pub async fn delete(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.named(call).await?;
    let named = vec![named(gateway, &queue, &call.params).await];
    let results = delete_all(gateway, &queue, named).await?;
    results.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(Params::new())
}

/// Deletes several messages.
pub async fn delete_batch(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.named(call).await?;
    let entries = batch::entries(call)?;
    let mut all = Vec::new();
    for entry in &entries {
        all.push(named(gateway, &queue, &entry.params).await);
    }
    let results = delete_all(gateway, &queue, all).await?;
    Ok(report(entries, results))
}

/// Changes how long a message is not seen.
pub async fn change(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.named(call).await?;
    exists(gateway, &queue).await?;
    change_one(gateway, &queue, &call.params).await?;
    Ok(Params::new())
}

/// Changes how long several messages are not seen.
pub async fn change_batch(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.named(call).await?;
    let entries = batch::entries(call)?;
    exists(gateway, &queue).await?;
    let mut results = Vec::new();
    for entry in &entries {
        results.push(change_one(gateway, &queue, &entry.params).await);
    }
    Ok(report(entries, results))
}

fn report(entries: Vec<Entry>, results: Vec<Result<(), Fault>>) -> Params {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (entry, result) in entries.into_iter().zip(results) {
        match result {
            Ok(()) => successful.push(json!({ "Id": entry.id })),
            Err(fault) => failed.push(batch::failed(&entry.id, &fault)),
        }
    }
    Built::default()
        .with("Successful", successful)
        .with("Failed", failed)
        .done()
}

async fn named(gateway: &Gateway, queue: &Queue, given: &Params) -> Result<Named, Fault> {
    let text = params::needed(given, "ReceiptHandle")?;
    let handle = gateway.seal.open(gateway, &queue.name, &text).await?;
    Ok(Named { handle, text })
}

/// Fails if the queue is there no more.
async fn exists(gateway: &Gateway, queue: &Queue) -> Result<(), Fault> {
    let reply = gateway.store.call(queue.version()).await?;
    check(gateway, queue, &reply)
}

fn check(gateway: &Gateway, queue: &Queue, version: &Value) -> Result<(), Fault> {
    match version {
        Value::Nil => {
            gateway.forget(&queue.name);
            Err(Fault::no_queue())
        }
        _ => Ok(()),
    }
}

/// Deletes messages. Those that run are acknowledged in one command. The others have run
/// out, were received anew, or are gone.
async fn delete_all(
    gateway: &Gateway,
    queue: &Queue,
    all: Vec<Result<Named, Fault>>,
) -> Result<Vec<Result<(), Fault>>, Fault> {
    let mut ack = redis::cmd("DQ.ACK");
    ack.arg(&queue.key);
    let (mut cmds, mut count) = (vec![queue.version()], 0);
    for named in all.iter().flatten() {
        ack.arg(named.handle.receipt);
        count += 1;
    }
    if count > 0 {
        cmds.push(ack);
    }
    let mut replies = gateway.store.change(cmds).await?.into_iter();
    check(gateway, queue, &replies.next().ok_or_else(Fault::reply)??)?;
    let acked = match replies.next() {
        None => 0,
        Some(reply) => match reply? {
            Value::Int(acked) => acked,
            _ => return Err(Fault::reply()),
        },
    };
    if acked == count {
        return Ok(all.into_iter().map(|named| named.map(|_| ())).collect());
    }
    let mut results = Vec::new();
    for named in all {
        results.push(match named {
            Ok(named) => delete_late(gateway, queue, &named).await,
            Err(fault) => Err(fault),
        });
    }
    Ok(results)
}

/// Deletes a message whose delivery is over: of a FIFO queue it cannot be, others are
/// deleted all the same. One that is gone is fine.
async fn delete_late(gateway: &Gateway, queue: &Queue, named: &Named) -> Result<(), Fault> {
    let name = (&queue.key, &named.handle.id);
    if !queue.is_fifo() {
        gateway.store.change_one(cmd("DQ.CANCEL", name)).await?;
        return Ok(());
    }
    match gateway.store.call(cmd("DQ.GET", name)).await? {
        Value::Nil => Ok(()),
        _ => Err(expired(named)),
    }
}

fn expired(named: &Named) -> Fault {
    Fault::parameter(
        &named.text,
        "ReceiptHandle",
        "The receipt handle has expired.",
    )
}

async fn change_one(gateway: &Gateway, queue: &Queue, given: &Params) -> Result<(), Fault> {
    let named = named(gateway, queue, given).await?;
    let time = seconds(
        given,
        &bounds::VISIBILITY,
        "VisibilityTimeout must be an integer between 0 and 43200.",
    )?;
    let time = time.ok_or_else(|| Fault::missing("VisibilityTimeout"))?;
    if changed(gateway, queue, named.handle.receipt, time).await? {
        return Ok(());
    }
    // The delivery is over. The message may be there all the same.
    let get = cmd("DQ.GET", (&queue.key, &named.handle.id));
    let found = texts(gateway.store.call(get).await?);
    let field = |name| found.get(name).map(String::as_str);
    match (field("status"), field("receipt")) {
        (Some("running"), Some(receipt)) if !queue.is_fifo() => {
            changed(gateway, queue, receipt.parse().unwrap_or(0), time).await?;
            Ok(())
        }
        (Some("pending"), _) if !queue.is_fifo() => {
            let hidden = (&queue.key, &named.handle.id, "DELAY", time * 1000);
            gateway
                .store
                .change_one(cmd("DQ.RESCHEDULE", hidden))
                .await?;
            Ok(())
        }
        (Some("running" | "pending"), _) => Err(expired(&named)),
        _ => Err(Fault::new(
            Kind::InvalidParameterValue,
            format!(
                "Value {} for parameter ReceiptHandle is invalid. Reason: Message does not exist \
                 or is not available for visibility timeout change.",
                named.text
            ),
        )),
    }
}

/// Changes the end of a delivery. With 0 it ends now, and counts as a receive. Returns
/// whether it was still on.
async fn changed(gateway: &Gateway, queue: &Queue, receipt: i64, time: i64) -> Result<bool, Fault> {
    let cmd = match time {
        0 => cmd("DQ.NACK", (&queue.key, receipt, "DELAY", 0)),
        _ => cmd("DQ.TOUCH", (&queue.key, time * 1000, receipt)),
    };
    match gateway.store.change_one(cmd).await? {
        Value::Int(count) => Ok(count > 0),
        _ => Err(Fault::reply()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    fn ids(params: &Params, name: &str) -> Vec<Json> {
        let items = params.get(name).and_then(Json::as_array);
        let items = items.into_iter().flatten();
        items.filter_map(|item| item.get("Id").cloned()).collect()
    }

    #[test]
    fn each_entry_of_a_batch_has_its_result() {
        let entry = |id: &str| Entry {
            id: id.to_owned(),
            params: Params::new(),
        };
        let results = vec![Ok(()), Err(Fault::receipt("x"))];
        let report = report(vec![entry("a"), entry("b")], results);
        assert_eq!(ids(&report, "Successful"), ["a"]);
        assert_eq!(ids(&report, "Failed"), ["b"]);
    }
}
