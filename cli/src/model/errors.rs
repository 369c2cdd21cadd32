//! Dead messages, grouped by their errors.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::error_text::{pattern, summary};
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::time_text::Millis;

/// Maximum number of messages of one step. Their payloads come with them.
const STEP: usize = 25;

/// Payload bytes that one step should bring at most.
const STEP_BYTES: usize = 1 << 20;

/// Maximum time for which messages are looked at.
pub const PATIENCE: Duration = Duration::from_millis(1500);

/// The time for a page that must be there at once.
pub const AT_ONCE: Duration = Duration::from_millis(70);

/// Maximum number of groups. A greater number of errors would have nothing in common.
const GROUPS: usize = 500;

/// Messages that died of errors that are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorGroup {
    /// A pattern of these errors, as of KEYS. Empty if the messages have no error.
    pub pattern: Vec<u8>,
    /// The line of the last error that says what went wrong.
    pub words: Vec<u8>,
    /// The reason of the newest dead message.
    pub reason: String,
    /// The number of messages.
    pub count: u64,
    /// When the first of the messages died.
    pub first: Option<Millis>,
    /// When the last of the messages died.
    pub last: Option<Millis>,
    /// The queues of the messages, with their numbers.
    pub queues: Vec<(Vec<u8>, u64)>,
    /// The last of the queues, and the id of the last message in it.
    pub sample: (Vec<u8>, Vec<u8>),
}

/// The errors that were found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The groups, the largest first.
    pub groups: Vec<ErrorGroup>,
    /// The number of messages that were looked at.
    pub looked: u64,
    /// Whether there are more that were not looked at, because it took too long.
    pub more: bool,
}

/// Looks at the dead messages of queues, the newest first, for a limited time.
pub fn collect(
    server: &mut Server,
    queues: &[Vec<u8>],
    patience: Duration,
) -> Result<Found, Failure> {
    let begun = Instant::now();
    let mut groups: HashMap<(Vec<u8>, String), ErrorGroup> = HashMap::new();
    let mut found = Found::default();
    for (i, queue) in queues.iter().enumerate() {
        let mut cursor: Option<Vec<u8>> = None;
        let mut step = STEP / 4;
        loop {
            if begun.elapsed() > patience || groups.len() >= GROUPS {
                found.more = true;
                break;
            }
            let mut cmd = verb("DQ.LIST", queue);
            cmd.arg("dead").arg("COUNT").arg(step).arg("REV");
            if let Some(cursor) = &cursor {
                cmd.arg("CURSOR").arg(cursor.as_slice());
            }
            let (next, messages) = match server.call(&cmd) {
                // A queue that is gone by now, or that the user may not read.
                Err(Failure::Refused(_)) if i > 0 || queues.len() > 1 => break,
                reply => Record::page(reply?)?,
            };
            let mut bytes = 0;
            for message in &messages {
                bytes += message.bytes("payload").map_or(0, <[u8]>::len);
                found.looked += 1;
                add(&mut groups, queue, message);
            }
            let each = bytes / messages.len().max(1) + 1;
            step = (STEP_BYTES / each).clamp(1, STEP);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        if found.more {
            break;
        }
    }
    found.groups = groups.into_values().collect();
    // Equal counts need an order, or they would change places all the time.
    let order = |group: &ErrorGroup| (std::cmp::Reverse(group.count), group.pattern.clone());
    found.groups.sort_by_key(order);
    Ok(found)
}

fn add(groups: &mut HashMap<(Vec<u8>, String), ErrorGroup>, queue: &[u8], message: &Record) {
    let error = message.bytes("error").unwrap_or_default();
    let pattern = pattern(error);
    let reason = message.text("reason");
    // Without an error only the reason is known.
    let key = match pattern.is_empty() {
        true => (Vec::new(), reason.clone()),
        false => (pattern.clone(), String::new()),
    };
    let died = message.number("finished-at");
    let group = groups.entry(key).or_default();
    if group.count == 0 {
        group.pattern = pattern;
    }
    if group.last < died || group.count == 0 {
        group.words = summary(error).to_vec();
        group.reason = reason;
        let id = message.bytes("id").unwrap_or_default();
        group.sample = (queue.to_vec(), id.to_vec());
    }
    group.count += 1;
    group.last = group.last.max(died);
    group.first = group.first.into_iter().chain(died).min();
    match group.queues.last_mut().filter(|(name, _)| name == queue) {
        Some((_, count)) => *count += 1,
        None => group.queues.push((queue.to_vec(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn errors_that_are_alike_are_one_group() {
        let mut groups = HashMap::new();
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        for (queue, id, error, at) in [
            ("a", "1", "order 12345 failed", 20),
            ("a", "2", "order 99999 failed", 30),
            ("b", "3", "order 77777 failed", 10),
            ("b", "4", "HTTP 500", 40),
            ("b", "5", "", 50),
        ] {
            let message = record(&[
                ("id", text(id)),
                (
                    "error",
                    if error.is_empty() {
                        Value::Nil
                    } else {
                        text(error)
                    },
                ),
                ("reason", text("retries")),
                ("finished-at", Value::Int(at)),
            ]);
            add(&mut groups, queue.as_bytes(), &message);
        }
        assert_eq!(groups.len(), 3);
        let orders = &groups[&(b"order * failed".to_vec(), String::new())];
        assert_eq!(
            (orders.count, orders.first, orders.last),
            (3, Some(10), Some(30))
        );
        assert_eq!(orders.sample, (b"a".to_vec(), b"2".to_vec()));
        assert_eq!(orders.words, b"order 99999 failed");
        assert_eq!(orders.queues, [(b"a".to_vec(), 2), (b"b".to_vec(), 1)]);
        assert!(groups.contains_key(&(Vec::new(), "retries".to_owned())));
    }
}
