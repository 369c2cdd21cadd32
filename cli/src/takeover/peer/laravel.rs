//! Laravel's queues on Redis. Its payloads stay as they are, for dq's connection of Laravel.

use serde_json::Value as Json;

use super::{beside, held, kind_of, named, second, words};
use super::{Names, Peer, Row, Running, Seen, State, Translation};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::scan;
use crate::takeover::record::{Bytes, Record};

const ROW: Row = Row {
    sep: ":",
    next: "head",
    lua: include_str!("../lua/laravel.lua"),
    options: "",
};

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
        named(&keys, |key| {
            let name = key.strip_prefix(&begin)?;
            let ends = [":delayed", ":reserved", ":notify"];
            let end = ends.iter().find_map(|end| name.strip_suffix(end));
            Some(end.unwrap_or(name)).filter(|name| !name.contains(":dq:"))
        })
    }

    fn stem(&self, queue: &str) -> Bytes {
        format!("{}queues:{queue}", self.prefix).into_bytes()
    }

    fn row(&self) -> &'static Row {
        &ROW
    }

    fn key(&self, queue: &str) -> String {
        format!("{}dq:{queue}", self.prefix)
    }

    fn look(&self, _source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        Ok(Seen {
            places: vec![
                // Those whose retry_after is over, which the next worker would put back.
                ROW.place(&stem, "reserved", State::Running, "late"),
                ROW.place(&stem, "queue", State::Waiting, "list"),
                ROW.place(&stem, "delayed", State::Delayed, "zset"),
            ],
            ..Seen::default()
        })
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let payload = record.field("body").unwrap_or_default();
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
        all.extend(kind_of(job["displayName"].as_str().unwrap_or_default()));
        if record.place == "delayed" {
            all.extend(words([b"AT", second(record).to_string().as_bytes()]));
        }
        Ok(vec![all])
    }

    fn id(&self, record: &Record) -> Bytes {
        let job = read(record.field("body").unwrap_or_default()).unwrap_or_default();
        id(&job).unwrap_or_default().into_bytes()
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        (None, (record.place == "delayed").then(|| second(record)))
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        let mut running = held(source, &beside(&self.stem(queue), ":reserved"))?;
        for payload in &mut running.lost {
            let job = read(payload).unwrap_or_default();
            *payload = id(&job).unwrap_or_default().into_bytes();
        }
        Ok(running)
    }
}

fn read(payload: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(payload).map_err(|_| "UNKNOWN payload that is no JSON".to_owned())
}

fn id(job: &Json) -> Option<String> {
    let id = job["id"].as_str().or(job["uuid"].as_str())?;
    (!id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::peer::tests::translated;
    use crate::takeover::record::tests::packed;

    #[test]
    fn a_payload_goes_as_it_is() {
        let payload = r#"{"uuid":"u","displayName":"App\\Jobs\\Mail","id":"abc","attempts":2}"#;
        let sent = |place: &str, payload: &str| {
            let record = packed(place, "1800000000", "", &[("body", payload)], &[]);
            translated(&Laravel::new(None), &record).map(|all| all.concat())
        };
        let all = format!("DQ.SEND dq:default {payload} ID abc RETRIES -1 TYPE App\\Jobs\\Mail");
        assert_eq!(sent("queue", payload).unwrap(), all);
        let later = format!("{all} AT 1800000000000");
        assert_eq!(sent("delayed", payload).unwrap(), later);
        assert!(sent("queue", "{}").unwrap_err().starts_with("UNKNOWN"));
        assert!(sent("queue", "x").unwrap_err().starts_with("UNKNOWN"));
    }
}
