//! Messages: the facts of the API about them, as they are kept with the payload in dq.

use md5::{Digest, Md5};
use serde_json::{json, Value as Json};

use super::fault::{Fault, Kind};
use super::params::{self, Params};
use crate::bounds::{self, Bound};
use crate::text::hex;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;

/// The header of a message in dq that holds these facts, as JSON: `a` are its
/// attributes, `t` when it was sent, `by` the sender, `d` its deduplication id, `x` the trace,
/// `n` how often it was received before it came to this queue.
pub const HEADER: &str = "sqs";

/// The length of a UUID, in characters.
const UUID: usize = 36;

/// Maximum length of a name or type of an attribute, plus one.
const NAME: usize = 256;

/// Returns the sequence number of a message of a FIFO queue, which its id has: the id is a UUID of
/// version 8, in which fifteen digits are the number. None for any other id.
pub fn sequence(id: &str) -> Option<String> {
    let mut parts = id.split('-');
    let (high, middle, low) = (parts.next()?, parts.next()?, parts.next()?);
    let low = low.strip_prefix('8').filter(|_| id.len() == UUID)?;
    let number = u64::from_str_radix(&format!("{high}{middle}{low}"), 16).ok()?;
    Some(format!("1{number:019}"))
}

/// Returns the sum of a body.
pub fn md5(bytes: &[u8]) -> String {
    hex(Md5::digest(bytes))
}

/// Returns the sum of attributes, as AWS counts it. None if there are none.
pub fn md5_of(attributes: &Params) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut sum = Md5::new();
    let mut add = |bytes: &[u8], kind: Option<u8>| {
        sum.update(kind.as_slice());
        sum.update((bytes.len() as u32).to_be_bytes());
        sum.update(bytes);
    };
    let mut names: Vec<&String> = attributes.keys().collect();
    names.sort();
    for name in names {
        let Some(Json::Object(value)) = attributes.get(name) else {
            continue;
        };
        add(name.as_bytes(), None);
        let kind = params::text(value, "DataType").unwrap_or_default();
        add(kind.as_bytes(), None);
        match params::text(value, "BinaryValue").filter(|_| kind.starts_with("Binary")) {
            Some(encoded) => add(&STANDARD.decode(encoded).unwrap_or_default(), Some(2)),
            None => {
                let text = params::text(value, "StringValue").unwrap_or_default();
                add(text.as_bytes(), Some(1));
            }
        }
    }
    Some(hex(sum.finalize()))
}

/// Returns how many bytes attributes count: their names, types and values.
pub fn size_of(attributes: &Params) -> usize {
    let value = |value: &Json| {
        let Json::Object(value) = value else {
            return 0;
        };
        let text = |name| params::text(value, name).unwrap_or_default();
        let bytes = STANDARD.decode(text("BinaryValue")).unwrap_or_default();
        text("DataType").len() + text("StringValue").len() + bytes.len()
    };
    let all = attributes.iter();
    all.map(|(name, inner)| name.len() + value(inner)).sum()
}

/// Returns whether a text has only characters that a body may have.
pub fn is_clean(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..))
}

/// Checks a body.
pub fn check_body(body: &str) -> Result<(), Fault> {
    match is_clean(body) {
        true => Ok(()),
        false => Err(Fault::new(Kind::InvalidMessageContents, INVALID)),
    }
}

const INVALID: &str = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | \
    #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF";

