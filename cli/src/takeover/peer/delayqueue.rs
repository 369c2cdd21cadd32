//! The Go library HDT3213/delayqueue. Its messages become those of the package `dq/delayqueue`.

use super::{beside, on, words, Names, Peer, Place, Running, Seen, State, Translation, Words};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::{clock, number, scan};
use crate::takeover::record::{Bytes, Record};

/// The library with one prefix.
pub struct DelayQueue {
    prefix: String,
    has_tags: bool,
}

impl DelayQueue {
    /// Creates the peer. The prefix is that of `UseCustomPrefix`, `dp` by default; `has_tags` is `UseHashTagKey`.
    pub fn new(prefix: Option<&str>, has_tags: bool) -> DelayQueue {
        DelayQueue {
            prefix: prefix.unwrap_or("dp").to_owned(),
            has_tags,
        }
    }

    fn name(&self, prefix: &str, queue: &str) -> String {
        match self.has_tags {
            true => format!("{{{prefix}:{queue}}}"),
            false => format!("{prefix}:{queue}"),
        }
    }
}

impl Peer for DelayQueue {
    fn queues(&self, source: &mut Server) -> Result<Vec<String>, Failure> {
        let begin = self.name(&self.prefix, "").trim_end_matches('}').to_owned();
        let end = if self.has_tags {
            "}:retry:cnt"
        } else {
            ":retry:cnt"
        };
        let keys = scan(source, &format!("{begin}*{end}"))?;
        let names = keys
            .iter()
            .filter_map(|key| key.strip_prefix(&begin)?.strip_suffix(end));
        let mut found: Vec<String> = names.map(str::to_owned).collect();
        found.sort();
        Ok(found)
    }

    fn stem(&self, queue: &str) -> Bytes {
        self.name(&self.prefix, queue).into_bytes()
    }

    fn key(&self, queue: &str) -> String {
        self.name(&self.prefix, queue)
    }

    fn look(&self, source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        // The library keeps the payloads below dp, whatever its prefix is.
        let payloads = format!("{}:msg:", self.name("dp", &names.queue));
        let place = |name: &str, state, kind: &str, count| Place {
            name: name.to_owned(),
            state,
            keys: vec![
                beside(&stem, &format!(":{name}")),
                beside(&stem, ":retry:cnt"),
            ],
            words: vec![kind.to_owned(), payloads.clone()],
            count,
        };
        let given_up = number(source, &on("SCARD", &beside(&stem, ":garbage")))?.unsigned_abs();
        Ok(Seen {
            places: vec![
                place("ready", State::Waiting, "list", "LLEN"),
                place("retry", State::Waiting, "list", "LLEN"),
                // Those whose time there is over, which the library itself would give to the next consumer.
                place("unack", State::Waiting, "past", "ZCARD"),
                place("pending", State::Delayed, "zset", "ZCARD"),
            ],
            stays: match given_up {
                0 => Vec::new(),
                count => vec![("given up by the library".to_owned(), count)],
            },
            ..Seen::default()
        })
    }

    fn claim(&self) -> &'static str {
        include_str!("../lua/delayqueue_claim.lua")
    }

    fn restore(&self) -> &'static str {
        include_str!("../lua/delayqueue_restore.lua")
    }

    fn prepare(&self, _source: &mut Server, names: &Names) -> Result<Vec<Words>, Failure> {
        Ok(vec![words([b"DQ.CREATE", &names.key, b"NX"])])
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let payload = record.field("payload").unwrap_or_default();
        // The library counts a failure when it takes a message back from a consumer.
        let failed = i64::from(record.place == "unack");
        let retries = (record.number_of("retries") - failed).max(0).to_string();
        let mut all = words([
            b"DQ.SEND",
            &names.key,
            payload,
            b"ID",
            &record.id,
            b"RETRIES",
            retries.as_bytes(),
        ]);
        if record.place == "pending" {
            all.extend(words([b"AT", due(record).to_string().as_bytes()]));
        }
        Ok(vec![all])
    }

    fn forget(&self, _record: &Record, _names: &Names) -> Vec<Words> {
        Vec::new()
    }

    fn id(&self, record: &Record) -> Bytes {
        record.id.clone()
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        (None, (record.place == "pending").then(|| due(record)))
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        let now = clock(source)? / 1000;
        let key = beside(&self.stem(queue), ":unack");
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

/// Returns when a message is due, Unix ms: its score has whole seconds.
fn due(record: &Record) -> u64 {
    (record.score() * 1000.0).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::record::tests::packed;

    #[test]
    fn a_message_keeps_its_retries_and_its_time() {
        let names = Names {
            queue: "orders".to_owned(),
            key: b"dp:orders".to_vec(),
            now: 0,
        };
        let sent = |place: &str, score: &str, retries: &str| {
            let record = packed(
                place,
                score,
                "a",
                &[("payload", "p"), ("retries", retries)],
                &[],
            );
            let commands = DelayQueue::new(None, false)
                .translate(&record, &names)
                .unwrap()
                .concat();
            let words: Vec<_> = commands
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            words.join(" ")
        };
        assert_eq!(
            sent("pending", "1800000000", "3"),
            "DQ.SEND dp:orders p ID a RETRIES 3 AT 1800000000000"
        );
        assert_eq!(sent("ready", "", "3"), "DQ.SEND dp:orders p ID a RETRIES 3");
        assert_eq!(
            sent("unack", "1", "3"),
            "DQ.SEND dp:orders p ID a RETRIES 2"
        );
        assert_eq!(
            sent("unack", "1", "0"),
            "DQ.SEND dp:orders p ID a RETRIES 0"
        );
        assert_eq!(
            sent("pending", "1", ""),
            "DQ.SEND dp:orders p ID a RETRIES 0 AT 1000"
        );
    }

    #[test]
    fn the_keys_are_those_of_the_library() {
        assert_eq!(DelayQueue::new(None, false).key("orders"), "dp:orders");
        assert_eq!(DelayQueue::new(Some("x"), true).key("orders"), "{x:orders}");
    }
}
