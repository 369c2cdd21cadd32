//! TagQueue, UntagQueue and ListQueueTags.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::fault::Fault;
use super::gateway::Gateway;
use super::params::{self, Built, Params};
use super::queue::TAG;
use super::request::Call;
use super::settings::change;

/// Maximum number of tags of a queue.
const MOST: usize = 50;

/// Adds tags to the fields of a queue.
pub fn add(
    fields: &mut BTreeMap<String, String>,
    tags: Vec<(String, String)>,
    queue: &str,
) -> Result<(), Fault> {
    for (key, _) in &tags {
        if !(1..=128).contains(&key.chars().count()) {
            return Err(Fault::value(KEYS));
        }
    }
    let tags = tags.into_iter();
    fields.extend(tags.map(|(key, value)| (format!("{TAG}{key}"), value)));
    match fields.keys().filter(|field| field.starts_with(TAG)).count() > MOST {
        true => Err(Fault::value(format!(
            "Too many tags added for queue {queue}."
        ))),
        false => Ok(()),
    }
}

const KEYS: &str = "Tag keys must be between 1 and 128 characters in length.";

/// Adds tags to a queue.
pub async fn tag(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let tags = params::text_map(&call.params, "Tags");
    if tags.is_empty() {
        return Err(Fault::missing("Tags"));
    }
    loop {
        let queue = gateway.fresh(call).await?;
        let mut fields = queue.fields.clone();
        add(&mut fields, tags.clone(), &queue.name)?;
        if change(gateway, &queue, fields, Vec::new(), Vec::new()).await? {
            return Ok(Params::new());
        }
    }
}

/// Removes tags from a queue.
pub async fn untag(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let gone = params::texts(&call.params, "TagKeys");
    if gone.is_empty() {
        return Err(Fault::value(KEYS));
    }
    let gone: Vec<_> = gone.iter().map(|key| format!("{TAG}{key}")).collect();
    loop {
        let queue = gateway.fresh(call).await?;
        let fields = queue.fields.clone();
        if change(gateway, &queue, fields, gone.clone(), Vec::new()).await? {
            return Ok(Params::new());
        }
    }
}

/// Returns the tags of a queue.
pub async fn list(gateway: &Gateway, call: &Call) -> Result<Params, Fault> {
    let queue = gateway.fresh(call).await?;
    let tags: Params = queue
        .tags()
        .map(|(key, value)| (key.to_owned(), Json::from(value)))
        .collect();
    Ok(Built::default().with("Tags", tags).done())
}
