//! Running a schedule now.
//!
//! DQ.SCHEDULES does not tell which message a schedule sends, so a run now copies the message
//! that it has sent last, or the record of it. The copy lacks the options that no reply
//! gives.

use redis::{Cmd, Value};

use crate::failure::Failure;
use crate::model::record::{bytes, Record};
use crate::server::{verb, Server};
use crate::web::action::message::sent;

/// The options of a message that no reply gives, in words.
pub const UNTOLD: &str = "LEASE, RETRIES, BACKOFF, TTL, RETAIN, IFGROUP and AFTER";

/// A message that can be sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct LastMessage {
    /// Its reply of DQ.GET.
    pub message: Record,
    /// When the schedule sent it, in Unix ms.
    sent_for: u64,
}

impl LastMessage {
    /// Looks for the message that a schedule has sent last. It is a mistake if there is none.
    pub fn of_last(server: &mut Server, queue: &[u8], name: &[u8]) -> Result<LastMessage, Failure> {
        let schedules = Record::all(server.call(&verb("DQ.SCHEDULES", queue))?)?;
        let found = schedules.iter().find(|one| one.bytes("name") == Some(name));
        let schedule =
            found.ok_or_else(|| Failure::mistake("there is no such schedule any more"))?;
        let Some(sent_for) = schedule.number("last-at") else {
            return Err(Failure::mistake(
                "the schedule has not sent a message yet, and the server does not tell what it \
                 would send",
            ));
        };
        let mut cmd = verb("DQ.GET", queue);
        cmd.arg([name, format!("@{sent_for}").as_bytes()].concat());
        let message = Record::maybe(server.call(&cmd)?)?.ok_or_else(|| {
            Failure::mistake(
                "the message that the schedule sent last is gone, and the server does not tell \
                 what it would send; with a RETAIN of the queue the message stays for that long",
            )
        })?;
        Ok(LastMessage { message, sent_for })
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
            ("score", Value::Double(score)) => *score == self.sent_for as f64,
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
}

/// Sends the copy. Returns what came of it, in words.
pub fn fire(server: &mut Server, queue: &[u8], name: &[u8]) -> Result<String, Failure> {
    let copy = LastMessage::of_last(server, queue, name)?;
    sent(server.call(&copy.cmd(queue))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    fn copy(score: f64) -> LastMessage {
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
        LastMessage {
            message,
            sent_for: 5000,
        }
    }

    fn words(copy: &LastMessage) -> Vec<&'static str> {
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
