//! Payloads and headers that clients have encrypted, compressed or put elsewhere (docs/secrets.md).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use base64::prelude::{Engine, BASE64_STANDARD};
use redis::Value;
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ruzstd::decoding::StreamingDecoder;

use super::envelope;
use super::record::{bytes, Record};
use crate::failure::Failure;
use crate::secret;
use crate::text::printable;

const KEY: &str = "dq-key";
const SEALED: &str = "dq-sealed:";
const ENCODING: &str = "dq-encoding";
const OFFLOAD: &str = "dq-offload";
/// Maximum size of an unpacked payload, in bytes: a small message could fill the memory.
const UNPACKED: u64 = 1 << 20;

/// The keys of this program, which are read once at its start.
static KEYS: OnceLock<Keys> = OnceLock::new();

/// Keys by their ids.
#[derive(Default)]
pub struct Keys(BTreeMap<Vec<u8>, LessSafeKey>);

impl Keys {
    /// Reads a file that has a line for each key: its id, and its 32 bytes in base64.
    pub fn read(path: &Path) -> Result<Keys, Failure> {
        let text = String::from_utf8_lossy(&secret::read(path)?).into_owned();
        let mut keys = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line.split_once(char::is_whitespace).and_then(|(id, key)| {
                let key = BASE64_STANDARD.decode(key.trim()).ok()?;
                let key = UnboundKey::new(&AES_256_GCM, &key).ok()?;
                Some((id.as_bytes().to_vec(), LessSafeKey::new(key)))
            });
            // The line may have a key, so no message repeats it.
            let (id, key) = key.ok_or_else(|| {
                Failure::mistake(format!(
                    "{}: line {} is no id with a key of 32 bytes in base64",
                    path.display(),
                    number + 1
                ))
            })?;
            keys.insert(id, key);
        }
        Ok(Keys(keys))
    }

    /// One key.
    #[cfg(test)]
    pub fn of(id: &str, key: LessSafeKey) -> Keys {
        Keys([(id.as_bytes().to_vec(), key)].into())
    }

    /// Lets the whole program read with these keys.
    pub fn use_them(self) {
        // It is called once, before anything is shown.
        let _ = KEYS.set(self);
    }

    /// Decrypts a part of a message. Fails with the words for people.
    fn open(&self, id: &[u8], parts: [&[u8]; 3], sealed: &[u8]) -> Result<Vec<u8>, String> {
        let encrypted = format!("encrypted, key {}", printable(id));
        let Some(key) = self.0.get(id) else {
            return Err(encrypted);
        };
        let opened = sealed
            .split_at_checked(NONCE_LEN)
            .and_then(|(nonce, text)| {
                let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
                let mut text = text.to_vec();
                let length = key
                    .open_in_place(nonce, Aad::from(associated(parts)), &mut text)
                    .ok()?
                    .len();
                text.truncate(length);
                Some(text)
            });
        opened
            .ok_or_else(|| format!("{encrypted}, and not what was sent with this id to this queue"))
    }
}

/// Returns what is authenticated beside a text: each part after its length.
pub fn associated(parts: [&[u8]; 3]) -> Vec<u8> {
    let mut data = Vec::new();
    for part in [b"dq1".as_slice()].into_iter().chain(parts) {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        data.extend(length.to_be_bytes());
        data.extend(part);
    }
    data
}

/// Returns the payload of a message as it was sent, or the words that stand in its place.
pub fn payload<'a>(queue: &[u8], message: &'a Record) -> Result<Cow<'a, [u8]>, String> {
    payload_by(KEYS.get_or_init(Keys::default), queue, message)
}

fn payload_by<'a>(keys: &Keys, queue: &[u8], message: &'a Record) -> Result<Cow<'a, [u8]>, String> {
    let stored = message.bytes("payload").unwrap_or_default();
    if let Some(place) = header(message, OFFLOAD) {
        return Err(format!("kept elsewhere, key {}", printable(place)));
    }
    let id = message.bytes("id").unwrap_or_default().to_vec();
    let place = [queue.to_vec(), id];
    match decoded(keys, |name| header(message, name), &[place], stored)? {
        Cow::Borrowed(stored) => Ok(envelope::opened(keys, queue, message, stored)),
        plain => Ok(plain),
    }
}

