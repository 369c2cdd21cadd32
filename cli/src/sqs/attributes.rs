//! The attributes of queues: which there are, what they may be, and what they are if
//! nobody says.

use serde_json::Value as Json;

use super::fault::{Fault, Kind};
use crate::bounds::{self, Bound};

/// Attributes with a number, with the value of new queues.
const NUMBERS: [(Bound, i64); 5] = [
    (bounds::VISIBILITY, 30),
    (bounds::SIZE, 1_048_576),
    (bounds::RETENTION, 345_600),
    (bounds::DELAY, 0),
    (bounds::WAIT_OF_QUEUE, 0),
];

/// Attributes that only the gateway sets.
pub const OWN: [&str; 6] = [
    "QueueArn",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
];

/// Attributes that clients may set, beside those with a number.
const OTHERS: [&str; 10] = [
    "Policy",
    "RedrivePolicy",
    "RedriveAllowPolicy",
    "KmsMasterKeyId",
    "KmsDataKeyReusePeriodSeconds",
    "SqsManagedSseEnabled",
    "FifoQueue",
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
];

/// Returns an attribute with a number as it is kept. What was written there by others and is
/// none is the value of new queues.
pub fn number(name: &str, kept: &str) -> i64 {
    let found = NUMBERS.iter().find(|(bound, _)| bound.name == name);
    found.map_or(0, |(bound, value)| bound.text(kept).unwrap_or(*value))
}

/// Returns whether there is such an attribute.
pub fn is_known(name: &str) -> bool {
    OWN.contains(&name)
        || OTHERS.contains(&name)
        || NUMBERS.iter().any(|(bound, _)| bound.name == name)
}

fn unknown(name: &str) -> Fault {
    let message = format!("Unknown Attribute {name}.");
    Fault::new(Kind::InvalidAttributeName, message)
}

fn bad(name: &str) -> Fault {
    let message = format!("Invalid value for the parameter {name}.");
    Fault::new(Kind::InvalidAttributeValue, message)
}

/// Returns the attributes of a new queue of which nobody says more.
pub fn defaults(fifo: bool) -> Vec<(String, String)> {
    let numbers = NUMBERS.iter();
    let mut all: Vec<(String, String)> = numbers
        .map(|(bound, value)| (bound.name.to_owned(), value.to_string()))
        .collect();
    let mut add = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
    add("SqsManagedSseEnabled", "true");
    if fifo {
        add("FifoQueue", "true");
        add("ContentBasedDeduplication", "false");
        add("DeduplicationScope", "queue");
        add("FifoThroughputLimit", "perQueue");
    }
    all
}

/// Checks attributes that a client gives. Returns them as they are kept. An empty value
/// removes an attribute.
pub fn checked(given: Vec<(String, String)>, fifo: bool) -> Result<Vec<(String, String)>, Fault> {
    let has = |name: &str, value: fn(&str) -> bool| {
        let mut found = given.iter();
        found.any(|(field, text)| field == name && value(text))
    };
    if has("KmsMasterKeyId", |key| !key.is_empty())
        && has("SqsManagedSseEnabled", |word| {
            word.eq_ignore_ascii_case("true")
        })
    {
        return Err(Fault::new(
            Kind::InvalidAttributeName,
            "You can use one type of server-side encryption (SSE) at one time. You can either \
             enable KMS SSE or SQS SSE.",
        ));
    }
    given
        .into_iter()
        .map(|(name, value)| {
            let value = checked_one(&name, &value, fifo)?;
            Ok((name, value))
        })
        .collect()
}

