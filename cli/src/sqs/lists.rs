//! GetQueueUrl, ListQueues and ListDeadLetterSourceQueues.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use redis::Value;

use super::fault::Fault;
use super::gateway::Gateway;
use super::params::{self, Built, Params};
use super::queue;
use super::receive::seconds;
use super::request::Call;
use super::store::{cmd, text};
use crate::bounds;

/// Maximum number of queues in one answer.
const MOST: i64 = 1000;

/// Returns the URL of a queue.
pub async fn url(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let name = params::needed(&call.params, "QueueName")?;
    let owner = params::text(&call.params, "QueueOwnerAWSAccountId");
    if owner.is_some_and(|owner| owner != gateway.names.account) {
        return Err(Fault::no_queue());
    }
    call.key.check(&name, &call.action)?;
    gateway.read(&name).await?;
    let url = gateway.names.url(&call.base, &name);
    Ok(Built::default().with("QueueUrl", url).done())
}

/// Lists the queues whose names have a beginning, in the order of their names.
pub async fn queues(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let prefix = params::text(&call.params, "QueueNamePrefix").unwrap_or_default();
    let mut names = names(gateway, &prefix).await?;
    names.retain(|name| call.key.sees(name));
    page(gateway, call, names, "QueueUrls")
}

/// Lists the queues whose dead letters go to a queue.
pub async fn sources(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let target = gateway.fresh(call).await?;
    let names = sources_of(gateway, &target.name).await?;
    page(gateway, call, names, "queueUrls")
}

/// Returns the queues whose dead letters go to a queue.
pub async fn sources_of(gateway: &Gateway, target: &str) -> Result<Vec<String>, Fault> {
    let mut names = names(gateway, "").await?;
    let cmds = names.iter().map(|name| {
        cmd(
            "HGET",
            (gateway.names.beside(name, "attributes"), "RedrivePolicy"),
        )
    });
    let mut policies = gateway.store.pipeline(cmds.collect()).await?.into_iter();
    names.retain(|_| {
        let policy = policies.next().and_then(Result::ok);
        let policy = policy.and_then(|policy| queue::redrive(&text(&policy)?));
        policy.is_some_and(|(arn, _)| gateway.names.of_arn(&arn) == Some(target))
    });
    Ok(names)
}

async fn names(gateway: &Gateway, prefix: &str) -> Result<Vec<String>, Fault> {
    let all = gateway.names.common("queues");
    // No letter of a name comes behind a tilde.
    let range = (all, format!("[{prefix}"), format!("({prefix}~"), "BYLEX");
    match gateway.store.call(cmd("ZRANGE", range)).await? {
        Value::Array(names) => Ok(names.iter().filter_map(text).collect()),
        _ => Err(Fault::reply()),
    }
}

/// Returns a page of the names. Its token is the last of them.
fn page(
    gateway: &Gateway,
    call: &Call,
    mut names: Vec<String>,
    member: &str,
) -> Result<Params, Fault> {
    let most = seconds(
        &call.params,
        &bounds::QUEUES,
        "MaxResults must be an integer between 1 and 1000.",
    )?;
    if let Some(token) = params::text(&call.params, "NextToken") {
        let after = STANDARD.decode(&token).ok();
        let after = after.and_then(|after| String::from_utf8(after).ok());
        let wrong = || Fault::parameter(&token, "NextToken", "Invalid token.");
        let after = after.ok_or_else(wrong)?;
        names.retain(|name| *name > after);
    }
    let count = usize::try_from(most.unwrap_or(MOST)).unwrap_or(usize::MAX);
    let is_more = names.len() > count;
    names.truncate(count);
    // AWS gives a token only if the client has asked for pages.
    let token = names.last().filter(|_| is_more && most.is_some());
    let token = token.map(|last| STANDARD.encode(last));
    let urls: Vec<String> = names
        .iter()
        .map(|name| gateway.names.url(&call.base, name))
        .collect();
    Ok(Built::default()
        .with(member, urls)
        .with("NextToken", token)
        .done())
}