/// Returns what was sealed as its headers say, at one of these queues and ids. Fails with the words for people.
pub fn decoded<'a, 'h>(
    keys: &Keys,
    header: impl Fn(&str) -> Option<&'h [u8]>,
    places: &[[Vec<u8>; 2]],
    stored: &'a [u8],
) -> Result<Cow<'a, [u8]>, String> {
    let packed = match header(KEY) {
        Some(key) => {
            let mut tried = places
                .iter()
                .map(|[queue, id]| keys.open(key, [queue, id, b"payload"], stored));
            let mut opened = tried.next().unwrap_or_else(|| Err(String::new()));
            while let (Err(_), Some(next)) = (&opened, tried.next()) {
                opened = next;
            }
            Cow::Owned(opened?)
        }
        None => Cow::Borrowed(stored),
    };
    match header(ENCODING) {
        None => Ok(packed),
        Some(b"zstd") => unpacked(&packed).map(Cow::Owned),
        Some(other) => Err(format!("compressed by {}", printable(other))),
    }
}

/// Returns a message whose note and result are as its client gave them, or have words in place of what is encrypted.
pub fn texts(queue: &[u8], message: &Record) -> Record {
    let keys = KEYS.get_or_init(Keys::default);
    let fields = ["note", "result"].into_iter();
    fields.fold(message.clone(), |clear, field| {
        let text = message.bytes(field).unwrap_or_default();
        match envelope::opened(keys, queue, message, text) {
            Cow::Owned(text) => clear.with(field, Value::BulkString(text)),
            Cow::Borrowed(_) => clear,
        }
    })
}

fn unpacked(packed: &[u8]) -> Result<Vec<u8>, String> {
    let size = packed.len();
    let broken = || format!("compressed by zstd, {size} bytes, which cannot be unpacked");
    let mut plain = Vec::new();
    let decoder = StreamingDecoder::new(packed).map_err(|_| broken())?;
    let mut limited = decoder.take(UNPACKED + 1);
    limited.read_to_end(&mut plain).map_err(|_| broken())?;
    match plain.len() as u64 > UNPACKED {
        true => Err(format!(
            "compressed by zstd, {size} bytes, which are more than {UNPACKED} unpacked"
        )),
        false => Ok(plain),
    }
}

/// Returns the payload for one line of a list.
pub fn line(queue: &[u8], message: &Record) -> String {
    match payload(queue, message) {
        Ok(bytes) => printable(bytes.get(..4096).unwrap_or(&bytes)),
        Err(words) => format!("({words})"),
    }
}

/// Returns the headers of a message for people, those that are encrypted by their own names.
pub fn headers(queue: &[u8], message: &Record) -> Vec<(String, String)> {
    headers_by(KEYS.get_or_init(Keys::default), queue, message)
}

fn headers_by(keys: &Keys, queue: &[u8], message: &Record) -> Vec<(String, String)> {
    let Value::Map(pairs) = message.get("headers") else {
        return Vec::new();
    };
    let key = header(message, KEY).unwrap_or_default();
    let id = message.bytes("id").unwrap_or_default();
    let read = pairs.iter().map(|(field, value)| {
        let (field, value) = (
            bytes(field).unwrap_or_default(),
            bytes(value).unwrap_or_default(),
        );
        let Some(name) = field.strip_prefix(SEALED.as_bytes()) else {
            return (printable(field), printable(value));
        };
        let part = [b"header:", name].concat();
        let opened = match BASE64_STANDARD.decode(value) {
            Ok(sealed) => keys.open(key, [queue, id, &part], &sealed),
            Err(_) => Err("encrypted, and no base64".to_owned()),
        };
        let text = match opened {
            Ok(text) => printable(&text),
            Err(words) => format!("({words})"),
        };
        (printable(name), text)
    });
    read.collect()
}

/// Returns whether the payload that the server has is another one than the one that was sent.
pub fn is_coded(message: &Record) -> bool {
    let names = [KEY, ENCODING, OFFLOAD];
    names.iter().any(|name| header(message, name).is_some()) || has_envelope(message)
}

/// Returns whether a message can be read only with its own id: a copy of it would be rejected, or lose its payload.
pub fn is_bound(message: &Record) -> bool {
    let names = [KEY, OFFLOAD];
    names.iter().any(|name| header(message, name).is_some()) || has_envelope(message)
}

fn has_envelope(message: &Record) -> bool {
    envelope::is_in(message.bytes("payload").unwrap_or_default())
}