fn checked_one(name: &str, value: &str, fifo: bool) -> Result<String, Fault> {
    if let Some((bound, _)) = NUMBERS.iter().find(|(bound, _)| bound.name == name) {
        let number = bound.text(value.trim()).ok_or_else(|| bad(name))?;
        return Ok(number.to_string());
    }
    let one_of = |words: &[&str]| match words.contains(&value) {
        true => Ok(value.to_owned()),
        false => Err(bad(name)),
    };
    match name {
        "FifoQueue" | "ContentBasedDeduplication" if !fifo => Err(unknown(name)),
        "DeduplicationScope" | "FifoThroughputLimit" if !fifo => Err(Fault::new(
            Kind::InvalidAttributeName,
            format!("You can specify the {name} only when FifoQueue is set to true."),
        )),
        "FifoQueue" => match value.to_ascii_lowercase().as_str() {
            "true" => Ok("true".to_owned()),
            _ => Err(Fault::new(
                Kind::InvalidAttributeValue,
                "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not \
                 supported.",
            )),
        },
        "ContentBasedDeduplication" | "SqsManagedSseEnabled" => {
            match value.to_ascii_lowercase().as_str() {
                word @ ("true" | "false") => Ok(word.to_owned()),
                _ => Err(bad(name)),
            }
        }
        "DeduplicationScope" => one_of(&["queue", "messageGroup"]),
        "FifoThroughputLimit" => one_of(&["perQueue", "perMessageGroupId"]),
        "KmsDataKeyReusePeriodSeconds" => match bounds::KEY_REUSE.text(value) {
            // This is what AWS does where nobody says more, and it shows it to nobody.
            Some(300) => Ok(String::new()),
            Some(_) => Ok(value.to_owned()),
            None => Err(bad(name)),
        },
        "KmsMasterKeyId" => Ok(value.to_owned()),
        "Policy" | "RedriveAllowPolicy" if value.is_empty() => Ok(String::new()),
        "Policy" | "RedriveAllowPolicy" => match serde_json::from_str(value) {
            Ok(Json::Object(_)) => Ok(value.to_owned()),
            _ => Err(bad(name)),
        },
        "RedrivePolicy" => redrive(value),
        _ => Err(unknown(name)),
    }
}

/// Returns a redrive policy as it is kept, where the count is a number.
fn redrive(value: &str) -> Result<String, Fault> {
    if value.is_empty() {
        return Ok(String::new());
    }
    let wrong = |reason: &str| Fault::parameter(value, "RedrivePolicy", reason);
    let Ok(Json::Object(mut policy)) = serde_json::from_str(value) else {
        return Err(wrong("Redrive policy is not a valid JSON map."));
    };
    let lacks = |name| {
        let message = "Redrive policy does not contain mandatory attribute: ";
        wrong(&format!("{message}{name}."))
    };
    if !policy
        .get("deadLetterTargetArn")
        .is_some_and(Json::is_string)
    {
        return Err(lacks("deadLetterTargetArn"));
    }
    let (count, is_text) = match policy.get("maxReceiveCount") {
        None | Some(Json::Null) => return Err(lacks("maxReceiveCount")),
        Some(Json::String(text)) => (text.clone(), true),
        Some(other) => (other.to_string(), false),
    };
    match bounds::RECEIVES.text(&count) {
        Some(_) if !is_text => Ok(value.to_owned()),
        Some(number) => {
            policy.insert("maxReceiveCount".to_owned(), Json::from(number));
            Ok(Json::Object(policy).to_string())
        }
        None => Err(wrong(&format!(
            "Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both \
             inclusive."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_checked() {
        let one = |name: &str, value: &str, fifo| {
            checked_one(name, value, fifo).map_err(|fault| fault.kind)
        };
        assert_eq!(one("VisibilityTimeout", "07", false), Ok("7".to_owned()));
        for (name, value, fifo, kind) in [
            (
                "VisibilityTimeout",
                "43201",
                false,
                Kind::InvalidAttributeValue,
            ),
            ("QueueArn", "x", true, Kind::InvalidAttributeName),
            ("FifoQueue", "false", false, Kind::InvalidAttributeName),
            ("FifoQueue", "false", true, Kind::InvalidAttributeValue),
            (
                "DeduplicationScope",
                "queue",
                false,
                Kind::InvalidAttributeName,
            ),
            ("RedrivePolicy", "{}", false, Kind::InvalidParameterValue),
        ] {
            assert_eq!(one(name, value, fifo), Err(kind), "{name}");
        }
        let policy = r#"{"deadLetterTargetArn":"a","maxReceiveCount":"3"}"#;
        assert_eq!(
            one("RedrivePolicy", policy, false).unwrap(),
            r#"{"deadLetterTargetArn":"a","maxReceiveCount":3}"#
        );
    }
}
