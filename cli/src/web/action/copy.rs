//! A message that can be sent again.
//!
//! No reply gives all options of a message, so a copy lacks those that none gives.

use redis::{Cmd, Value};

use crate::failure::Failure;
use crate::model::record::{bytes, Record};
use crate::server::{verb, Server};
use crate::text::printable;

/// The options of a message that are in no reply, in words.
pub const UNTOLD: &str = "LEASE, RETRIES, BACKOFF, TTL, RETAIN, IFGROUP and AFTER";

/// A message that can be sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageCopy {
    /// Its reply of DQ.GET.
    pub message: Record,
    /// Its due time as given by the send, in Unix ms.
    due: u64,
}

impl MessageCopy {
    /// Reads a message that is to be copied. It is a mistake if there is none.
    pub fn of(server: &mut Server, queue: &[u8], id: &[u8]) -> Result<MessageCopy, Failure> {
        let mut cmd = verb("DQ.GET", queue);
        cmd.arg(id);
        let message = Record::maybe(server.call(&cmd)?)?;
        let message =
            message.ok_or_else(|| Failure::mistake("there is no such message any more"))?;
        let due = message.count("due-at");
        Ok(MessageCopy { message, due })
    }

    /// Creates a copy of a message that was due at this time.
    pub fn due_at(message: Record, due: u64) -> MessageCopy {
        MessageCopy { message, due }
    }

    /// Returns the options of DQ.SEND that the copy has, in their order: option and values.
    pub fn options(&self) -> Vec<(&'static str, Vec<&Value>)> {
        let mut options = Vec::new();
        for (option, field) in [
            ("TYPE", "type"),
            ("GROUP", "group"),
            ("SCORE", "score"),
            ("PRIORITY", "priority"),
            ("BATCH", "batch"),
        ] {
            let value = self.message.get(field);
            if *value != Value::Nil && !self.is_default(field, value) {
                options.push((option, vec![value]));
            }
        }
        if let Value::Map(headers) = self.message.get("headers") {
            let pairs = headers.iter().flat_map(|(field, value)| [field, value]);
            options.push(("HEADERS", pairs.collect()));
        }
        options
    }

    /// Whether the copy gets the right value without the option. The score of a message is its
    /// due time unless one is given, and the copy has a due time of its own.
    fn is_default(&self, field: &str, value: &Value) -> bool {
        match (field, value) {
            ("priority", Value::Int(priority)) => *priority == 0,
            ("score", Value::Double(score)) => *score == self.due as f64,
            ("score", Value::Int(score)) => u64::try_from(*score) == Ok(self.due),
            _ => false,
        }
    }

    fn cmd(&self, queue: &[u8]) -> Cmd {
        let mut cmd = verb("DQ.SEND", queue);
        cmd.arg(self.message.bytes("payload").unwrap_or_default());
        for (option, values) in self.options() {
            cmd.arg(option);
            if option == "HEADERS" {
                cmd.arg(values.len() / 2);
            }
            for value in values {
                match value {
                    Value::Int(number) => cmd.arg(*number),
                    Value::Double(number) => cmd.arg(*number),
                    other => cmd.arg(bytes(other).unwrap_or_default()),
                };
            }
        }
        cmd
    }

    /// Sends it. Returns a sentence about the result.
    pub fn send(&self, server: &mut Server, queue: &[u8]) -> Result<String, Failure> {
        sent(&server.call(&self.cmd(queue))?)
    }
}

/// Returns a sentence about the result of a DQ.SEND.
pub fn sent(reply: &Value) -> Result<String, Failure> {
    match bytes(reply) {
        Some(id) => Ok(format!("Sent, with the id {}.", printable(id))),
        None => Err(Failure::mistake("the id is taken")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    fn copy(score: f64) -> MessageCopy {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let message = record(&[
            ("payload", text("job")),
            ("group", text("g")),
            ("score", Value::Double(score)),
            ("priority", Value::Int(0)),
            ("type", text("t")),
            ("headers", Value::Map(vec![(text("a"), text("b"))])),
            ("batch", Value::Nil),
        ]);
        MessageCopy::due_at(message, 5000)
    }

    fn words(copy: &MessageCopy) -> Vec<&'static str> {
        copy.options().iter().map(|(option, _)| *option).collect()
    }

    #[test]
    fn a_copy_has_what_the_server_tells_of_a_message() {
        assert_eq!(words(&copy(5000.0)), ["TYPE", "GROUP", "HEADERS"]);
        assert_eq!(words(&copy(7.5)), ["TYPE", "GROUP", "SCORE", "HEADERS"]);
        let packed = String::from_utf8(copy(7.5).cmd(b"q").get_packed_command()).unwrap();
        let sent: Vec<&str> = packed
            .split("\r\n")
            .filter(|line| !line.is_empty() && !line.starts_with(['*', '$']))
            .collect();
        assert_eq!(
            sent.join(" "),
            "DQ.SEND q job TYPE t GROUP g SCORE 7.5 HEADERS 1 a b"
        );
    }
}
