//! SendMessage, alone and in batches.

use redis::Value;
use ring::digest;
use serde_json::Value as Json;

use super::batch::{self, Entry};
use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::message::{self, Meta};
use super::params::{self, Built, Params};
use super::queue::{Queue, SCOPE, VERSION};
use super::receive::{now, seconds};
use super::request::Call;
use super::store;
use crate::bounds;
use crate::failure::Failure;
use crate::text::hex;

/// Maximum size of the messages of a batch together, in bytes.
const BATCH: usize = 1_048_576;

/// The attribute of a message that delays it by milliseconds, beyond what AWS allows.
const DELAY: &str = "dq.delay-ms";

/// Sends messages, unless an attribute of the queue has changed. The keys are the queue and its
/// attributes. The arguments are the version of the attributes, 1 for a FIFO queue, and for each
/// message its id, body, delay, TTL if not the queue's, group, header and deduplication id. In a
/// FIFO queue the first half of the id is the sequence number. The replies are the ids: of a
/// duplicate, that of the first.
pub const SEND: &str = r"
if redis.call('HGET', KEYS[2], '.version') ~= ARGV[1] then return false end
local replies = {}
for i = 3, #ARGV, 7 do
  local id = ARGV[i]
  if ARGV[2] == '1' then
    local number = string.format('%015x', redis.call('HINCRBY', KEYS[2], '.sequence', 1))
    local parts = {number:sub(1, 8), number:sub(9, 12), '8' .. number:sub(13), id:sub(20)}
    id = table.concat(parts, '-')
  end
  local words = {'DQ.SEND', KEYS[1], ARGV[i + 1], 'ID', id, 'HEADERS', 1, 'sqs', ARGV[i + 5]}
  local function add(...)
    for _, word in ipairs({...}) do words[#words + 1] = word end
  end
  if ARGV[i + 2] ~= '0' then add('DELAY', ARGV[i + 2]) end
  if ARGV[i + 3] ~= '' then add('TTL', ARGV[i + 3]) end
  if ARGV[i + 4] ~= '' then add('GROUP', ARGV[i + 4]) end
  if ARGV[i + 6] ~= '' then add('DEDUPID', ARGV[i + 6], 300000) end
  local sent = redis.pcall(unpack(words))
  if type(sent) == 'table' and sent.err then sent = '!' .. sent.err end
  replies[#replies + 1] = sent
end
return replies
";

/// A message that is fit to be sent.
struct Ready {
    id: String,
    body: String,
    delay: i64,
    /// Milliseconds from its delay to the end of its retention, which begins at the send. None:
    /// the retention of the queue.
    left: Option<i64>,
    group: String,
    meta: Meta,
    sums: Built,
}

/// Sends a message.
pub async fn one(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let mut queue = gateway.named(call).await?;
    loop {
        let ready = ready(call, &queue, &call.params)?;
        if let Some(mut sent) = sent(gateway, &queue, &[&ready]).await? {
            let sent = sent.pop().ok_or_else(Fault::reply)??;
            return Ok(with_place(ready.sums, sent).done());
        }
        queue = gateway.read(&queue.name).await?;
    }
}

/// Sends several messages.
pub async fn batch(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let mut queue = gateway.named(call).await?;
    let entries = batch::entries(call)?;
    loop {
        if let Some(result) = try_batch(gateway, call, &queue, &entries).await? {
            return Ok(result);
        }
        queue = gateway.read(&queue.name).await?;
    }
}

async fn try_batch(
    gateway: &Gateway,
    call: &Call,
    queue: &Queue,
    entries: &[Entry],
) -> Result<Option<Params>, Fault> {
    let mut size = 0;
    for entry in entries {
        check_fifo(queue, &entry.params)?;
        size += size_of(&entry.params);
    }
    if size > BATCH {
        return Err(Fault::new(
            Kind::BatchRequestTooLong,
            format!(
                "Batch requests cannot be longer than {BATCH} bytes. You have sent {size} bytes."
            ),
        ));
    }
    let all: Vec<_> = entries
        .iter()
        .map(|entry| ready(call, queue, &entry.params))
        .collect();
    let fit: Vec<&Ready> = all.iter().flatten().collect();
    let Some(sent) = sent(gateway, queue, &fit).await? else {
        return Ok(None);
    };
    let mut sent = sent.into_iter();
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (entry, ready) in entries.iter().zip(all) {
        let result = match ready {
            Err(fault) => Err(in_batch(fault)),
            Ok(ready) => match sent.next().ok_or_else(Fault::reply)? {
                Err(fault) => Err(fault),
                Ok(place) => Ok(with_place(ready.sums, place)),
            },
        };
        match result {
            Err(fault) => failed.push(batch::failed(&entry.id, &fault)),
            Ok(result) => {
                let result = result.with("Id", entry.id.as_str());
                successful.push(Json::Object(result.done()));
            }
        }
    }
    let result = Built::default();
    let result = result.with("Successful", successful).with("Failed", failed);
    Ok(Some(result.done()))
}

/// In a batch AWS has another text for a message that is too long.
fn in_batch(fault: Fault) -> Fault {
    let message = fault.message.replace(
        "One or more parameters are invalid.",
        "One or more parameters cannot be validated.",
    );
    Fault { message, ..fault }
}

/// Fails if an entry of a batch lacks what a FIFO queue needs, which refuses the whole batch.
fn check_fifo(queue: &Queue, given: &Params) -> Result<(), Fault> {
    if !queue.is_fifo() {
        return Ok(());
    }
    deduplication(queue, given)?;
    match params::text(given, "MessageGroupId") {
        Some(_) => Ok(()),
        None => Err(Fault::value(
            "The request must contain the parameter MessageGroupId.",
        )),
    }
}

fn size_of(given: &Params) -> usize {
    let body = params::text(given, "MessageBody").unwrap_or_default();
    let attributes = params::map(given, "MessageAttributes");
    body.len() + attributes.map_or(0, message::size_of)
}

/// Returns what a message of a FIFO queue is told apart from others by.
fn deduplication(queue: &Queue, given: &Params) -> Result<String, Fault> {
    if let Some(id) = params::text(given, "MessageDeduplicationId") {
        message::check_id(&id, "MessageDeduplicationId")?;
        return Ok(id);
    }
    if queue.text("ContentBasedDeduplication") != "true" {
        return Err(Fault::value(
            "The queue should either have ContentBasedDeduplication enabled or \
             MessageDeduplicationId provided explicitly",
        ));
    }
    let body = params::text(given, "MessageBody").unwrap_or_default();
    Ok(hex(digest::digest(&digest::SHA256, body.as_bytes())))
}

/// Checks a message.
fn ready(call: &Call, queue: &Queue, given: &Params) -> Result<Ready, Fault> {
    let body = params::needed(given, "MessageBody")?;
    let none = Params::new();
    let attributes = params::map(given, "MessageAttributes").unwrap_or(&none);
    let system = params::map(given, "MessageSystemAttributes").unwrap_or(&none);
    let most = queue.number("MaximumMessageSize");
    if i64::try_from(size_of(given)).map_or(true, |size| size > most) {
        return Err(Fault::value(format!(
            "One or more parameters are invalid. Reason: Message must be shorter than {most} bytes."
        )));
    }
    message::check_body(&body)?;
    message::check_attributes(attributes)?;
    let trace = trace(system)?.or_else(|| call.trace.clone());
    let group = params::text(given, "MessageGroupId");
    if let Some(group) = &group {
        message::check_id(group, "MessageGroupId")?;
    }
    let mut delay = seconds(
        given,
        &bounds::DELAY,
        "DelaySeconds must be >= 0 and <= 900.",
    )?;
    let deduplication = match queue.is_fifo() {
        true => {
            if group.is_none() {
                return Err(Fault::missing("MessageGroupId"));
            }
            if let Some(wanted) = delay.filter(|delay| *delay > 0) {
                return Err(Fault::parameter(
                    wanted,
                    "DelaySeconds",
                    "The request include parameter that is not valid for this queue type.",
                ));
            }
            delay = None;
            Some(deduplication(queue, given)?)
        }
        false => {
            if let Some(id) = params::text(given, "MessageDeduplicationId") {
                message::check_id(&id, "MessageDeduplicationId")?;
                return Err(Fault::parameter(
                    id,
                    "MessageDeduplicationId",
                    "The request includes a parameter that is not valid for this queue type.",
                ));
            }
            None
        }
    };
    let (delay, left) = match attributes.get(DELAY) {
        // A delay longer than the retention is what this attribute is for.
        Some(value) => (beyond(value)?, None),
        None => match delay.unwrap_or_else(|| queue.number("DelaySeconds")) {
            0 => (0, None),
            delay => {
                let left = queue.number("MessageRetentionPeriod") - delay;
                (delay * 1000, Some((left * 1000).max(1)))
            }
        },
    };
    let sums = Built::default()
        .with("MD5OfMessageBody", message::md5(body.as_bytes()))
        .with("MD5OfMessageAttributes", message::md5_of(attributes))
        .with("MD5OfMessageSystemAttributes", message::md5_of(system));
    Ok(Ready {
        id: store::uuid(),
        body,
        delay,
        left,
        group: group.unwrap_or_default(),
        meta: Meta {
            attributes: attributes.clone(),
            sent_at: now(),
            sender: call.sender(),
            deduplication,
            trace,
            received: 0,
        },
        sums,
    })
}

fn trace(system: &Params) -> Result<Option<String>, Fault> {
    message::check_attributes(system)?;
    for name in system.keys() {
        if name != "AWSTraceHeader" {
            return Err(Fault::value(format!(
                "Message system attribute name '{name}' is invalid."
            )));
        }
    }
    let value = params::map(system, "AWSTraceHeader");
    Ok(value.and_then(|value| params::text(value, "StringValue")))
}

/// Reads the delay of a message in milliseconds, up to 2^53.
fn beyond(value: &Json) -> Result<i64, Fault> {
    let text = value
        .as_object()
        .and_then(|value| params::text(value, "StringValue"));
    let text = text.unwrap_or_default();
    match bounds::LONG_DELAY.text(&text) {
        Some(delay) => Ok(delay),
        None => Err(Fault::parameter(
            text,
            DELAY,
            "It must be an integer from 0 to 9007199254740991.",
        )),
    }
}

fn with_place(result: Built, id: String) -> Built {
    let sequence = message::sequence(&id);
    result
        .with("MessageId", id)
        .with("SequenceNumber", sequence)
}

/// Sends messages and returns their ids. None if the queue has changed. A message that is a
/// duplicate has the id of the first.
async fn sent(
    gateway: &Gateway,
    queue: &Queue,
    all: &[&Ready],
) -> Result<Option<Vec<Result<String, Fault>>>, Fault> {
    if all.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let keys = [queue.key.clone(), queue.beside.clone()];
    let fifo = if queue.is_fifo() { "1" } else { "0" };
    let mut args = vec![queue.text(VERSION).into(), fifo.into()];
    for message in all {
        let left = message.left.map(|left| left.to_string());
        let dedup = message.meta.deduplication.as_deref();
        let dedup = dedup.map(|id| match queue.text(SCOPE) {
            // Neither of the two has a blank.
            "messageGroup" => format!("{} {id}", message.group),
            _ => id.to_owned(),
        });
        args.extend([
            message.id.clone().into_bytes(),
            message.body.clone().into_bytes(),
            message.delay.to_string().into_bytes(),
            left.unwrap_or_default().into_bytes(),
            message.group.clone().into_bytes(),
            message.meta.header().into_bytes(),
            dedup.unwrap_or_default().into_bytes(),
        ]);
    }
    let reply = gateway
        .store
        .script(&gateway.scripts.send, &keys, &args)
        .await?;
    let places = match reply {
        Value::Nil => return Ok(None),
        Value::Array(places) => places,
        _ => return Err(Fault::reply()),
    };
    Ok(Some(places.iter().map(place).collect()))
}

fn place(reply: &Value) -> Result<String, Fault> {
    let text = store::text(reply).ok_or_else(Fault::reply)?;
    match text.strip_prefix('!') {
        Some(words) => Err(Failure::Refused(words.to_owned()).into()),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn delays_beyond_those_of_aws_are_read() {
        let delay = |text: &str| beyond(&json!({ "StringValue": text }));
        assert_eq!(delay("9007199254740991"), Ok(9_007_199_254_740_991));
        for bad in ["", "-1", "1.5", "9007199254740992"] {
            assert!(delay(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_place_is_read() {
        let reply = |text: &str| place(&Value::BulkString(text.into()));
        assert_eq!(reply("a"), Ok("a".to_owned()));
        let full = reply("!QUEUEFULL no room").unwrap_err();
        assert_eq!(full.kind, Kind::ServiceUnavailable);
    }
}
