//! `dq export jsonl`: one line for the queue, with its options and schedules, one for each message, and one for the end, with
//! a digest. Bytes that are no text are an object `{"base64": ...}`, wherever they are.

use std::io::{stdout, BufWriter, Write};

use base64::prelude::{Engine, BASE64_STANDARD};
use redis::Value;
use ring::digest::{digest, SHA256};
use rustix::fs::{fdatasync, fstat, FileType};
use serde_json::{json, Map, Value as Json};

use super::args::ExportArgs;
use super::fault::at_source;
use super::ledger::new_id;
use super::read::{clock, number};
use super::script::Script;
use crate::failure::Failure;
use crate::model::record::{bytes, Record};
use crate::model::settings::server_words;
use crate::output::Output;
use crate::server::{verb, Server};

/// The states of messages that have not ended, in the order in which they are written.
const STATES: [&str; 7] = [
    "ready", "blocked", "delayed", "retry", "held", "running", "dead",
];

/// The messages of one call.
const PAGE: u64 = 200;

/// The fields that an import gives a message again.
const KEPT: [&str; 11] = [
    "id",
    "payload",
    "group",
    "score",
    "priority",
    "type",
    "headers",
    "retries-left",
    "batch",
    "limits",
    "cost",
];

/// Writes the queues.
pub fn run(server: &mut Server, args: &ExportArgs, out: &mut Output) -> Result<(), Failure> {
    let mut to = BufWriter::with_capacity(1 << 16, &mut out.to);
    let mut outs = Script::new(&[include_str!("lua/purge.lua"), include_str!("lua/out.lua")]);
    if args.delete {
        let file = fstat(stdout()).map(|file| FileType::from_raw_mode(file.st_mode));
        if file != Ok(FileType::RegularFile) {
            return Err(Failure::mistake(
                "--delete needs a file as the output, as in `dq export jsonl ... --delete > FILE`",
            ));
        }
        outs.load(server).map_err(at_source)?;
    }
    let mut stayed = 0;
    let states: Vec<&str> = match args.state.is_empty() {
        true => STATES.to_vec(),
        false => args.state.iter().map(String::as_str).collect(),
    };
    for queue in &args.queue {
        let key = queue.as_bytes();
        let info = Record::of(server.call(&verb("DQ.INFO", key)).map_err(at_source)?)?;
        let schedules = server.call(&verb("DQ.SCHEDULES", key)).map_err(at_source)?;
        let head = json!({
            "dq-export": 1, "id": new_id()?, "queue": queue, "at": clock(server)?, "options": server_words(&info),
            "paused": info.flag("paused"), "schedules": of(&schedules),
        });
        writeln!(to, "{head}")?;
        let mut sum = Sum::default();
        for state in &states {
            let mut cursor = Some(b"0".to_vec());
            while let Some(at) = cursor {
                let mut cmd = verb("DQ.LIST", key);
                cmd.arg(*state).arg("CURSOR").arg(at).arg("COUNT").arg(PAGE);
                let (next, records) = Record::page(server.call(&cmd).map_err(at_source)?)?;
                cursor = next;
                for record in &records {
                    let message = map(record.fields());
                    sum.add(&message);
                    writeln!(to, "{message}")?;
                }
                if args.delete && !records.is_empty() {
                    to.flush()?;
                    fdatasync(stdout()).map_err(std::io::Error::from)?;
                    let mut cmd = outs.call(&[key]);
                    for record in &records {
                        let word = |field| record.bytes(field).unwrap_or_default();
                        cmd.arg(word("id"))
                            .arg(record.count("attempt"))
                            .arg(word("payload"));
                    }
                    stayed += number(server, &cmd).map_err(at_source)?.unsigned_abs();
                }
            }
        }
        writeln!(to, "{}", sum.line())?;
        to.flush()?;
        eprintln!("dq: {queue}: {} messages, digest {}", sum.count, sum.text());
    }
    if stayed > 0 {
        eprintln!("dq: {stayed} of them run, or were delivered or changed meanwhile: their lines are written, and they are still there");
        return Err(Failure::Stayed(stayed));
    }
    Ok(())
}

/// The digest of messages: what an import of them gives again, and the order of those that are ready.
#[derive(Debug, Default)]
pub struct Sum {
    /// The number of messages.
    pub count: u64,
    ready: u64,
    parts: [u64; 4],
}

