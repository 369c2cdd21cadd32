//! A map reply whose fields are read by name.

use redis::Value;

use crate::failure::Failure;
use crate::text::printable;

/// A map, with its fields in the order of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Record(Vec<(Value, Value)>);

impl Record {
    /// Reads the record of a reply. Fails if the reply is no map.
    pub fn of(reply: Value) -> Result<Record, Failure> {
        match reply {
            Value::Map(pairs) => Ok(Record(pairs)),
            _ => Err(unexpected()),
        }
    }

    /// Reads the record of a reply. Returns `None` for a null.
    pub fn maybe(reply: Value) -> Result<Option<Record>, Failure> {
        match reply {
            Value::Nil => Ok(None),
            reply => Record::of(reply).map(Some),
        }
    }

    /// Reads the records of an array of maps.
    pub fn all(reply: Value) -> Result<Vec<Record>, Failure> {
        match reply {
            Value::Array(items) => items.into_iter().map(Record::of).collect(),
            _ => Err(unexpected()),
        }
    }

    /// Reads the next cursor and the records of a page. The cursor is `None` at the end.
    pub fn page(reply: Value) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
        let Value::Array(parts) = reply else {
            return Err(unexpected());
        };
        let [cursor, items] = <[Value; 2]>::try_from(parts).map_err(|_| unexpected())?;
        let cursor = bytes(&cursor).ok_or_else(unexpected)?.to_vec();
        Ok((Some(cursor).filter(|c| c != b"0"), Record::all(items)?))
    }

    /// Returns all fields, in the order of the server.
    pub fn fields(&self) -> &[(Value, Value)] {
        &self.0
    }

    /// Returns the record with another value for a field that it has.
    pub fn with(mut self, field: &str, value: Value) -> Record {
        let found = self.0.iter_mut();
        let mut found = found.filter(|(name, _)| bytes(name) == Some(field.as_bytes()));
        if let Some((_, old)) = found.next().filter(|(_, old)| *old != Value::Nil) {
            *old = value;
        }
        drop(found);
        self
    }

    /// Returns the value of a field, or null if there is none.
    pub fn get(&self, field: &str) -> &Value {
        let found = self
            .0
            .iter()
            .find(|(name, _)| bytes(name) == Some(field.as_bytes()));
        found.map_or(&Value::Nil, |(_, value)| value)
    }

    /// Returns the bytes of a text field.
    pub fn bytes(&self, field: &str) -> Option<&[u8]> {
        bytes(self.get(field))
    }

    /// Returns a field as printable text, which is empty for null.
    pub fn text(&self, field: &str) -> String {
        shown(self.get(field))
    }

    /// Returns a field that is an integer of 0 or more.
    pub fn number(&self, field: &str) -> Option<u64> {
        match self.get(field) {
            Value::Int(n) => u64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// Returns a count. It is 0 if the field is missing, as with an older module.
    pub fn count(&self, field: &str) -> u64 {
        self.number(field).unwrap_or(0)
    }

    /// Returns a boolean field.
    pub fn flag(&self, field: &str) -> bool {
        *self.get(field) == Value::Boolean(true)
    }
}

/// Returns a value as printable text, which is empty for null.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Nil => String::new(),
        Value::Int(n) => n.to_string(),
        Value::Double(n) => n.to_string(),
        Value::Boolean(b) => (if *b { "yes" } else { "no" }).to_owned(),
        Value::Map(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(k, v)| format!("{}={}", shown(k), shown(v)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => bytes(other).map(printable).unwrap_or_default(),
    }
}

/// Returns the bytes of a text value.
pub fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) | Value::BigNumber(bytes) => Some(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.as_bytes()),
        Value::Okay => Some(b"OK"),
        _ => None,
    }
}

/// Returns the integer of a reply.
pub fn integer(reply: &Value) -> Result<u64, Failure> {
    match reply {
        Value::Int(n) => u64::try_from(*n).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    }
}

/// Creates the failure for a reply that the command does not have.
pub fn unexpected() -> Failure {
    Failure::mistake("unexpected reply: is this server's dq module newer than this program?")
}

/// Helpers for the tests of other files.
#[cfg(test)]
pub fn record(fields: &[(&str, Value)]) -> Record {
    let pair = |(name, value): &(&str, Value)| {
        (Value::BulkString(name.as_bytes().to_vec()), value.clone())
    };
    Record(fields.iter().map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let record = record(&[
            ("id", Value::BulkString(b"a\x1b".to_vec())),
            ("ready", Value::Int(7)),
            ("retries-left", Value::Int(-1)),
            ("paused", Value::Boolean(true)),
            ("group", Value::Nil),
        ]);
        assert_eq!(record.text("id"), "a\\x1b");
        assert_eq!(record.bytes("id"), Some(&b"a\x1b"[..]));
        assert_eq!(record.count("ready"), 7);
        assert_eq!(record.number("retries-left"), None);
        assert_eq!(record.text("retries-left"), "-1");
        assert!(record.flag("paused"));
        assert_eq!(record.text("group"), "");
        assert_eq!(record.count("missing"), 0);
    }

    #[test]
    fn cursor_zero_is_the_last_page() {
        let page = |cursor: &str| {
            Value::Array(vec![
                Value::BulkString(cursor.as_bytes().to_vec()),
                Value::Array(vec![Value::Map(Vec::new())]),
            ])
        };
        assert_eq!(Record::page(page("0")).unwrap().0, None);
        assert_eq!(Record::page(page("5-1")).unwrap().0, Some(b"5-1".to_vec()));
        assert!(Record::page(Value::Array(Vec::new())).is_err());
        assert!(Record::page(Value::Nil).is_err());
    }
}