fn header<'a>(message: &'a Record, name: &str) -> Option<&'a [u8]> {
    let Value::Map(pairs) = message.get("headers") else {
        return None;
    };
    let found = pairs
        .iter()
        .find(|(field, _)| bytes(field) == Some(name.as_bytes()));
    found.and_then(|(_, value)| bytes(value))
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;
    use crate::model::record::record;

    fn keys(file: &Json, wanted: &[&str]) -> Keys {
        let all = file["keys"].as_object().unwrap().iter();
        let some = all.filter(|(id, _)| wanted.contains(&id.as_str()));
        Keys(
            some.map(|(id, key)| {
                let key = BASE64_STANDARD.decode(key.as_str().unwrap()).unwrap();
                let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
                (id.as_bytes().to_vec(), key)
            })
            .collect(),
        )
    }

    fn message(id: &str, payload: &[u8], fields: &[(&str, &str)]) -> Record {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let pairs = fields.iter().map(|(name, value)| (text(name), text(value)));
        record(&[
            ("id", text(id)),
            ("payload", Value::BulkString(payload.to_vec())),
            ("headers", Value::Map(pairs.collect())),
        ])
    }

    /// The examples that all clients read.
    #[test]
    fn what_the_clients_encrypt_is_read_with_the_keys_and_named_without() {
        let file: Json =
            serde_json::from_str(include_str!("../../../tests/conformance/secrets.json")).unwrap();
        let (all, none) = (keys(&file, &["2026", "2025"]), Keys::default());
        let mut count = 0;
        for case in file["cases"].as_array().unwrap() {
            let text = |name: &str| case[name].as_str().unwrap().to_owned();
            let binary = |name: &str| BASE64_STANDARD.decode(text(name)).unwrap();
            let fields = case["fields"].as_object().unwrap();
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
                .collect();
            let (queue, id) = (text("queue"), text("id"));
            let sealed = message(&id, &binary("sealed"), &fields);
            let opened = payload_by(&all, queue.as_bytes(), &sealed);
            assert_eq!(
                opened.as_deref(),
                Ok(binary("payload").as_slice()),
                "{case}"
            );
            let key = case["fields"]["dq-key"].as_str().unwrap();
            let words = format!("encrypted, key {key}");
            assert_eq!(
                payload_by(&none, queue.as_bytes(), &sealed),
                Err(words.clone())
            );
            let elsewhere = payload_by(&all, b"another", &sealed).unwrap_err();
            assert!(elsewhere.starts_with(&words) && elsewhere.contains("not what was sent"));
            for (name, value) in case["headers"].as_object().unwrap() {
                let pair = (name.clone(), value.as_str().unwrap().to_owned());
                assert!(
                    headers_by(&all, queue.as_bytes(), &sealed).contains(&pair),
                    "{case}"
                );
                if fields
                    .iter()
                    .any(|(field, _)| *field == format!("{SEALED}{name}"))
                {
                    let hidden = (name.clone(), format!("({words})"));
                    assert!(headers_by(&none, queue.as_bytes(), &sealed).contains(&hidden));
                }
            }
            count += 1;
        }
        assert!(count > 2);
    }

    #[test]
    fn what_is_packed_is_unpacked_up_to_a_bound() {
        let zstd = [(ENCODING, "zstd")];
        let read = |payload: &[u8], fields: &[(&str, &str)]| {
            let message = message("a", payload, fields);
            payload_by(&Keys::default(), b"q", &message).map(Cow::into_owned)
        };
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let pack = |plain: &[u8]| ruzstd::encoding::compress_to_vec(plain, level);
        let (packed, bomb) = (pack(b"hello"), pack(&vec![0; 2 << 20]));
        assert_eq!(read(&packed, &zstd), Ok(b"hello".to_vec()));
        assert!(read(&bomb, &zstd)
            .unwrap_err()
            .contains("more than 1048576 unpacked"));
        assert!(read(b"hello", &zstd)
            .unwrap_err()
            .contains("cannot be unpacked"));
        assert_eq!(
            read(b"", &[(ENCODING, "br")]),
            Err("compressed by br".to_owned())
        );
        assert_eq!(
            read(b"", &[(OFFLOAD, "q/a/1")]),
            Err("kept elsewhere, key q/a/1".to_owned())
        );
        assert_eq!(read(b"x", &[]), Ok(b"x".to_vec()));
    }

    #[test]
    fn a_file_of_keys_has_an_id_and_a_key_in_each_line() {
        let path = std::env::temp_dir().join(format!("dq-keys-{}", std::process::id()));
        std::fs::write(
            &path,
            format!("# ours\n2026 {}\n\n", BASE64_STANDARD.encode([7; 32])),
        )
        .unwrap();
        assert_eq!(Keys::read(&path).unwrap().0.len(), 1);
        for bad in ["2026", "2026 c2hvcnQ=", "2026 !"] {
            std::fs::write(&path, bad).unwrap();
            assert!(Keys::read(&path).is_err(), "{bad}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
