//! The data and the return values of BullMQ's jobs that its driver has encrypted or compressed: JSON
//! texts in which an envelope stands for a value (docs/drivers/bullmq.md).

use std::borrow::Cow;

use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::Value as Json;

use super::coded::{decoded, Keys};
use super::record::Record;

/// The field of an envelope that has what was sealed, in base64.
const SEALED: &str = "dq-sealed";
/// The most envelopes that are opened in one text, which may be a stranger's: a job has two, and each may be unpacked
/// to a megabyte.
const MOST: usize = 4;

/// Returns whether there may be an envelope in a JSON text.
pub fn is_in(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.contains(SEALED))
}

/// Returns a text of a message with its envelopes opened, or with words in their places.
pub fn opened<'a>(keys: &Keys, queue: &[u8], message: &Record, text: &'a [u8]) -> Cow<'a, [u8]> {
    let json = is_in(text).then(|| serde_json::from_slice(text).ok());
    let Some(mut json) = json.flatten() else {
        return Cow::Borrowed(text);
    };
    open(keys, &places(queue, message), &mut json, &mut { MOST });
    Cow::Owned(json.to_string().into_bytes())
}

/// What may be authenticated with the envelopes of a message: a queue and an id each.
fn places(queue: &[u8], message: &Record) -> Vec<[Vec<u8>; 2]> {
    let id = message.bytes("id").unwrap_or_default();
    let payload = message.bytes("payload").unwrap_or_default();
    let job: Json = serde_json::from_slice(payload).unwrap_or_default();
    let bound = [("repeatJobKey", "repeat:"), ("deduplicationId", "de:")];
    let bound = bound.into_iter().filter_map(|(field, before)| {
        let id = job.get(field)?.as_str()?;
        Some(format!("{before}{id}").into_bytes())
    });
    let data = bound.chain([id.to_vec()]).map(|id| [queue.to_vec(), id]);
    let returned = [[queue, b":", id].concat(), b"returnvalue".to_vec()];
    data.chain([returned]).collect()
}

fn open(keys: &Keys, places: &[[Vec<u8>; 2]], json: &mut Json, left: &mut usize) {
    match json {
        _ if *left == 0 => {}
        Json::Array(items) => items
            .iter_mut()
            .for_each(|one| open(keys, places, one, left)),
        Json::Object(fields) => {
            let sealed = fields.get(SEALED).and_then(Json::as_str);
            let Some(sealed) = sealed.and_then(|text| BASE64_STANDARD.decode(text).ok()) else {
                let values = fields.values_mut();
                return values.for_each(|one| open(keys, places, one, left));
            };
            *left -= 1;
            let header = |name: &str| fields.get(name)?.as_str().map(str::as_bytes);
            *json = match decoded(keys, header, places, &sealed) {
                Ok(text) => serde_json::from_slice(&text)
                    .unwrap_or_else(|_| String::from_utf8_lossy(&text).into()),
                Err(words) => format!("({words})").into(),
            };
        }
        // The data that a job has changed are kept as a text.
        Json::String(text) if is_in(text.as_bytes()) => {
            if let Ok(mut inner) = serde_json::from_str(text) {
                open(keys, places, &mut inner, left);
                *text = inner.to_string();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;
    use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM};
    use serde_json::json;

    use super::*;
    use crate::model::coded::associated;
    use crate::model::record::record;

    fn key() -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap())
    }

    fn envelope(queue: &str, id: &str, json: &str) -> Json {
        let aad = Aad::from(associated([queue.as_bytes(), id.as_bytes(), b"payload"]));
        let mut text = json.as_bytes().to_vec();
        let nonce = Nonce::assume_unique_for_key([1; 12]);
        key()
            .seal_in_place_append_tag(nonce, aad, &mut text)
            .unwrap();
        let sealed = BASE64_STANDARD.encode([&[1; 12], &text[..]].concat());
        json!({ "dq-key": "k", "dq-sealed": sealed })
    }

    fn job(fields: &Json) -> Record {
        let text = |text: String| Value::BulkString(text.into_bytes());
        record(&[
            ("id", text("7".into())),
            ("payload", text(fields.to_string())),
        ])
    }

    fn both(queue: &str, message: &Record, text: &str) -> [Json; 2] {
        [Keys::default(), Keys::of("k", key())].map(|keys| {
            let opened = opened(&keys, queue.as_bytes(), message, text.as_bytes());
            serde_json::from_slice(&opened).unwrap()
        })
    }

    #[test]
    fn data_are_named_without_the_key_and_read_with_it() {
        let hidden = json!("(encrypted, key k)");
        for (id, fields) in [
            ("7", json!({ "name": "a" })),
            (
                "repeat:each",
                json!({ "name": "a", "repeatJobKey": "each" }),
            ),
            ("de:one", json!({ "name": "a", "deduplicationId": "one" })),
        ] {
            let mut payload = fields.clone();
            payload["data"] = envelope("bull:q", id, r#"{"who":"ann"}"#);
            let message = job(&payload);
            let [without, with] = both("bull:q", &message, &payload.to_string());
            assert_eq!((&without["data"], &without["name"]), (&hidden, &json!("a")));
            assert_eq!(with["data"], json!({ "who": "ann" }));
            let [_, moved] = both("bull:other", &message, &payload.to_string());
            let words = moved["data"].as_str().unwrap();
            assert!(words.contains("not what was sent"), "{words}");
        }
    }

    #[test]
    fn so_are_changed_data_and_what_a_job_returns() {
        let changed = envelope("bull:q", "7", r#"{"who":"bob"}"#).to_string();
        let note = json!({ "v": 1, "data": changed });
        let message = job(&json!({ "name": "a", "data": {} }));
        let [without, with] = both("bull:q", &message, &note.to_string());
        assert_eq!(without["data"], json!(r#""(encrypted, key k)""#));
        assert_eq!(with, json!({ "v": 1, "data": r#"{"who":"bob"}"# }));
        let result = envelope("bull:q:7", "returnvalue", "\"done\"").to_string();
        let [without, with] = both("bull:q", &message, &result);
        assert_eq!(
            (without, with),
            (json!("(encrypted, key k)"), json!("done"))
        );
    }

    #[test]
    fn a_text_of_many_envelopes_is_not_opened_to_its_end() {
        let one = envelope("bull:q", "7", "5");
        let many = json!({ "name": "a", "data": vec![one.clone(); MOST + 1] });
        let [_, with] = both("bull:q", &job(&many), &many.to_string());
        let opened = [vec![json!(5); MOST], vec![one]].concat();
        assert_eq!(with["data"], json!(opened));
    }

    #[test]
    fn what_only_looks_like_an_envelope_stays() {
        for text in ["dq-sealed", r#"{"dq-sealed":5}"#, r#"{"dq-sealed":"!"}"#] {
            let message = job(&json!({}));
            let opened = opened(&Keys::default(), b"q", &message, text.as_bytes());
            assert_eq!(opened, text.as_bytes());
        }
    }
}
