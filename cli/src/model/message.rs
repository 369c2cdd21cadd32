//! Formats one line about a message.

use super::record::Record;
use crate::text::plural;
use crate::time_text::span;

/// Formats the fields of a record of DQ.GET that are set, except for id and state, for
/// one line of a log.
pub fn remarks(message: &Record) -> String {
    let mut remarks = Vec::new();
    for field in ["type", "group", "consumer", "reason"] {
        let text = message.text(field);
        if !text.is_empty() {
            remarks.push(format!("{field} {text}"));
        }
    }
    remarks.push(plural(message.count("attempt"), "attempt"));
    if let (Some(from), Some(to)) = (message.number("started-at"), message.number("finished-at")) {
        remarks.push(format!("took {}", span(to.saturating_sub(from))));
    }
    for field in ["note", "result", "error"] {
        let text = message.text(field);
        if !text.is_empty() {
            remarks.push(format!("{field}: {text}"));
        }
    }
    remarks.join(", ")
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn only_fields_that_are_set_are_printed() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let dead = record(&[
            ("group", text("user-7")),
            ("type", Value::Nil),
            ("reason", text("retries")),
            ("attempt", Value::Int(1)),
            ("started-at", Value::Int(1000)),
            ("finished-at", Value::Int(3500)),
            ("error", text("boom\x1b")),
            ("note", text("page 7")),
        ]);
        assert_eq!(
            remarks(&dead),
            "group user-7, reason retries, 1 attempt, took 2.5s, note: page 7, error: boom\\x1b"
        );
    }
}
