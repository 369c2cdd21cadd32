//! Dramatiq on Redis. Its messages stay as they are, for dq's broker.

use serde_json::Value as Json;

use super::{kind_of, named, on, words};
use super::{Names, Peer, Place, Row, Running, Seen, State, Translation};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::{clock, number, scan, texts};
use crate::takeover::record::{Bytes, Record};
use crate::text::plural;

const ROW: Row = Row {
    sep: ".",
    next: "head",
    lua: include_str!("../lua/dramatiq.lua"),
    options: "DEADRETAIN 604800000",
};

/// How long after its last heartbeat a worker is lost, ms.
const LOST_AFTER: u64 = 60_000;

/// The most bytes of a traceback. The last ones say most.
const TRACE: usize = 60_000;

/// A Dramatiq of one namespace.
pub struct Dramatiq {
    namespace: String,
}

impl Dramatiq {
    /// Creates the peer. The namespace is `dramatiq` by default.
    pub fn new(namespace: Option<&str>) -> Dramatiq {
        Dramatiq {
            namespace: namespace.unwrap_or("dramatiq").to_owned(),
        }
    }
}

impl Peer for Dramatiq {
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure> {
        let begin = format!("{}:", self.namespace);
        let keys = scan(source, &format!("{begin}*.msgs"))?;
        named(&keys, |key| {
            let name = key.strip_prefix(&begin)?.strip_suffix(".msgs")?;
            let end = [".DQ", ".XQ"].iter().find_map(|end| name.strip_suffix(end));
            Some(end.unwrap_or(name))
        })
    }

    fn stem(&self, queue: &str) -> Bytes {
        format!("{}:{queue}", self.namespace).into_bytes()
    }

    fn row(&self) -> &'static Row {
        &ROW
    }

    fn look(&self, _source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        Ok(Seen {
            places: vec![
                ROW.place(&stem, "XQ", State::Dead, "zset"),
                ROW.place(&stem, "queue", State::Waiting, "list"),
                ROW.place(&stem, "DQ", State::Delayed, "list"),
                Place {
                    key: format!("{}:__heartbeats__", self.namespace).into_bytes(),
                    ..ROW.place(&stem, "acks", State::Running, "lost")
                },
            ],
            ..Seen::default()
        })
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let raw = record.field("message").unwrap_or_default();
        let mut message: Json = serde_json::from_slice(raw).map_err(|_| {
            "UNKNOWN message that is not JSON, Dramatiq's default encoder".to_owned()
        })?;
        let actor = message["actor_name"].as_str().map(str::to_owned);
        let (Some(actor), Some(queue), true) = (
            actor,
            message["queue_name"].as_str(),
            message["options"].is_object(),
        ) else {
            return Err("UNKNOWN message".to_owned());
        };
        let eta = message["options"]["eta"].as_u64();
        let is_delayed = record.place == "DQ" || record.place == "acks" && queue.ends_with(".DQ");
        let mut payload = raw.to_vec();
        if is_delayed {
            // Its worker would send it anew under the name of its queue when it is due.
            message["queue_name"] = queue.strip_suffix(".DQ").unwrap_or(queue).into();
            if let Some(options) = message["options"].as_object_mut() {
                options.shift_remove("eta");
            }
            payload = message.to_string().into_bytes();
        }
        let mut all = match record.place.as_str() {
            "XQ" => {
                let trace = message["options"]["traceback"]
                    .as_str()
                    .unwrap_or("dead in Dramatiq");
                let mut from = trace.len().saturating_sub(TRACE);
                while !trace.is_char_boundary(from) {
                    from += 1;
                }
                let trace = trace.get(from..).unwrap_or_default();
                words([
                    b"DEAD",
                    &payload,
                    &[b":dead:", record.id.as_slice()].concat(),
                    trace.as_bytes(),
                ])
            }
            _ => words([b"DQ.SEND", &names.key, &payload]),
        };
        all.extend(words([
            b"ID",
            &record.id,
            b"RETRIES",
            b"-1",
            b"MAXTIMEOUTS",
            b"3",
        ]));
        all.extend(kind_of(&actor));
        if let Some(eta) = eta.filter(|_| is_delayed) {
            all.extend(words([b"AT", eta.to_string().as_bytes()]));
        }
        Ok(vec![all])
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        let message: Json =
            serde_json::from_slice(record.field("message").unwrap_or_default()).unwrap_or_default();
        let due = message["options"]["eta"]
            .as_u64()
            .filter(|_| record.place == "DQ");
        (message["message_timestamp"].as_u64(), due)
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        let key = |rest: &str| format!("{}:{rest}", self.namespace).into_bytes();
        let now = clock(source)?;
        let workers = texts(source.call(on("ZRANGE", &key("__heartbeats__")).arg(0).arg(-1))?);
        let over = now.saturating_sub(LOST_AFTER);
        let dead = texts(
            source.call(
                on("ZRANGEBYSCORE", &key("__heartbeats__"))
                    .arg("-inf")
                    .arg(over),
            )?,
        );
        let (mut running, mut delayed) = (Running::default(), 0);
        for worker in workers {
            let id = String::from_utf8_lossy(&worker).into_owned();
            for name in [queue.to_owned(), format!("{queue}.DQ")] {
                let acks = key(&format!("__acks__.{id}.{name}"));
                let count = number(source, &on("SCARD", &acks))?.unsigned_abs();
                running.count += count;
                if dead.contains(&worker) {
                    running
                        .lost
                        .extend(texts(source.call(&on("SMEMBERS", &acks))?));
                } else if name != queue {
                    delayed += count;
                }
            }
        }
        running.since = over;
        running.remark = (delayed > 0).then(|| {
            format!(
                "{queue}: workers hold {} in their memory until they are due: stop the old workers (SIGTERM), and they give them back",
                plural(delayed, "delayed message")
            )
        });
        Ok(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::record::tests::packed;

    fn translated(place: &str, message: &str) -> Result<String, String> {
        let record = packed(place, "", "r1", &[("message", message)], &[]);
        crate::takeover::peer::tests::translated(&Dramatiq::new(None), &record)
            .map(|all| all.concat())
    }

    #[test]
    fn a_delayed_message_runs_in_its_own_queue() {
        let message = r#"{"queue_name":"default.DQ","actor_name":"add","args":[1.50],"options":{"eta":1800000000000,"redis_message_id":"r1"},"message_id":"m"}"#;
        assert_eq!(
            translated("DQ", message).unwrap(),
            r#"DQ.SEND dramatiq:default {"queue_name":"default","actor_name":"add","args":[1.50],"options":{"redis_message_id":"r1"},"message_id":"m"} ID r1 RETRIES -1 MAXTIMEOUTS 3 TYPE add AT 1800000000000"#
        );
    }

    #[test]
    fn others_go_as_they_are() {
        let message =
            r#"{"queue_name":"default","actor_name":"add","options":{"traceback":"no","eta":5}}"#;
        assert_eq!(
            translated("queue", message).unwrap(),
            format!("DQ.SEND dramatiq:default {message} ID r1 RETRIES -1 MAXTIMEOUTS 3 TYPE add")
        );
        assert_eq!(
            translated("XQ", message).unwrap(),
            format!("DEAD {message} :dead:r1 no ID r1 RETRIES -1 MAXTIMEOUTS 3 TYPE add")
        );
        for message in ["x", "{}", r#"{"actor_name":"a","queue_name":"q"}"#] {
            assert!(translated("queue", message)
                .unwrap_err()
                .starts_with("UNKNOWN"));
        }
    }
}
