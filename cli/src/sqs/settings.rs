//! CreateQueue, DeleteQueue, PurgeQueue and the attributes of a queue.

use std::collections::BTreeMap;

use redis::Value;
use serde_json::Value as Json;

use super::attributes;
use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::names;
use super::params::{self, Built, Params};
use super::queue::{self, Queue, SCOPE, VERSION};
use super::receive::now;
use super::request::Call;
use super::store::{self, cmd};
use super::tags;

/// Makes a queue, unless it is there. The keys are its attributes and the queue. The arguments
/// are how many of them are fields and values, these, and the options.
pub const CREATE: &str = r"
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local fields = tonumber(ARGV[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2, 1 + fields))
redis.call('DQ.CREATE', KEYS[2], 'NX')
redis.call('DQ.ALTER', KEYS[2], unpack(ARGV, 2 + fields))
return 1
";

/// Changes fields of a queue, unless they were changed meanwhile. The keys are its attributes
/// and the queue. The arguments are the version, how many are fields and values, how many are
/// fields to remove, these, and the options.
pub const CHANGE: &str = r"
if redis.call('HGET', KEYS[1], '.version') ~= ARGV[1] then return 0 end
local from, set, gone = 4, tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('HSET', KEYS[1], unpack(ARGV, from, from + set - 1))
from = from + set
if gone > 0 then redis.call('HDEL', KEYS[1], unpack(ARGV, from, from + gone - 1)) end
from = from + gone
if from <= #ARGV then
  redis.call('DQ.CREATE', KEYS[2], 'NX')
  redis.call('DQ.ALTER', KEYS[2], unpack(ARGV, from))
end
return 1
";

/// Removes all messages, if the last time was a minute ago. The keys are the attributes and the
/// queue. The argument is the version from now on.
pub const PURGE: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
local now = tonumber(redis.call('TIME')[1])
local before = tonumber(redis.call('HGET', KEYS[1], '.purged') or '0')
if now - before < 60 then return 0 end
redis.call('HSET', KEYS[1], '.version', ARGV[1], '.purged', now)
redis.call('DQ.PURGE', KEYS[2])
return 1
";

/// Makes a queue. One that is there is fine if the attributes that are given are its own.
pub async fn create(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let name = params::text(&call.params, "QueueName");
    let name = name.ok_or_else(|| Fault::missing("QueueName"))?;
    call.key.check(&name, &call.action)?;
    let given = trimmed(params::text_map(&call.params, "Attributes"));
    let wants_fifo = |(name, value): &(String, String)| {
        name == "FifoQueue" && value.eq_ignore_ascii_case("true")
    };
    let fifo = given.iter().any(wants_fifo);
    names::check(&name, fifo)?;
    let given = attributes::checked(given, fifo)?;
    let url = gateway.names.url(&call.base, &name);
    let answer = Built::default().with("QueueUrl", url).done();
    match gateway.read(&name).await {
        Ok(queue) => {
            same(&queue, &given)?;
            return Ok(answer);
        }
        Err(fault) if fault.kind == Kind::QueueDoesNotExist => {}
        Err(fault) => return Err(fault),
    }
    let mut fields: BTreeMap<String, String> = attributes::defaults(fifo).into_iter().collect();
    set_all(&mut fields, given.clone());
    // In the JSON protocol the name of this one parameter begins with a small letter.
    for parameter in ["tags", "Tags"] {
        let given = params::text_map(&call.params, parameter);
        tags::add(&mut fields, given, &name)?;
    }
    if let Some(scope) = fields.get("DeduplicationScope").cloned() {
        fields.insert(SCOPE.to_owned(), scope);
    }
    fields.insert(VERSION.to_owned(), store::uuid());
    let seconds = (now() / 1000).to_string();
    fields.insert("CreatedTimestamp".to_owned(), seconds.clone());
    fields.insert("LastModifiedTimestamp".to_owned(), seconds);
    check_target(gateway, &name, &fields, &given).await?;
    let options = queue::options(&gateway.names, &name, &fields)?;
    let mut args: Vec<Vec<u8>> = vec![(fields.len() * 2).to_string().into()];
    for (field, value) in fields {
        args.extend([field.into_bytes(), value.into_bytes()]);
    }
    args.extend(options.into_iter().map(String::into_bytes));
    let keys = [
        gateway.names.beside(&name, "attributes"),
        gateway.names.key(&name),
    ];
    let made = gateway
        .store
        .script(&gateway.scripts.create, &keys, &args)
        .await?;
    if made == Value::Int(0) {
        same(&*gateway.read(&name).await?, &given)?;
    }
    gateway
        .store
        .call(cmd("ZADD", (gateway.names.common("queues"), 0, &name)))
        .await?;
    Ok(answer)
}

