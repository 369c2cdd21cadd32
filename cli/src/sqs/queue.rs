//! A queue as its attributes say it.

use std::collections::BTreeMap;

use redis::Cmd;
use serde_json::Value as Json;

use super::attributes;
use super::fault::Fault;
use super::names::Names;
use super::store::cmd;
use crate::bounds;

/// The field of the hash that changes whenever an attribute does.
pub const VERSION: &str = ".version";

/// The field with the scope of deduplication, which stays as it was when the queue was made.
pub const SCOPE: &str = ".scope";

/// Tags are fields that begin with this.
pub const TAG: &str = "tag:";

/// A queue, as it was when its attributes were read.
#[derive(Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// The key of its attributes.
    pub beside: String,
    /// All fields of that key.
    pub fields: BTreeMap<String, String>,
}

impl Queue {
    /// Returns an attribute, or an empty text.
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Returns an attribute that is a number.
    pub fn number(&self, name: &str) -> i64 {
        attributes::number(name, self.text(name))
    }

    /// Returns whether messages are given in order.
    pub fn is_fifo(&self) -> bool {
        self.text("FifoQueue") == "true"
    }

    /// Returns the command that reads the version of its attributes.
    pub fn version(&self) -> Cmd {
        cmd("HGET", (&self.beside, VERSION))
    }

    /// Returns the tags.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter();
        fields.filter_map(|(field, value)| Some((field.strip_prefix(TAG)?, value.as_str())))
    }
}

/// Returns the target and the count of a redrive policy.
pub fn redrive(policy: &str) -> Option<(String, i64)> {
    let policy: Json = serde_json::from_str(policy).ok()?;
    let target = policy.get("deadLetterTargetArn")?.as_str()?;
    let count = policy.get("maxReceiveCount")?;
    let (own, text) = (bounds::RECEIVES.json(count), count.as_str());
    let count = own.or_else(|| bounds::RECEIVES.text(text?))?;
    Some((target.to_owned(), count))
}

/// Returns the options of DQ.CREATE and DQ.ALTER that follow from attributes.
pub fn options(
    names: &Names,
    queue: &str,
    fields: &BTreeMap<String, String>,
) -> Result<Vec<String>, Fault> {
    let number = |name: &str| -> i64 {
        attributes::number(name, fields.get(name).map_or("", String::as_str))
    };
    let fifo = fields.get("FifoQueue").is_some_and(|value| value == "true");
    let retention = number("MessageRetentionPeriod") * 1000;
    let lease = (number("VisibilityTimeout") * 1000).max(1);
    let mut options: Vec<String> = Vec::new();
    let mut add = |words: &str| options.extend(words.split(' ').map(str::to_owned));
    add(&format!("LEASE {lease} BACKOFF FIXED 0 TTL {retention}"));
    // Messages of a FIFO queue wait for those before them. Those of others are only shared out
    // fairly.
    add(match fifo {
        true => "GROUPCONCURRENCY 1 ONRETRY ALONE",
        false => "GROUPCONCURRENCY 1000000 ONRETRY SKIP",
    });
    let policy = fields.get("RedrivePolicy").map_or("", String::as_str);
    // Without a dead-letter queue a message only dies of age, and is then gone. A queue that is
    // its own would give it back for ever.
    let itself = names.arn(queue);
    match redrive(policy).filter(|(target, _)| *target != itself) {
        None => {
            add("RETRIES -1 DEADRETAIN 1 DEADTO");
            options.push(String::new());
        }
        // A dead message that cannot go to the other queue stays for a while.
        Some((target, count)) => {
            let target = names.of_arn(&target).ok_or_else(|| {
                Fault::parameter(
                    policy,
                    "RedrivePolicy",
                    "Dead letter target does not exist.",
                )
            })?;
            add(&format!(
                "RETRIES {} DEADRETAIN {retention} DEADTO {} retries timeouts",
                count - 1,
                names.key(target)
            ));
        }
    }
    Ok(options)
}
