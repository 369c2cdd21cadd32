//! AddPermission and RemovePermission. The policy is kept and shown, and nobody enforces it.

use serde_json::{json, Value as Json};

use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::params::{self, Params};
use super::queue::Queue;
use super::request::Call;
use super::settings;

/// Actions that a permission may name.
const ACTIONS: [&str; 9] = [
    "*",
    "SendMessage",
    "ReceiveMessage",
    "DeleteMessage",
    "ChangeMessageVisibility",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListDeadLetterSourceQueues",
    "PurgeQueue",
];

/// Actions that only the owner of a queue may do.
const OWNER: [&str; 8] = [
    "AddPermission",
    "CreateQueue",
    "DeleteQueue",
    "ListQueueTags",
    "RemovePermission",
    "SetQueueAttributes",
    "TagQueue",
    "UntagQueue",
];

/// Maximum number of actions of one permission.
const MOST: usize = 7;

/// Adds a statement to the policy of a queue.
pub async fn add(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let label = params::needed(&call.params, "Label")?;
    let actions = params::texts(&call.params, "Actions");
    let accounts = params::texts(&call.params, "AWSAccountIds");
    if actions.is_empty() {
        return Err(Fault::missing("Actions"));
    }
    if accounts.is_empty() {
        return Err(Fault::parameter("[]", "PrincipalId", "Unable to verify."));
    }
    if actions.len() > MOST {
        let count = actions.len();
        return Err(Fault::new(
            Kind::OverLimit,
            format!("{count} Actions were found, maximum allowed is {MOST}."),
        ));
    }
    if let Some(action) = actions
        .iter()
        .find(|action| !ACTIONS.contains(&action.as_str()))
    {
        return Err(Fault::parameter(
            format!("SQS:{action}"),
            "ActionName",
            match OWNER.contains(&action.as_str()) {
                true => "Only the queue owner is allowed to invoke this action.",
                false => "Please refer to the appropriate WSDL for a list of valid actions. ",
            },
        ));
    }
    edit(gateway, call, |queue, statements| {
        if statements.iter().any(|one| sid(one) == Some(&label)) {
            return Err(Fault::parameter(&label, "Label", "Already exists."));
        }
        let principals = accounts.iter();
        let principals = principals.map(|account| format!("arn:aws:iam::{account}:root"));
        let actions = actions.iter().map(|action| format!("SQS:{action}"));
        statements.push(json!({
            "Sid": label,
            "Effect": "Allow",
            "Principal": { "AWS": one_or_all(principals.collect()) },
            "Action": one_or_all(actions.collect()),
            "Resource": gateway.names.arn(&queue.name),
        }));
        Ok(())
    })
    .await
}

/// Removes a statement from the policy of a queue.
pub async fn remove(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let label = params::needed(&call.params, "Label")?;
    edit(gateway, call, |_, statements| {
        let before = statements.len();
        statements.retain(|one| sid(one) != Some(&label));
        match statements.len() == before {
            true => Err(Fault::parameter(&label, "Label", "can't find label.")),
            false => Ok(()),
        }
    })
    .await
}

fn sid(statement: &Json) -> Option<&str> {
    statement.get("Sid").and_then(Json::as_str)
}

fn one_or_all(texts: Vec<String>) -> Json {
    match texts.as_slice() {
        [one] => json!(one),
        _ => json!(texts),
    }
}

/// Changes the statements of the policy of a queue.
async fn edit(
    gateway: &Gateway,
    call: &Call,
    change: impl Fn(&Queue, &mut Vec<Json>) -> Result<(), Fault>,
) -> Result<Params, Fault> {
    loop {
        let queue = gateway.fresh(call).await?;
        let mut policy = match serde_json::from_str(queue.text("Policy")) {
            Ok(Json::Object(policy)) => policy,
            _ => {
                let id = format!("{}/SQSDefaultPolicy", gateway.names.arn(&queue.name));
                let mut policy = Params::new();
                policy.insert("Version".to_owned(), json!("2008-10-17"));
                policy.insert("Id".to_owned(), json!(id));
                policy
            }
        };
        let mut statements = match policy.remove("Statement") {
            Some(Json::Array(statements)) => statements,
            Some(one @ Json::Object(_)) => vec![one],
            _ => Vec::new(),
        };
        change(&queue, &mut statements)?;
        let (mut fields, mut gone) = (queue.fields.clone(), Vec::new());
        if statements.is_empty() {
            fields.remove("Policy");
            gone.push("Policy".to_owned());
        } else {
            policy.insert("Statement".to_owned(), Json::Array(statements));
            fields.insert("Policy".to_owned(), Json::Object(policy).to_string());
        }
        if settings::change(gateway, &queue, fields, gone, Vec::new()).await? {
            return Ok(Params::new());
        }
    }
}
