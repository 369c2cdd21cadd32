//! Celery 5 on Redis. Its envelopes stay as they are, for kombu's transport of dq.

use chrono::{DateTime, NaiveDateTime, TimeDelta};
use redis::Value;
use serde_json::Value as Json;

use super::{beside, on, words, Names, Peer, Place, Running, Seen, State, Translation, Words};
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::server::Server;
use crate::takeover::read::{scan, text, texts};
use crate::takeover::record::{Bytes, Record};
use crate::text::plural;

/// The messages of one page of those that workers have.
const PAGE: u64 = 500;

/// The longest TYPE, bytes.
const TYPE: usize = 1024;

/// What a Celery is configured with that no key tells.
#[derive(Debug, Clone)]
pub struct Options {
    /// `sep` of kombu.
    pub sep: String,
    /// `priority_steps` of kombu.
    pub steps: Vec<u8>,
    /// `visibility_timeout` of kombu, seconds.
    pub visibility: u64,
}

/// A Celery of one `global_keyprefix`.
pub struct Celery {
    prefix: String,
    options: Options,
}

impl Celery {
    /// Creates the peer.
    pub fn new(prefix: Option<&str>, options: Options) -> Celery {
        Celery {
            prefix: prefix.unwrap_or_default().to_owned(),
            options,
        }
    }
}

impl Peer for Celery {
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        for key in scan(source, &format!("{}_kombu.binding.*", self.prefix))? {
            for binding in texts(source.call(&on("SMEMBERS", key.as_bytes()))?) {
                let binding = String::from_utf8_lossy(&binding).into_owned();
                let name = binding
                    .rsplit(&self.options.sep)
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                let is_internal = name.ends_with(".pidbox")
                    || name.starts_with("celeryev")
                    || name.contains("reply.");
                if !name.is_empty() && !is_internal {
                    found.push(name);
                }
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn stem(&self, queue: &str) -> Bytes {
        format!("{}{queue}", self.prefix).into_bytes()
    }

    fn key(&self, queue: &str) -> String {
        format!("{}{queue}", self.prefix)
    }

    fn look(&self, _source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        let place = |step: &u8| {
            let suffix = match step {
                0 => String::new(),
                step => format!("{}{step}", self.options.sep),
            };
            Place {
                name: if *step == 0 {
                    "queue".to_owned()
                } else {
                    suffix.clone()
                },
                state: State::Waiting,
                keys: vec![beside(&stem, &suffix), stem.clone()],
                words: Vec::new(),
                count: "LLEN",
            }
        };
        Ok(Seen {
            places: self.options.steps.iter().map(place).collect(),
            ..Seen::default()
        })
    }

    fn claim(&self) -> &'static str {
        include_str!("../lua/celery_claim.lua")
    }

    fn restore(&self) -> &'static str {
        include_str!("../lua/celery_restore.lua")
    }

