//! Deliveries: what DQ.FETCH gives, and what the API says of it.

use redis::Value;
use serde_json::{json, Value as Json};

use super::fault::Fault;
use super::message::{md5, md5_of, sequence, Meta, HEADER};
use super::names::Names;
use super::params::{Built, Params};
use super::store::{pairs, text};
use crate::bounds;

/// A message that was given to this gateway.
#[derive(Debug)]
pub struct Delivery {
    /// The id of the message.
    pub id: String,
    /// The receipt of the delivery.
    pub receipt: i64,
    /// The number of the delivery in this queue.
    pub attempt: i64,
    /// The body.
    pub body: String,
    /// The group.
    pub group: Option<String>,
    /// The headers in dq.
    pub headers: Vec<(String, String)>,
    /// The facts of the API about the message.
    pub meta: Meta,
}

/// Reads the reply of DQ.FETCH with WITHMETA.
pub fn read(reply: Value) -> Result<Vec<Delivery>, Fault> {
    match reply {
        Value::Array(items) => items.into_iter().map(read_one).collect(),
        Value::Nil => Ok(Vec::new()),
        _ => Err(Fault::reply()),
    }
}

fn read_one(item: Value) -> Result<Delivery, Fault> {
    let Value::Array(parts) = item else {
        return Err(Fault::reply());
    };
    let Ok([id, Value::Int(receipt), Value::Int(attempt), body, more]) =
        <[Value; 5]>::try_from(parts)
    else {
        return Err(Fault::reply());
    };
    let (mut group, mut headers, mut sent_at) = (None, Vec::new(), 0);
    for (field, value) in pairs(more) {
        match (text(&field).as_deref(), value) {
            (Some("group"), value) => group = text(&value),
            (Some("sent-at"), Value::Int(time)) => sent_at = time,
            (Some("headers"), value) => {
                let all = pairs(value).into_iter();
                headers.extend(all.filter_map(|(name, value)| Some((text(&name)?, text(&value)?))));
            }
            _ => {}
        }
    }
    let meta = header(&headers, HEADER).and_then(Meta::read);
    Ok(Delivery {
        id: text(&id).ok_or_else(Fault::reply)?,
        receipt,
        attempt,
        body: text(&body).ok_or_else(Fault::reply)?,
        group,
        // A message that has come another way is said to be sent by dq.
        meta: meta.unwrap_or_else(|| Meta {
            sent_at,
            sender: "dq".to_owned(),
            ..Meta::default()
        }),
        headers,
    })
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = headers.iter().filter(|(field, _)| field == name);
    found.next().map(|(_, value)| value.as_str())
}

impl Delivery {
    /// Returns a header of dq.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Returns how often the message was received before it came to this queue.
    pub fn received_before(&self) -> i64 {
        let died = self
            .header("dead-attempts")
            .and_then(|text| bounds::RECEIVED.text(text));
        (self.meta.received + died.unwrap_or(0)).min(bounds::RECEIVED.most)
    }

    /// Returns the queue in which it died, if it is a dead letter.
    pub fn died_in<'a>(&'a self, names: &Names) -> Option<&'a str> {
        names.of_key(self.header("dead-from")?)
    }

    /// Returns the message as the API shows it, with the attributes that were asked for.
    pub fn shown(&self, names: &Names, wanted: &Wanted, handle: String, first_at: i64) -> Params {
        let mut all = Params::new();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value.filter(|_| wanted.system(name)) {
                all.insert(name.to_owned(), Json::from(value));
            }
        };
        let count = self.received_before() + self.attempt;
        add("SenderId", Some(self.meta.sender.clone()));
        add("SentTimestamp", Some(self.meta.sent_at.to_string()));
        add("ApproximateReceiveCount", Some(count.to_string()));
        add(
            "ApproximateFirstReceiveTimestamp",
            Some(first_at.to_string()),
        );
        add("MessageDeduplicationId", self.meta.deduplication.clone());
        add("MessageGroupId", self.group.clone());
        add("SequenceNumber", sequence(&self.id));
        add("AWSTraceHeader", self.meta.trace.clone());
        let source = self.died_in(names).map(|queue| names.arn(queue));
        add("DeadLetterQueueSourceArn", source);
        let attributes = self.meta.attributes.iter();
        let attributes: Params = attributes
            .filter(|(name, _)| wanted.attribute(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Built::default()
            .with("MessageId", self.id.as_str())
            .with("ReceiptHandle", handle)
            .with("MD5OfBody", md5(self.body.as_bytes()))
            .with("Body", self.body.as_str())
            .with("Attributes", all)
            .with("MD5OfMessageAttributes", md5_of(&attributes))
            .with("MessageAttributes", json!(attributes))
            .done()
    }
}

/// The attributes that a client wants to see.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Attributes of the system.
    pub system: Vec<String>,
    /// Attributes of the sender: names, beginnings, or all.
    pub attributes: Vec<String>,
}

impl Wanted {
    /// Returns whether it wants this attribute of the system.
    pub fn system(&self, name: &str) -> bool {
        self.system
            .iter()
            .any(|wanted| wanted == name || wanted == "All")
    }

    fn attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|wanted| {
            let start = wanted.strip_suffix(".*");
            wanted == name
                || wanted == "All"
                || wanted == "*"
                || start.is_some_and(|start| name.starts_with(start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_chosen() {
        for (wanted, name, fits) in [
            ("All", "x", true),
            ("*", "x", true),
            (".*", "x", true),
            ("a.*", "a.b", true),
            ("a.*", "b", false),
            ("a", "ab", false),
        ] {
            let wanted = Wanted {
                attributes: vec![wanted.to_owned()],
                ..Wanted::default()
            };
            assert_eq!(wanted.attribute(name), fits, "{wanted:?}");
        }
    }
}
