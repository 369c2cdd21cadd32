//! BullMQ 4 to 6 on Redis. Its jobs become what BullMQ 6 itself reads with dq as its backend.

mod job;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{beside, on, words, Names, Peer, Place, Running, Seen, State, Translation, Words};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::{ask, fields, number, scan, texts};
use crate::takeover::record::{Bytes, Record};
use crate::text::printable;
use job::{due, Job};

/// The newest major version whose keys are known.
const NEWEST: u64 = 6;

/// For ever, as BullMQ's backend says it: the greatest number that is exact in JavaScript.
const EVER: &str = "9007199254740991";

/// How far ahead of the old queue's ids those of new producers begin.
const AHEAD: i64 = 1_000_000_000;

/// How long the log of a job is kept at the target, ms.
const LOGS: &str = "604800000";

/// The rounds after which an active job without a lock is lost: those of two stalled checks.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// A BullMQ of one prefix.
pub struct BullMq {
    prefix: String,
    /// The active jobs that have had no lock, and since when.
    unlocked: BTreeMap<Bytes, Instant>,
}

impl BullMq {
    /// Creates the peer. The prefix is BullMQ's, `bull` by default.
    pub fn new(prefix: Option<&str>) -> BullMq {
        BullMq {
            prefix: prefix.unwrap_or("bull").to_owned(),
            unlocked: BTreeMap::new(),
        }
    }

    fn place(&self, queue: &str, name: &str, state: State) -> Place {
        let stem = self.stem(queue);
        let is_list = matches!(name, "wait" | "paused");
        Place {
            name: name.to_owned(),
            state,
            keys: vec![beside(&stem, &format!(":{name}")), stem],
            words: vec![(if is_list { "list" } else { "zset" }).to_owned()],
            count: if is_list { "LLEN" } else { "ZCARD" },
        }
    }
}

impl Peer for BullMq {
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure> {
        let begin = format!("{}:", self.prefix);
        let mut found: Vec<String> = scan(source, &format!("{begin}*:meta"))?
            .into_iter()
            .filter_map(|key| {
                let name = key.strip_prefix(&begin)?.strip_suffix(":meta")?;
                Some(name.to_owned())
            })
            .collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn stem(&self, queue: &str) -> Bytes {
        format!("{}:{queue}", self.prefix).into_bytes()
    }

    fn key(&self, queue: &str) -> String {
        format!("{}:{queue}", self.prefix)
    }

    fn look(&self, source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        let meta = fields(source, &on("HGETALL", &beside(&stem, ":meta")))?;
        let of = |name: &str| meta.get(name.as_bytes()).map(|text| printable(text));
        if let Some(version) = of("version") {
            let major = version
                .strip_prefix("bullmq:")
                .and_then(|rest| rest.split('.').next()?.parse::<u64>().ok());
            if major.is_none_or(|major| major > NEWEST) {
                return Err(Failure::mistake(format!(
                    "UNKNOWN {}: its keys are of {version}, and those up to bullmq {NEWEST} are known",
                    names.queue
                )));
            }
        }
        let mut settings = Vec::new();
        let mut set = |name: &str, value: &str, option: &[&str]| {
            let key = beside(&names.key, ":meta");
            settings.push(words([b"HSET", &key, name.as_bytes(), value.as_bytes()]));
            if !option.is_empty() {
                let mut alter = words([b"DQ.ALTER", &names.key]);
                alter.extend(option.iter().map(|word| word.as_bytes().to_vec()));
                settings.push(alter);
            }
        };
        if let Some(most) = of("concurrency") {
            set("concurrency", &most, &["MAXRUNNING", &most]);
        }
        if let (Some(max), Some(duration)) = (of("max"), of("duration")) {
            set("max", &max, &["RATE", &max, "PER", &duration]);
            set("duration", &duration, &[]);
        }
        let parents = number(source, &on("ZCARD", &beside(&stem, ":waiting-children")))?;
        let done = number(source, &on("ZCARD", &beside(&stem, ":completed")))?;
        let stays = [
            ("FLOW, a parent that waits for its children", parents),
            ("completed", done),
        ];
        let stays = stays.into_iter().filter(|(_, count)| *count > 0);
        Ok(Seen {
            places: vec![
                self.place(&names.queue, "failed", State::Dead),
                self.place(&names.queue, "paused", State::Waiting),
                self.place(&names.queue, "wait", State::Waiting),
                self.place(&names.queue, "prioritized", State::Waiting),
                self.place(&names.queue, "delayed", State::Delayed),
            ],
            pause: match meta.contains_key(b"paused".as_slice()) {
                true => vec![
                    words([b"HSET", &beside(&names.key, ":meta"), b"paused", b"1"]),
                    words([b"DQ.PAUSE", &names.key]),
                ],
                false => Vec::new(),
            },
            settings,
            stays: stays
                .map(|(why, count)| (why.to_owned(), count as u64))
                .collect(),
        })
    }

    fn claim(&self) -> &'static str {
        include_str!("../lua/bullmq_claim.lua")
    }

