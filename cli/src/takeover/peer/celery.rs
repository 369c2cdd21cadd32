//! Celery 5 on Redis. Its envelopes stay as they are, for kombu's transport of dq.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDateTime, TimeDelta};
use redis::Value;
use serde_json::Value as Json;

use super::{kind_of, on, words};
use super::{Names, Peer, Place, Row, Running, Seen, State, Translation};
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::server::Server;
use crate::takeover::read::{clock, scan, text, texts};
use crate::takeover::record::{Bytes, Record};
use crate::text::plural;

// The name of a list of a priority has the separator in it, which Celery is configured with.
const ROW: Row = Row {
    sep: "",
    next: "tail",
    lua: include_str!("../lua/celery.lua"),
    options: "DEADRETAIN 604800000 DEADCOUNT 10000",
};

/// The messages of one page of those that workers have.
const PAGE: u64 = 500;

/// The configuration of a Celery that no key tells.
#[derive(Debug, Clone)]
pub struct Options {
    /// `sep` of kombu.
    pub sep: String,
    /// `priority_steps` of kombu.
    pub steps: Vec<u8>,
    /// `visibility_timeout` of kombu, ms.
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

    fn row(&self) -> &'static Row {
        &ROW
    }

    fn look(&self, _source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        let list = |step: &u8| {
            let name = match step {
                0 => "queue".to_owned(),
                step => format!("{}{step}", self.options.sep),
            };
            ROW.place(&stem, &name, State::Waiting, "list")
        };
        let mut places: Vec<Place> = self.options.steps.iter().map(list).collect();
        places.push(Place {
            key: format!("{}unacked", self.prefix).into_bytes(),
            ..ROW.place(&stem, "unacked", State::Running, "lost")
        });
        Ok(Seen {
            places,
            ..Seen::default()
        })
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let raw = raw(record);
        let envelope = read(&raw)?;
        let (headers, properties) = (&envelope["headers"], &envelope["properties"]);
        let tag = tag(&envelope).ok_or("UNKNOWN message without a delivery_tag")?;
        let Some(task) = headers["task"].as_str() else {
            return Err("UNKNOWN message without headers.task, as of protocol 1".to_owned());
        };
        let mut all = words([b"DQ.SEND", &names.key, &raw, b"ID", tag.as_bytes()]);
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
        all.extend(kind_of(task));
        Ok(vec![all])
    }

    fn id(&self, record: &Record) -> Bytes {
        let envelope = read(&raw(record));
        let tag = envelope.ok().and_then(|envelope| tag(&envelope));
        tag.unwrap_or_default().into_bytes()
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        let envelope = read(&raw(record)).unwrap_or_default();
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
                    held.push(tag.clone());
                    etas += u64::from(value[0]["headers"]["eta"].is_string());
                }
            }
            cursor = text(next).unwrap_or_default();
            if cursor == b"0" || cursor.is_empty() {
                break;
            }
        }
        let since = clock(source)?.saturating_sub(self.options.visibility);
        let mut range = on("ZRANGEBYSCORE", &key("unacked_index"));
        range.arg("-inf").arg(since / 1000);
        let late: BTreeSet<Bytes> = texts(source.call(&range)?).into_iter().collect();
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
            since,
            remark,
        })
    }
}

/// Returns the envelope of a record. A lost one is marked as the next worker would mark it.
fn raw(record: &Record) -> Cow<'_, [u8]> {
    let body = record.field("body").unwrap_or_default();
    if record.place != "unacked" {
        return Cow::Borrowed(body);
    }
    let mut held = read(body).unwrap_or_default();
    let Some(envelope) = held.get_mut(0) else {
        return Cow::Borrowed(body);
    };
    for (part, inner) in [("headers", None), ("properties", Some("delivery_info"))] {
        let part = envelope.get_mut(part);
        let part = match inner {
            Some(inner) => part.and_then(|part| part.get_mut(inner)),
            None => part,
        };
        if let Some(Json::Object(fields)) = part {
            fields.insert("redelivered".to_owned(), true.into());
        }
    }
    Cow::Owned(envelope.to_string().into_bytes())
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
            visibility: 3_600_000,
        };
        Celery::new(None, options)
    }

    fn translated(place: &str, message: &str) -> Result<String, String> {
        let record = packed(place, "", "", &[("body", message)], &[]);
        crate::takeover::peer::tests::translated(&celery(), &record).map(|all| all.concat())
    }

    #[test]
    fn an_envelope_goes_as_it_is() {
        let message = r#"{"body": "W10=", "headers": {"task": "t.add", "eta": "2027-01-15T08:00:00.0001+00:00", "expires": "2027-01-15T09:00:00"}, "properties": {"priority": 6, "delivery_tag": "tag"}}"#;
        assert_eq!(
            translated("queue", message).unwrap(),
            format!("DQ.SEND default {message} ID tag RETRIES -1 MAXTIMEOUTS 3 PRIORITY 6 AT 1800000000001 EXPIREAT 1800003600000 TYPE t.add")
        );
    }

    #[test]
    fn a_lost_one_is_marked_as_kombu_marks_it() {
        let held = r#"[{"headers":{"task":"t"},"properties":{"delivery_tag":"a","delivery_info":{"routing_key":"q"}}},"","q"]"#;
        assert_eq!(
            translated("unacked", held).unwrap(),
            r#"DQ.SEND default {"headers":{"task":"t","redelivered":true},"properties":{"delivery_tag":"a","delivery_info":{"routing_key":"q","redelivered":true}}} ID a RETRIES -1 MAXTIMEOUTS 3 TYPE t"#
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
                translated("queue", message)
                    .unwrap_err()
                    .starts_with("UNKNOWN"),
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