/// Names of attributes may have blanks around them.
fn trimmed(given: Vec<(String, String)>) -> Vec<(String, String)> {
    let given = given.into_iter();
    given
        .map(|(name, value)| (name.trim().to_owned(), value))
        .collect()
}

fn same(queue: &Queue, given: &[(String, String)]) -> Result<(), Fault> {
    for (name, value) in given {
        if queue.text(name) != value {
            return Err(Fault::new(
                Kind::QueueNameExists,
                format!(
                    "A queue already exists with the same name and a different value for \
                     attribute {name}"
                ),
            ));
        }
    }
    Ok(())
}

/// Sets attributes. An empty value removes one. A key of KMS ends the encryption by SQS.
fn set_all(fields: &mut BTreeMap<String, String>, given: Vec<(String, String)>) -> Vec<String> {
    let mut gone = Vec::new();
    for (name, value) in given {
        if value.is_empty() {
            fields.remove(&name);
            gone.push(name);
            continue;
        }
        if name == "KmsMasterKeyId" {
            fields.insert("SqsManagedSseEnabled".to_owned(), "false".to_owned());
        }
        fields.insert(name, value);
    }
    gone
}

const APART: &str = "The dead-letter queue is in another slot of the cluster. Start the gateway \
    with a hash tag: --prefix '{sqs}:'";

/// Fails if the queue for dead letters does not exist, is of the other kind, or out of reach.
async fn check_target(
    gateway: &Gateway,
    name: &str,
    fields: &BTreeMap<String, String>,
    given: &[(String, String)],
) -> Result<(), Fault> {
    let policy = given.iter().find(|(name, _)| name == "RedrivePolicy");
    let Some((policy, (arn, _))) =
        policy.and_then(|(_, policy)| Some((policy, queue::redrive(policy)?)))
    else {
        return Ok(());
    };
    let wrong = |reason: &str| Fault::parameter(policy, "RedrivePolicy", reason);
    let gone = || wrong("Dead letter target does not exist.");
    let target = gateway.names.of_arn(&arn).ok_or_else(gone)?;
    let target = match gateway.read(target).await {
        Err(fault) if fault.kind == Kind::QueueDoesNotExist => return Err(gone()),
        other => other?,
    };
    let fifo = fields.get("FifoQueue").is_some_and(|value| value == "true");
    match target.is_fifo() == fifo {
        true => {
            let keys = [name, &target.name].map(|name| gateway.names.key(name));
            match gateway.store.are_apart(&keys).await? {
                true => Err(Fault::new(Kind::UnsupportedOperation, APART)),
                false => Ok(()),
            }
        }
        false => Err(wrong(
            "Dead-letter queue must be same type of queue as the source.",
        )),
    }
}

/// Deletes a queue.
pub async fn delete(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.fresh(call).await?;
    let tasks = ["move", "moves"].map(|what| gateway.names.beside(&queue.name, what));
    let all = (&queue.key, &queue.beside, &tasks);
    gateway.store.change_one(cmd("UNLINK", all)).await?;
    gateway.forget(&queue.name);
    gateway
        .store
        .call(cmd("ZREM", (gateway.names.common("queues"), &queue.name)))
        .await?;
    Ok(Params::new())
}