    fn restore(&self) -> &'static str {
        include_str!("../lua/bullmq_restore.lua")
    }

    fn prepare(&self, source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure> {
        let options = "RETRIES -1 BACKOFF FIXED 0 ONRETRY SKIP RETAINCOUNT 0 RETAIN";
        let with = |verb: &[&[u8]]| -> Words {
            let mut all: Words = verb.iter().map(|word| word.to_vec()).collect();
            all.extend(options.split(' ').map(|word| word.as_bytes().to_vec()));
            all.push(EVER.as_bytes().to_vec());
            all
        };
        let mut all = vec![
            with(&[b"DQ.CREATE", &names.key, b"NX"]),
            with(&[b"DQ.ALTER", &names.key]),
        ];
        for group in [":priority", ":lifo"] {
            all.push(words([
                b"DQ.GROUPSET",
                &names.key,
                group.as_bytes(),
                b"CONCURRENCY",
                EVER.as_bytes(),
            ]));
        }
        // Both sides number their jobs, and one number is one job.
        let last = number(source, &on("GET", &beside(&self.stem(&names.queue), ":id")))?;
        let raise = "local here = tonumber(redis.call('GET', KEYS[1]) or 0) \
            if here < tonumber(ARGV[1]) + tonumber(ARGV[2]) / 2 then \
            redis.call('SET', KEYS[1], string.format('%.0f', ARGV[1] + ARGV[2])) end return 1";
        all.push(words([
            b"EVAL",
            raise.as_bytes(),
            b"1",
            &beside(&names.key, ":id"),
            last.to_string().as_bytes(),
            AHEAD.to_string().as_bytes(),
        ]));
        Ok(all)
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let job = Job::read(record)?;
        let is_dead = record.place == "failed";
        let payload = job.payload(record, is_dead);
        let mut all = Vec::new();
        if let Some((scheduler, definition)) = job.scheduler(record)? {
            all.push(words([
                b"SCHEDULER",
                &beside(&names.key, ":repeat"),
                scheduler.as_bytes(),
                definition.to_string().as_bytes(),
            ]));
        }
        let options = job.send_words(record, names);
        let mut send = match is_dead {
            true => words([
                b"DEAD",
                payload.as_bytes(),
                &[b":dead:", record.id.as_slice()].concat(),
                record.field("failedReason").unwrap_or_default(),
            ]),
            false => words([b"DQ.SEND", &names.key, payload.as_bytes()]),
        };
        send.extend(words([b"ID", &record.id]));
        send.extend(options);
        all.push(send);
        for logs in record.extras("logs") {
            let key = beside(&names.key, &format!(":{}:logs", printable(&record.id)));
            let mut push = words([b"RPUSH", &key]);
            push.extend(logs.iter().cloned());
            all.push(push);
            all.push(words([b"PEXPIRE", &key, LOGS.as_bytes()]));
        }
        for part in record.extras("de") {
            if let [id, until] = part {
                let key = [names.key.as_slice(), b":de:", id].concat();
                all.push(words([b"SET", &key, &record.id]));
                if !until.is_empty() {
                    all.push(words([b"PEXPIREAT", &key, until]));
                }
            }
        }
        Ok(all)
    }

    fn forget(&self, record: &Record, names: &Names) -> Vec<Words> {
        let mut all = vec![words([
            b"DEL",
            &[names.key.as_slice(), b":", &record.id, b":logs"].concat(),
        ])];
        for part in record.extras("de") {
            if let Some(id) = part.first() {
                all.push(words([
                    b"DEL",
                    &[names.key.as_slice(), b":de:", id].concat(),
                ]));
            }
        }
        if let Ok(Some((scheduler, _))) = Job::read(record).and_then(|job| job.scheduler(record)) {
            all.push(words([
                b"HDEL",
                &beside(&names.key, ":repeat"),
                scheduler.as_bytes(),
            ]));
        }
        all
    }

    fn id(&self, record: &Record) -> Bytes {
        record.id.clone()
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        let born = record.text("timestamp").and_then(|text| text.parse().ok());
        let due = (record.place == "delayed").then(|| due(record));
        (born, due)
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        let stem = self.stem(queue);
        let ids = texts(ask(
            source,
            on("LRANGE", &beside(&stem, ":active")).arg(0).arg(-1),
        )?);
        let mut cmds = Vec::new();
        for id in &ids {
            cmds.push(on(
                "EXISTS",
                &[stem.as_slice(), b":", id, b":lock"].concat(),
            ));
        }
        let now = Instant::now();
        let mut unlocked = BTreeMap::new();
        for (id, reply) in ids.iter().zip(source.pipeline(&cmds)?) {
            if matches!(reply?, redis::Value::Int(0)) {
                let since = self.unlocked.get(id).copied().unwrap_or(now);
                unlocked.insert(id.clone(), since);
            }
        }
        self.unlocked = unlocked;
        let lost = self.unlocked.iter();
        let lost = lost.filter(|(_, since)| now.duration_since(**since) >= LOST_AFTER);
        Ok(Running {
            count: ids.len() as u64,
            lost: lost.map(|(id, _)| printable(id)).collect(),
            remark: None,
        })
    }
}

#[cfg(test)]
mod tests;
