//! Replies of the server as JSON.

use redis::Value;
use serde_json::{Map, Number, Value as Json};

use crate::text::printable;

/// Returns the JSON of a reply. Bytes that are not UTF-8 are escaped as `\xNN`,
/// because JSON has no bytes.
pub fn of(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Int(n) => Json::from(*n),
        Value::Double(n) => Number::from_f64(*n).map_or(Json::Null, Json::Number),
        Value::BigNumber(digits) => serde_json::from_slice(digits).unwrap_or_default(),
        Value::Boolean(b) => Json::from(*b),
        Value::Okay => Json::from("OK"),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Json::from(text.as_str()),
        Value::BulkString(bytes) => name(bytes),
        Value::Array(items) | Value::Set(items) => items.iter().map(of).collect(),
        Value::Map(pairs) => map(pairs),
        Value::ServerError(error) => Json::from(error.to_string()),
        other => Json::from(format!("{other:?}")),
    }
}

/// Returns the JSON of a map, with its fields in the server's order.
pub fn map(pairs: &[(Value, Value)]) -> Json {
    let mut fields = Map::new();
    for (field, value) in pairs {
        let field = match of(field) {
            Json::String(text) => text,
            other => other.to_string(),
        };
        fields.insert(field, of(value));
    }
    Json::Object(fields)
}

/// Returns the JSON of a name, an id or a payload.
pub fn name(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => Json::from(text),
        Err(_) => Json::from(printable(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_reply_becomes_json() {
        let reply = Value::Map(vec![
            (
                Value::BulkString(b"id".into()),
                Value::BulkString(b"a\n".into()),
            ),
            (Value::SimpleString("n".into()), Value::Int(-1)),
            (Value::BulkString(b"score".into()), Value::Double(1.5)),
            (
                Value::BulkString(b"large".into()),
                Value::BigNumber(b"18446744073709551615".into()),
            ),
            (Value::BulkString(b"paused".into()), Value::Boolean(true)),
            (
                Value::BulkString(b"list".into()),
                Value::Array(vec![Value::Nil, Value::Okay]),
            ),
            (
                Value::BulkString(b"bytes".into()),
                Value::BulkString(vec![0xff, b'a']),
            ),
        ]);
        assert_eq!(
            of(&reply).to_string(),
            r#"{"id":"a\n","n":-1,"score":1.5,"large":18446744073709551615,"paused":true,"list":[null,"OK"],"bytes":"\\xffa"}"#
        );
    }
}
