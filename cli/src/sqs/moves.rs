//! StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks. A task is in the
//! server. Whichever gateway has its lease moves the messages (`mover`).

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use redis::Value;
use serde_json::{json, Value as Json};

use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::lists;
use super::mover;
use super::params::{self, Built, Params};
use super::queue::Queue;
use super::receive::{now, seconds};
use super::request::Call;
use super::store::{self, cmd, text};
use crate::bounds;

/// Begins a task, unless one is under way. The keys are the task of the source and the tasks
/// before it. The arguments are the fields and values of the task.
pub const BEGIN: &str = r"
local state = redis.call('HGET', KEYS[1], 'status')
if state == 'RUNNING' or state == 'CANCELLING' then return 0 end
if state then
  redis.call('LPUSH', KEYS[2], cjson.encode(redis.call('HGETALL', KEYS[1])))
  redis.call('LTRIM', KEYS[2], 0, 9)
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
";

/// The fields of a task: `id`, `status`, `source` and `destination` (ARNs), `rate` (messages
/// a second), `total`, `moved`, `started` (Unix ms) and `reason`.
pub type Task = BTreeMap<String, String>;

/// Reads the task of a source.
pub async fn task(gateway: &Gateway, source: &str) -> Result<Task, Fault> {
    let all = cmd("HGETALL", gateway.names.beside(source, "move"));
    Ok(store::texts(gateway.store.call(all).await?))
}

/// Begins to move the messages of a dead-letter queue.
pub async fn start(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let source_arn = params::needed(&call.params, "SourceArn")?;
    let source = checked(gateway, call, &source_arn, "SourceArn").await?;
    if lists::sources_of(gateway, &source.name).await?.is_empty() {
        return Err(Fault::value(
            "Source queue must be configured as a Dead Letter Queue.",
        ));
    }
    let destination = params::text(&call.params, "DestinationArn").unwrap_or_default();
    if !destination.is_empty() {
        checked(gateway, call, &destination, "DestinationArn").await?;
    }
    let rate = seconds(
        &call.params,
        &bounds::MOVES,
        "Must be between 1 and 500, if provided.",
    )?;
    let total = gateway
        .store
        .call(cmd("DQ.LEN", (&source.key, "ready")))
        .await?;
    let id = store::uuid();
    let fields = [
        ("id", id.clone()),
        ("status", "RUNNING".to_owned()),
        ("source", source_arn.clone()),
        ("destination", destination),
        ("rate", rate.map_or(String::new(), |rate| rate.to_string())),
        ("total", text(&total).unwrap_or_default()),
        ("moved", "0".to_owned()),
        ("started", now().to_string()),
        ("reason", String::new()),
    ];
    let args: Vec<Vec<u8>> = fields
        .into_iter()
        .flat_map(|(field, value)| [field.into(), value.into_bytes()])
        .collect();
    let keys = ["move", "moves"].map(|what| gateway.names.beside(&source.name, what));
    let begun = gateway
        .store
        .script(&gateway.scripts.begin_move, &keys, &args)
        .await?;
    if begun == Value::Int(0) {
        return Err(Fault::value(
            "There is already a task running. Only one active task is allowed for a source queue \
             arn at a given time.",
        ));
    }
    mover::announce(gateway, &source.name).await?;
    let handle = json!({ "taskId": id, "sourceArn": source_arn }).to_string();
    let handle = STANDARD.encode(handle);
    Ok(Built::default().with("TaskHandle", handle).done())
}

async fn checked(
    gateway: &Gateway,
    call: &Call,
    arn: &str,
    parameter: &str,
) -> Result<Arc<Queue>, Fault> {
    let queue = gateway.of_arn(arn, parameter).await?;
    call.key.check(&queue.name, &call.action)?;
    Ok(queue)
}

/// Ends a task before all messages are moved.
pub async fn cancel(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let handle = params::needed(&call.params, "TaskHandle")?;
    let invalid = || Fault::value("Value for parameter TaskHandle is invalid.");
    let decoded = STANDARD.decode(&handle).map_err(|_| invalid())?;
    let decoded: Json = serde_json::from_slice(&decoded).map_err(|_| invalid())?;
    let part = |name: &str| decoded.get(name).and_then(Json::as_str);
    let (Some(id), Some(arn)) = (part("taskId"), part("sourceArn")) else {
        return Err(invalid());
    };
    let source = checked(gateway, call, arn, "SourceArn").await?;
    let task = task(gateway, &source.name).await?;
    if task.get("id").map(String::as_str) != Some(id) {
        return Err(Fault::new(Kind::ResourceNotFound, "Task does not exist."));
    }
    if task.get("status").is_some_and(|status| status != "RUNNING") {
        return Err(Fault::value("Only active tasks can be cancelled."));
    }
    let place = gateway.names.beside(&source.name, "move");
    let set = cmd("HSET", (place, "status", "CANCELLING"));
    gateway.store.change_one(set).await?;
    let moved = number(&task, "moved");
    Ok(Built::default()
        .with("ApproximateNumberOfMessagesMoved", moved)
        .done())
}

/// Lists the last tasks of a source.
pub async fn list(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let arn = params::needed(&call.params, "SourceArn")?;
    let source = checked(gateway, call, &arn, "SourceArn").await?;
    let most = seconds(
        &call.params,
        &bounds::TASKS,
        "Must be between 1 and 10, if provided.",
    )?;
    let mut tasks = vec![task(gateway, &source.name).await?];
    let before = cmd(
        "LRANGE",
        (gateway.names.beside(&source.name, "moves"), 0, -1),
    );
    if let Value::Array(items) = gateway.store.call(before).await? {
        for item in items.iter().filter_map(text) {
            let words: Vec<String> = serde_json::from_str(&item).unwrap_or_default();
            let mut words = words.into_iter();
            let mut task = Task::new();
            while let (Some(field), Some(value)) = (words.next(), words.next()) {
                task.insert(field, value);
            }
            tasks.push(task);
        }
    }
    tasks.retain(|task| !task.is_empty());
    let tasks = tasks
        .iter()
        .take(usize::try_from(most.unwrap_or(1)).unwrap_or(1));
    let results: Vec<Json> = tasks.map(shown).collect();
    Ok(Built::default().with("Results", results).done())
}

/// Returns a field of a task that is a number.
pub fn number(task: &Task, field: &str) -> Option<i64> {
    task.get(field)?.parse().ok()
}

fn shown(task: &Task) -> Json {
    let field = |name: &str| task.get(name).filter(|value| !value.is_empty()).cloned();
    let status = field("status").unwrap_or_default();
    let handle = (status == "RUNNING").then(|| {
        let handle = json!({ "taskId": field("id"), "sourceArn": field("source") });
        STANDARD.encode(handle.to_string())
    });
    let built = Built::default()
        .with("TaskHandle", handle)
        .with("Status", status)
        .with("SourceArn", field("source"))
        .with("DestinationArn", field("destination"))
        .with("MaxNumberOfMessagesPerSecond", number(task, "rate"))
        .with("ApproximateNumberOfMessagesMoved", number(task, "moved"))
        .with("ApproximateNumberOfMessagesToMove", number(task, "total"))
        .with("FailureReason", field("reason"))
        .with("StartedTimestamp", number(task, "started"));
    Json::Object(built.done())
}