impl Sum {
    /// Adds a message.
    pub fn add(&mut self, message: &Json) {
        self.count += 1;
        let state = match message["state"].as_str().unwrap_or_default() {
            "retry" => "delayed",
            "blocked" => "ready",
            state => state,
        };
        // A dead message is in a group of its own after an import.
        let is_kept = |field: &str| state != "dead" || !matches!(field, "group" | "score");
        let words: Vec<&Json> = KEPT
            .iter()
            .filter(|field| is_kept(field))
            .map(|field| &message[*field])
            .collect();
        let place = match state {
            "delayed" => message["due-at"].clone(),
            "ready" if message["state"] == "ready" && message["group"].is_null() => {
                self.ready += 1;
                json!(self.ready)
            }
            "dead" => message["error"].clone(),
            _ => Json::Null,
        };
        let text = json!([state, place, words]).to_string();
        let hash = digest(&SHA256, text.as_bytes());
        for (part, bytes) in self.parts.iter_mut().zip(hash.as_ref().chunks_exact(8)) {
            let bytes = <[u8; 8]>::try_from(bytes).unwrap_or_default();
            *part = part.wrapping_add(u64::from_be_bytes(bytes));
        }
    }

    /// Returns the digest.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .map(|part| format!("{part:016x}"))
            .collect()
    }

    /// Returns the last line of a queue.
    pub fn line(&self) -> Json {
        json!({ "end": self.count, "digest": self.text() })
    }
}

/// Returns the JSON of a reply, from which its bytes can be read again.
fn of(value: &Value) -> Json {
    match value {
        Value::Array(items) | Value::Set(items) => items.iter().map(of).collect(),
        Value::Map(pairs) => map(pairs),
        other => match bytes(other).map(std::str::from_utf8) {
            Some(Err(_)) => {
                json!({ "base64": BASE64_STANDARD.encode(bytes(other).unwrap_or_default()) })
            }
            _ => crate::json::of(other),
        },
    }
}

/// Returns the JSON of a map. One whose fields are no texts is a list of pairs.
fn map(pairs: &[(Value, Value)]) -> Json {
    let name = |field: &Value| match of(field) {
        Json::String(text) => Some(text),
        _ => None,
    };
    let named: Option<Map<String, Json>> = pairs
        .iter()
        .map(|(field, value)| Some((name(field)?, of(value))))
        .collect();
    match named {
        Some(fields) => Json::Object(fields),
        None => pairs
            .iter()
            .map(|(field, value)| json!([of(field), of(value)]))
            .collect(),
    }
}

/// Reads bytes that [`of`] has written. `None` for null.
pub fn bytes_of(value: &Json) -> Result<Option<Vec<u8>>, String> {
    match value {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.clone().into_bytes())),
        Json::Number(number) => Ok(Some(number.to_string().into_bytes())),
        Json::Object(fields) => match fields.get("base64") {
            Some(Json::String(text)) if fields.len() == 1 => BASE64_STANDARD
                .decode(text)
                .map(Some)
                .map_err(|_| "wrong base64".to_owned()),
            _ => Err("neither text nor base64".to_owned()),
        },
        _ => Err("neither text nor base64".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [&b"plain"[..], "é".as_bytes(), b"\xff\x00", b""] {
            let value = of(&Value::BulkString(bytes.to_vec()));
            assert_eq!(bytes_of(&value), Ok(Some(bytes.to_vec())), "{value}");
        }
        assert!(bytes_of(&json!({ "base64": "!" })).is_err());
        assert!(bytes_of(&json!([1])).is_err());
    }

    #[test]
    fn the_digest_knows_the_order_of_ready_messages_and_nothing_of_times() {
        let message = |id: &str, sent: u64| json!({ "id": id, "state": "ready", "sent-at": sent, "payload": "x" });
        let sum = |messages: &[Json]| {
            let mut sum = Sum::default();
            messages.iter().for_each(|message| sum.add(message));
            sum.text()
        };
        let (a, b) = (message("a", 1), message("b", 2));
        assert_ne!(sum(&[a.clone(), b.clone()]), sum(&[b.clone(), a.clone()]));
        assert_eq!(sum(&[a, b.clone()]), sum(&[message("a", 7), b]));
    }
}