/// Removes all messages of a queue.
pub async fn purge(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.fresh(call).await?;
    let keys = [queue.beside.clone(), queue.key.clone()];
    let args = [store::uuid().into()];
    let done = gateway
        .store
        .script(&gateway.scripts.purge, &keys, &args)
        .await?;
    gateway.forget(&queue.name);
    match done {
        Value::Int(1) => Ok(Params::new()),
        Value::Int(0) => Err(Fault::new(
            Kind::PurgeQueueInProgress,
            format!(
                "Only one PurgeQueue operation on {} is allowed every 60 seconds.",
                queue.name
            ),
        )),
        _ => Err(Fault::no_queue()),
    }
}

/// Returns attributes of a queue.
pub async fn get(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.fresh(call).await?;
    let names = params::texts(&call.params, "AttributeNames");
    if let Some(name) = names
        .iter()
        .find(|name| *name != "All" && !attributes::is_known(name))
    {
        let message = format!("Unknown Attribute {name}.");
        return Err(Fault::new(Kind::InvalidAttributeName, message));
    }
    let wanted = |name: &str| names.iter().any(|wanted| wanted == name || wanted == "All");
    let mut all = Params::new();
    let mut add = |name: &str, value: String| {
        if wanted(name) {
            all.insert(name.to_owned(), Json::from(value));
        }
    };
    add("QueueArn", gateway.names.arn(&queue.name));
    for (name, count) in counts(gateway, &queue).await? {
        add(name, count.to_string());
    }
    for (name, value) in &queue.fields {
        if attributes::is_known(name) {
            add(name, value.clone());
        }
    }
    Ok(Built::default().with("Attributes", all).done())
}

/// Counts the messages of a queue.
async fn counts(gateway: &Gateway, queue: &Queue) -> Result<[(&'static str, i64); 3], Fault> {
    let states = ["ready", "blocked", "retry", "running", "delayed"];
    let cmds = states.map(|state| cmd("DQ.LEN", (&queue.key, state)));
    let mut counts = [0; 5];
    let replies = gateway.store.pipeline(cmds.into()).await?;
    for (count, reply) in counts.iter_mut().zip(replies) {
        if let Value::Int(number) = reply? {
            *count = number;
        }
    }
    let [ready, blocked, retry, running, delayed] = counts;
    Ok([
        ("ApproximateNumberOfMessages", ready + blocked + retry),
        ("ApproximateNumberOfMessagesNotVisible", running),
        ("ApproximateNumberOfMessagesDelayed", delayed),
    ])
}

/// Sets attributes of a queue.
pub async fn set(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let given = trimmed(params::text_map(&call.params, "Attributes"));
    if given.is_empty() {
        return Err(Fault::missing("Attributes"));
    }
    loop {
        let queue = gateway.fresh(call).await?;
        let given = attributes::checked(given.clone(), queue.is_fifo())?;
        let mut fields = queue.fields.clone();
        check_target(gateway, &queue.name, &fields, &given).await?;
        let gone = set_all(&mut fields, given);
        let options = queue::options(&gateway.names, &queue.name, &fields)?;
        if change(gateway, &queue, fields, gone, options).await? {
            return Ok(Params::new());
        }
    }
}

/// Writes the fields of a queue. Returns whether they were still as they had been read.
pub async fn change(
    gateway: &Gateway,
    queue: &Queue,
    mut fields: BTreeMap<String, String>,
    gone: Vec<String>,
    options: Vec<String>,
) -> Result<bool, Fault> {
    fields.insert(VERSION.to_owned(), store::uuid());
    let seconds = (now() / 1000).to_string();
    fields.insert("LastModifiedTimestamp".to_owned(), seconds);
    let changed: Vec<_> = fields
        .into_iter()
        .filter(|(field, value)| queue.fields.get(field) != Some(value))
        .collect();
    let mut args: Vec<Vec<u8>> = vec![
        queue.text(VERSION).into(),
        (changed.len() * 2).to_string().into(),
        gone.len().to_string().into(),
    ];
    for (field, value) in changed {
        args.extend([field.into_bytes(), value.into_bytes()]);
    }
    args.extend(gone.into_iter().chain(options).map(String::into_bytes));
    let keys = [queue.beside.clone(), queue.key.clone()];
    let done = gateway
        .store
        .script(&gateway.scripts.change, &keys, &args)
        .await?;
    gateway.forget(&queue.name);
    Ok(done == Value::Int(1))
}
