//! The failed attempts of a message that its queue keeps (ERRORS).

use redis::Value;

use super::record::{bytes, Record};
use crate::time_text::Millis;

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u64,
    /// When it failed.
    pub at: Millis,
    /// The consumer that had the message. Empty if none was named. Empty if nobody said so.
    pub consumer: Vec<u8>,
    /// The error of the attempt. Empty if nobody said so.
    pub error: Vec<u8>,
}

/// Returns the failed attempts of a message, the oldest first. There are none with an older
/// module.
pub fn of(message: &Record) -> Vec<Attempt> {
    let Value::Array(items) = message.get("errors") else {
        return Vec::new();
    };
    items.iter().filter_map(attempt).collect()
}

fn attempt(item: &Value) -> Option<Attempt> {
    let Value::Array(parts) = item else {
        return None;
    };
    let number = |part: Option<&Value>| match part? {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let text = |part: Option<&Value>| part.and_then(bytes).unwrap_or_default().to_vec();
    Some(Attempt {
        number: number(parts.first())?,
        at: number(parts.get(1))?,
        consumer: text(parts.get(2)),
        error: text(parts.get(3)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn attempts_are_read_as_far_as_they_are_known() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let message = record(&[(
            "errors",
            Value::Array(vec![
                Value::Array(vec![
                    Value::Int(1),
                    Value::Int(1500),
                    text("w1"),
                    text("no"),
                ]),
                Value::Array(vec![Value::Int(2), Value::Int(1600), Value::Nil, text("")]),
                Value::Nil,
            ]),
        )]);
        let found = of(&message);
        assert_eq!(found.len(), 2);
        let (first, second) = (&found[0], &found[1]);
        assert_eq!((first.number, first.at), (1, 1500));
        assert_eq!(
            (&first.consumer[..], &first.error[..]),
            (&b"w1"[..], &b"no"[..])
        );
        assert_eq!((second.number, &second.consumer[..]), (2, &b""[..]));
        assert_eq!(of(&record(&[])), []);
    }
}
