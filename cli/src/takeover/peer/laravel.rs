//! Laravel's queues on Redis. Its payloads stay as they are, for dq's connection of Laravel.

use serde_json::Value as Json;

use super::{beside, on, words, Names, Peer, Place, Running, Seen, State, Translation, Words};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::{clock, number, scan};
use crate::takeover::record::{Bytes, Record};

/// A Laravel with the prefix of one connection.
pub struct Laravel {
    prefix: String,
}

impl Laravel {
    /// Creates the peer. The prefix is that of the Redis connection.
    pub fn new(prefix: Option<&str>) -> Laravel {
        Laravel {
            prefix: prefix.unwrap_or_default().to_owned(),
        }
    }
}

impl Peer for Laravel {
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure> {
        let begin = format!("{}queues:", self.prefix);
        let keys = scan(source, &format!("{begin}*"))?;
        let names = keys.iter().filter_map(|key| key.strip_prefix(&begin));
        let plain = |name: &str| {
            let ends = [":delayed", ":reserved", ":notify"];
            let end = ends.iter().find_map(|end| name.strip_suffix(end));
            end.unwrap_or(name).to_owned()
        };
        let mut found: Vec<String> = names
            .map(plain)
            .filter(|name| !name.contains(":dq:"))
            .collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn stem(&self, queue: &str) -> Bytes {
        format!("{}queues:{queue}", self.prefix).into_bytes()
    }

    fn key(&self, queue: &str) -> String {
        format!("{}dq:{queue}", self.prefix)
    }

    fn look(&self, _source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        let place = |name: &str, suffix: &str, state, kind: &str, count| Place {
            name: name.to_owned(),
            state,
            keys: vec![beside(&stem, suffix)],
            words: vec![kind.to_owned()],
            count,
        };
        Ok(Seen {
            places: vec![
                // Those whose retry_after is over, which the next worker would put back.
                place("reserved", ":reserved", State::Waiting, "past", "ZCARD"),
                place("queue", "", State::Waiting, "list", "LLEN"),
                place("delayed", ":delayed", State::Delayed, "zset", "ZCARD"),
            ],
            ..Seen::default()
        })
    }

    fn claim(&self) -> &'static str {
        include_str!("../lua/laravel_claim.lua")
    }

    fn restore(&self) -> &'static str {
        include_str!("../lua/laravel_restore.lua")
    }

    fn prepare(&self, _source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure> {
        Ok(vec![words([b"DQ.CREATE", &names.key, b"NX"])])
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let payload = record.field("payload").unwrap_or_default();
        let job = read(payload)?;
        let id = id(&job).ok_or("UNKNOWN payload without an id")?;
        let mut all = words([
            b"DQ.SEND",
            &names.key,
            payload,
            b"ID",
            id.as_bytes(),
            b"RETRIES",
            b"-1",
        ]);
        if let Some(name) = job["displayName"]
            .as_str()
            .filter(|name| !name.is_empty() && name.len() <= 1024)
        {
            all.extend(words([b"TYPE", name.as_bytes()]));
        }
        if record.place == "delayed" {
            all.extend(words([b"AT", due(record).to_string().as_bytes()]));
        }
        Ok(vec![all])
    }

    fn forget(&self, _record: &Record, _names: &Names) -> Vec<Words> {
        Vec::new()
    }

    fn id(&self, record: &Record) -> Bytes {
        let job = read(record.field("payload").unwrap_or_default()).unwrap_or_default();
        id(&job).unwrap_or_default().into_bytes()
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        (None, (record.place == "delayed").then(|| due(record)))
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        let now = clock(source)? / 1000;
        let key = beside(&self.stem(queue), ":reserved");
        let count = number(
            source,
            on("ZCOUNT", &key).arg(format!("({now}")).arg("+inf"),
        )?;
        Ok(Running {
            count: count.unsigned_abs(),
            ..Running::default()
        })
    }
}

fn read(payload: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(payload).map_err(|_| "UNKNOWN payload that is no JSON".to_owned())
}

fn id(job: &Json) -> Option<String> {
    let id = job["id"].as_str().or(job["uuid"].as_str())?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// Returns when a job is due, Unix ms: its score has whole seconds.
fn due(record: &Record) -> u64 {
    (record.score() * 1000.0).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::record::tests::packed;

    #[test]
    fn a_payload_goes_as_it_is() {
        let names = Names {
            queue: "default".to_owned(),
            key: b"dq:default".to_vec(),
            now: 0,
        };
        let payload = r#"{"uuid":"u","displayName":"App\\Jobs\\Mail","id":"abc","attempts":2}"#;
        let sent = |place: &str, payload: &str| {
            let record = packed(place, "1800000000", "", &[("payload", payload)], &[]);
            let commands = Laravel::new(None).translate(&record, &names)?.concat();
            let words: Vec<_> = commands
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            Ok::<_, String>(words.join(" "))
        };
        assert_eq!(
            sent("delayed", payload).unwrap(),
            format!("DQ.SEND dq:default {payload} ID abc RETRIES -1 TYPE App\\Jobs\\Mail AT 1800000000000")
        );
        assert!(sent("queue", payload)
            .unwrap()
            .ends_with("TYPE App\\Jobs\\Mail"));
        assert!(sent("queue", "{}").unwrap_err().starts_with("UNKNOWN"));
        assert!(sent("queue", "x").unwrap_err().starts_with("UNKNOWN"));
    }
}
