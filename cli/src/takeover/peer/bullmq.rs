//! BullMQ 4 to 6 on Redis, and Bull, from which it comes. Their jobs become what BullMQ 6 itself reads with dq as its backend.

mod job;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{beside, named, on, words};
use super::{Names, Peer, Row, Running, Seen, State, Translation, Words};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::{ask, fields, number, scan, texts};
use crate::takeover::record::{Bytes, Record};
use crate::text::printable;
use job::{due, stalled, Job};

const ROW: Row = Row {
    sep: ":",
    next: "tail",
    lua: include_str!("../lua/bullmq.lua"),
    options: "RETRIES -1 BACKOFF FIXED 0 ONRETRY SKIP RETAINCOUNT 0 RETAIN 9007199254740991",
};

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

/// The words of the command line about a BullMQ or a Bull.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether it is Bull, and not BullMQ.
    pub is_bull: bool,
    /// The major version of its keys, where they do not tell whether they are Bull's or BullMQ's.
    pub version: Option<u64>,
    /// How often its workers may lose a job before it is dead: `maxStalledCount`.
    pub stalls: u64,
}

/// A BullMQ or a Bull of one prefix.
pub struct BullMq {
    prefix: String,
    options: Options,
    /// The active jobs of each queue that have had no lock, and since when. Queues number their jobs alike.
    unlocked: BTreeMap<String, BTreeMap<Bytes, Instant>>,
}

impl BullMq {
    /// Creates the peer. The prefix is BullMQ's, `bull` by default.
    pub fn new(prefix: Option<&str>, options: Options) -> BullMq {
        BullMq {
            prefix: prefix.unwrap_or("bull").to_owned(),
            options,
            unlocked: BTreeMap::new(),
        }
    }

    /// Refuses the keys of another version, and those of Bull if this is BullMQ, or the other way.
    fn check(
        &self,
        source: &mut Server,
        queue: &str,
        meta: &BTreeMap<Bytes, Bytes>,
    ) -> Result<(), Failure> {
        let written = meta.get(b"version".as_slice()).map(|text| printable(text));
        let major = |version: &str| {
            version
                .strip_prefix("bullmq:")?
                .split('.')
                .next()?
                .parse()
                .ok()
        };
        let (name, newest) = if self.options.is_bull {
            ("bull", 4)
        } else {
            ("bullmq", NEWEST)
        };
        let version = self.options.version.or(written
            .as_deref()
            .map(|text| major(text).unwrap_or(u64::MAX)));
        let says = written.unwrap_or_else(|| format!("version {}", version.unwrap_or_default()));
        if version.is_some_and(|version| {
            version > newest && (!self.options.is_bull || self.options.version.is_some())
        }) {
            return Err(Failure::mistake(format!(
                "UNKNOWN {queue}: its keys are of {says}, and those up to {name} {newest} are known"
            )));
        }
        if self.options.version.is_some() {
            return Ok(());
        }
        let stem = self.stem(queue);
        let mut any = |names: &[&str]| {
            let mut exists = redis::cmd("EXISTS");
            exists.arg(
                names
                    .iter()
                    .map(|name| beside(&stem, name))
                    .collect::<Vec<_>>(),
            );
            Ok::<_, Failure>(number(source, &exists)? > 0)
        };
        // Bull writes `paused` there for the BullMQ that may come.
        let is_bullmq =
            meta.keys().any(|name| name != b"paused") || any(&[":events", ":marker", ":pc"])?;
        let is_bull = any(&[":priority", ":meta-paused"])?
            || !is_bullmq && any(&[":wait", ":paused", ":delayed", ":active", ":failed"])?;
        let is_other = if self.options.is_bull {
            is_bullmq
        } else {
            is_bull
        };
        match is_other {
            false => Ok(()),
            true => Err(Failure::mistake(format!(
                "UNKNOWN {queue}: its keys are {}: say with --peer-version that they are {name}'s",
                match (is_bull, is_bullmq) {
                    (true, true) => "those of Bull and of BullMQ",
                    (true, _) => "those of Bull",
                    _ => "those of BullMQ",
                }
            ))),
        }
    }
}

impl Peer for BullMq {
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure> {
        let begin = format!("{}:", self.prefix);
        // A queue of BullMQ has this key, and one of Bull that has ever had a job the other.
        let end = if self.options.is_bull { ":id" } else { ":meta" };
        let keys = scan(source, &format!("{begin}*{end}"))?;
        named(&keys, |key| key.strip_prefix(&begin)?.strip_suffix(end))
    }

    fn stem(&self, queue: &str) -> Bytes {
        format!("{}:{queue}", self.prefix).into_bytes()
    }

    fn row(&self) -> &'static Row {
        &ROW
    }

    fn look(&self, source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        let meta = fields(source, &on("HGETALL", &beside(&stem, ":meta")))?;
        let of = |name: &str| meta.get(name.as_bytes()).map(|text| printable(text));
        self.check(source, &names.queue, &meta)?;
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
                ROW.place(&stem, "failed", State::Dead, "zset"),
                ROW.place(&stem, "paused", State::Waiting, "list"),
                ROW.place(&stem, "wait", State::Waiting, "list"),
                ROW.place(&stem, "prioritized", State::Waiting, "zset"),
                ROW.place(&stem, "delayed", State::Delayed, "zset"),
                ROW.place(&stem, "active", State::Running, "lost"),
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

    fn prepare(&self, source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure> {
        let mut all = vec![
            self.create(b"DQ.CREATE", names),
            self.create(b"DQ.ALTER", names),
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
        let lost = u64::from(record.place == "active");
        let stalls = stalled(record) + lost;
        let is_dead = record.place == "failed" || lost > 0 && stalls > self.options.stalls;
        let reason = match lost {
            0 => record.field("failedReason").unwrap_or_default(),
            _ => b"job stalled more than allowable limit",
        };
        let payload = job.payload(record, is_dead, stalls);
        let mut all = Vec::new();
        if let Some((scheduler, definition)) = job.scheduler(record)? {
            all.push(words([
                b"SCHEDULER",
                &beside(&names.key, ":repeat"),
                scheduler.as_bytes(),
                definition.to_string().as_bytes(),
            ]));
        }
        let options = job.send_words(record, names, is_dead, self.options.is_bull);
        let mut send = match is_dead {
            true => words([
                b"DEAD",
                payload.as_bytes(),
                &[b":dead:", record.id.as_slice()].concat(),
                reason,
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
        let known = self.unlocked.entry(queue.to_owned()).or_default();
        let mut unlocked = BTreeMap::new();
        for (id, reply) in ids.iter().zip(source.pipeline(&cmds)?) {
            if matches!(reply?, redis::Value::Int(0)) {
                let since = known.get(id).copied().unwrap_or(now);
                unlocked.insert(id.clone(), since);
            }
        }
        *known = unlocked;
        let lost = known.iter();
        let lost = lost.filter(|(_, since)| now.duration_since(**since) >= LOST_AFTER);
        Ok(Running {
            count: ids.len() as u64,
            lost: lost.map(|(id, _)| id.clone()).collect(),
            ..Running::default()
        })
    }
}

#[cfg(test)]
mod tests;