    fn prepare(&self, _source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure> {
        Ok(vec![words([
            b"DQ.CREATE",
            &names.key,
            b"NX",
            b"DEADRETAIN",
            b"604800000",
            b"DEADCOUNT",
            b"10000",
        ])])
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let raw = record.field("message").unwrap_or_default();
        let envelope = read(raw)?;
        let (headers, properties) = (&envelope["headers"], &envelope["properties"]);
        let tag = tag(&envelope).ok_or("UNKNOWN message without a delivery_tag")?;
        let Some(task) = headers["task"].as_str() else {
            return Err("UNKNOWN message without headers.task, as of protocol 1".to_owned());
        };
        let mut all = words([b"DQ.SEND", &names.key, raw, b"ID", tag.as_bytes()]);
        all.extend(words([b"RETRIES", b"-1", b"MAXTIMEOUTS", b"3"]));
        match properties["priority"].as_i64() {
            Some(0) | None => {}
            Some(priority) => all.extend(words([
                b"PRIORITY",
                priority.clamp(-128, 127).to_string().as_bytes(),
            ])),
        }
        let eta = headers["eta"].as_str().and_then(moment);
        if let Some(eta) = eta {
            all.extend(words([b"AT", eta.to_string().as_bytes()]));
        }
        // The time is told; of the milliseconds beside it nobody knows from when on they count.
        if let Some(expires) = headers["expires"].as_str().and_then(moment) {
            all.extend(words([b"EXPIREAT", expires.max(1).to_string().as_bytes()]));
        }
        if !task.is_empty() && task.len() <= TYPE {
            all.extend(words([b"TYPE", task.as_bytes()]));
        }
        Ok(vec![all])
    }

    fn forget(&self, _record: &Record, _names: &Names) -> Vec<Words> {
        Vec::new()
    }

    fn id(&self, record: &Record) -> Bytes {
        let envelope = read(record.field("message").unwrap_or_default());
        let tag = envelope.ok().and_then(|envelope| tag(&envelope));
        tag.unwrap_or_default().into_bytes()
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        let envelope = read(record.field("message").unwrap_or_default()).unwrap_or_default();
        (None, envelope["headers"]["eta"].as_str().and_then(moment))
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        let key = |name: &str| format!("{}{name}", self.prefix).into_bytes();
        let (mut held, mut etas) = (Vec::new(), 0);
        let mut cursor = b"0".to_vec();
        loop {
            let reply = source.call(
                on("HSCAN", &key("unacked"))
                    .arg(&cursor)
                    .arg("COUNT")
                    .arg(PAGE),
            )?;
            let Value::Array(parts) = reply else {
                return Err(unexpected());
            };
            let [next, page] = <[Value; 2]>::try_from(parts).map_err(|_| unexpected())?;
            for pair in texts(page).chunks_exact(2) {
                let (Some(tag), Some(value)) = (pair.first(), pair.get(1)) else {
                    continue;
                };
                let value = read(value).unwrap_or_default();
                if value[2].as_str() == Some(queue) {
                    held.push(String::from_utf8_lossy(tag).into_owned());
                    etas += u64::from(value[0]["headers"]["eta"].is_string());
                }
            }
            cursor = text(next).unwrap_or_default();
            if cursor == b"0" || cursor.is_empty() {
                break;
            }
        }
        let now = crate::takeover::read::clock(source)? / 1000;
        let over = now.saturating_sub(self.options.visibility);
        let late = texts(
            source.call(
                on("ZRANGEBYSCORE", &key("unacked_index"))
                    .arg("-inf")
                    .arg(over),
            )?,
        );
        let late: Vec<String> = late
            .iter()
            .map(|tag| String::from_utf8_lossy(tag).into_owned())
            .collect();
        let remark = (etas > 0).then(|| {
            format!(
                "{queue}: workers hold {} with an eta in their memory until it is due: stop the old workers (SIGTERM), and they give \
                 them back",
                plural(etas, "task")
            )
        });
        Ok(Running {
            count: held.len() as u64,
            lost: held.into_iter().filter(|tag| late.contains(tag)).collect(),
            remark,
        })
    }
}

fn read(raw: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(raw).map_err(|_| "UNKNOWN message that is no JSON".to_owned())
}

fn tag(envelope: &Json) -> Option<String> {
    let tag = envelope["properties"]["delivery_tag"].as_str()?;
    (!tag.is_empty()).then(|| tag.to_owned())
}

/// Reads a time as Python writes it, Unix ms, never early. Like Celery it takes one without a zone for UTC.
fn moment(text: &str) -> Option<u64> {
    let time = DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .or_else(|_| {
            NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.and_utc())
        })
        .ok()?;
    let up = time.checked_add_signed(TimeDelta::nanoseconds(999_999))?;
    u64::try_from(up.timestamp_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::record::tests::packed;

    fn celery() -> Celery {
        let options = Options {
            sep: "\u{6}\u{16}".to_owned(),
            steps: vec![0, 3, 6, 9],
            visibility: 3600,
        };
        Celery::new(None, options)
    }

    fn translated(message: &str) -> Result<String, String> {
        let names = Names {
            queue: "celery".to_owned(),
            key: b"celery".to_vec(),
            now: 0,
        };
        let commands = celery().translate(
            &packed("queue", "", "", &[("message", message)], &[]),
            &names,
        )?;
        let words: Vec<_> = commands
            .concat()
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        Ok(words.join(" "))
    }

    #[test]
    fn an_envelope_goes_as_it_is() {
        let message = r#"{"body": "W10=", "headers": {"task": "t.add", "eta": "2027-01-15T08:00:00.0001+00:00", "expires": "2027-01-15T09:00:00"}, "properties": {"priority": 6, "delivery_tag": "tag"}}"#;
        assert_eq!(
            translated(message).unwrap(),
            format!("DQ.SEND celery {message} ID tag RETRIES -1 MAXTIMEOUTS 3 PRIORITY 6 AT 1800000000001 EXPIREAT 1800003600000 TYPE t.add")
        );
    }

    #[test]
    fn what_is_no_task_of_protocol_2_stays() {
        for message in [
            "x",
            "{}",
            r#"{"headers":{},"properties":{"delivery_tag":"a"}}"#,
            r#"{"headers":{"task":"t"},"properties":{}}"#,
        ] {
            assert!(
                translated(message).unwrap_err().starts_with("UNKNOWN"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_time_is_never_early() {
        assert_eq!(moment("1970-01-01T00:00:01"), Some(1000));
        assert_eq!(moment("1970-01-01T01:00:01.000001+01:00"), Some(1001));
        assert_eq!(moment("tomorrow"), None);
    }
}