/// Checks the attributes of a message.
pub fn check_attributes(attributes: &Params) -> Result<(), Fault> {
    if attributes.len() > 10 {
        return Err(Fault::value(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [10].",
            attributes.len()
        )));
    }
    for (name, value) in attributes {
        check_name(name)?;
        let Json::Object(value) = value else {
            return Err(Fault::value(format!(
                "The message attribute '{name}' must contain a non-empty message attribute value."
            )));
        };
        check_value(name, value)?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Fault> {
    if name.len() >= NAME {
        return Err(Fault::value(
            "Message (user) attribute names must be shorter than 256 Bytes",
        ));
    }
    let letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(letter) {
        return Err(Fault::value(
            "Message (user) attributes name can only contain upper and lower score characters, \
             digits, periods, hyphens and underscores. ",
        ));
    }
    let lower = name.to_lowercase();
    let ours = ["aws.", "amazon.", "."]
        .iter()
        .any(|start| lower.starts_with(start));
    if ours || name.ends_with('.') {
        return Err(Fault::value(
            "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These \
             strings are reserved for internal use. Additionally, they cannot start or end with \
             '.'.",
        ));
    }
    Ok(())
}

fn check_value(name: &str, value: &Params) -> Result<(), Fault> {
    let kind = params::text(value, "DataType").unwrap_or_default();
    if kind.is_empty() {
        return Err(Fault::value(format!(
            "The message attribute '{name}' must contain a non-empty attribute type."
        )));
    }
    let base = kind.split('.').next().unwrap_or_default();
    let base = ["String", "Number", "Binary"]
        .into_iter()
        .find(|known| *known == base);
    let Some(base) = base else {
        return Err(Fault::value(format!(
            "The message attribute '{name}' has an invalid message attribute type, the set of \
             supported type prefixes is Binary, Number, and String."
        )));
    };
    if kind.len() >= NAME {
        return Err(Fault::value(
            "Message (user) attribute types must be shorter than 256 Bytes",
        ));
    }
    let field = match base {
        "Binary" => "BinaryValue",
        _ => "StringValue",
    };
    let text = params::text(value, field).unwrap_or_default();
    if text.is_empty() {
        return Err(Fault::value(format!(
            "Message (user) attribute '{name}' must contain a non-empty value of type '{base}'."
        )));
    }
    if base == "Binary" && STANDARD.decode(&text).is_err() {
        return Err(Fault::value(format!(
            "Message (user) attribute '{name}' must be encoded in base64."
        )));
    }
    if base == "Number" && !is_number(&text) {
        return Err(Fault::value(format!(
            "Can't cast the value of message (user) attribute '{name}' to a number."
        )));
    }
    match base != "String" || is_clean(&text) {
        true => Ok(()),
        false => Err(Fault::value(INVALID)),
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Checks the id of a group or of a deduplication.
pub fn check_id(id: &str, name: &str) -> Result<(), Fault> {
    match (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(Fault::parameter(
            id,
            name,
            &format!(
                "{name} can only include alphanumeric and punctuation characters. 1 to 128 in \
                 length."
            ),
        )),
    }
}

/// The facts of the API about a message, as they are kept with it.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// The attributes that its sender has set.
    pub attributes: Params,
    /// When it was sent, in Unix ms.
    pub sent_at: i64,
    /// The name of its sender.
    pub sender: String,
    /// Its deduplication id.
    pub deduplication: Option<String>,
    /// The header of a trace.
    pub trace: Option<String>,
    /// How often it was received in other queues.
    pub received: i64,
}

impl Meta {
    /// Returns the header.
    pub fn header(&self) -> String {
        let mut fields = Params::new();
        fields.insert("t".to_owned(), json!(self.sent_at));
        fields.insert("by".to_owned(), json!(self.sender));
        let mut add = |name: &str, value: Option<Json>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        let some = !self.attributes.is_empty();
        add("a", some.then(|| json!(self.attributes)));
        add("d", self.deduplication.as_ref().map(|id| json!(id)));
        add("x", self.trace.as_ref().map(|trace| json!(trace)));
        add("n", (self.received != 0).then(|| json!(self.received)));
        Json::Object(fields).to_string()
    }

    /// Reads the header. None if the message has come another way than through a gateway.
    pub fn read(header: &str) -> Option<Meta> {
        let Ok(Json::Object(mut fields)) = serde_json::from_str(header) else {
            return None;
        };
        let attributes = match fields.remove("a") {
            Some(Json::Object(attributes)) => attributes,
            _ => Params::new(),
        };
        let number = |bound: &Bound| {
            let value = fields.get(bound.name);
            value.and_then(|value| bound.json(value)).unwrap_or(0)
        };
        Some(Meta {
            attributes,
            sent_at: number(&bounds::SENT_AT),
            sender: params::text(&fields, "by").unwrap_or_default(),
            deduplication: params::text(&fields, "d"),
            trace: params::text(&fields, "x"),
            received: number(&bounds::RECEIVED),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(json: Json) -> Params {
        match json {
            Json::Object(map) => map,
            _ => Params::new(),
        }
    }

    #[test]
    fn sums_are_those_of_aws() {
        assert_eq!(md5(b"message"), "78e731027d8fd50ed642340b7c9a63b3");
        let map = attributes(json!({
            "timestamp": { "StringValue": "1493147359900", "DataType": "Number" }
        }));
        assert_eq!(md5_of(&map).unwrap(), "235c5c510d26fb653d073faed50ae77c");
        assert_eq!(md5_of(&Params::new()), None);
    }

    #[test]
    fn an_id_of_a_fifo_queue_has_the_sequence_number() {
        let number = |id: &str| sequence(id);
        let id = "00000000-0000-82af-a1b2-0123456789ab";
        assert_eq!(number(id).as_deref(), Some("10000000000000000687"));
        for other in [
            "a",
            "",
            "00000000-0000-42af-a1b2-0123456789ab",
            "00000000-0000-8+af-a1b2-0123456789ab",
            "00000000-0000-82af",
        ] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_said_of_a_message_is_kept() {
        let meta = Meta {
            attributes: attributes(json!({ "k": { "DataType": "String", "StringValue": "v" } })),
            sent_at: 7,
            sender: "ann".to_owned(),
            received: 2,
            ..Meta::default()
        };
        let read = Meta::read(&meta.header()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{meta:?}"));
        assert!(Meta::read("x").is_none());
    }

    #[test]
    fn attributes_are_checked() {
        let check = |name: &str, kind: &str, value: &str| {
            let json = json!({ name: { "DataType": kind, "StringValue": value } });
            check_attributes(&attributes(json)).is_ok()
        };
        assert!(check("größe", "String.x", "v"));
        assert!(check("n", "Number", "1.5"));
        for (name, kind, value) in [
            ("", "String", "v"),
            ("a b", "String", "v"),
            ("AWS.x", "String", "v"),
            ("x.", "String", "v"),
            ("x", "", "v"),
            ("x", "Text", "v"),
            ("x", "String", ""),
            ("x", "Number", "v"),
            ("x", "String", "\u{1}"),
        ] {
            assert!(!check(name, kind, value), "{name} {kind} {value}");
        }
    }
}
