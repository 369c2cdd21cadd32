//! The Go library HDT3213/delayqueue. Its messages become those of the package `dq/delayqueue`.

use super::{beside, held, named, on, second, words};
use super::{Names, Peer, Place, Row, Running, Seen, State, Translation};
use crate::failure::Failure;
use crate::server::Server;
use crate::takeover::read::{number, scan};
use crate::takeover::record::{Bytes, Record};

const ROW: Row = Row {
    sep: ":",
    next: "tail",
    lua: include_str!("../lua/delayqueue.lua"),
    options: "",
};

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
        named(&keys, |key| key.strip_prefix(&begin)?.strip_suffix(end))
    }

    fn stem(&self, queue: &str) -> Bytes {
        self.name(&self.prefix, queue).into_bytes()
    }

    fn row(&self) -> &'static Row {
        &ROW
    }

    fn look(&self, source: &mut Server, names: &Names) -> Result<Seen, Failure> {
        let stem = self.stem(&names.queue);
        // The library keeps the payloads below dp, whatever its prefix is.
        let payloads = format!("{}:msg:", self.name("dp", &names.queue)).into_bytes();
        let place = |name: &str, state, kind| Place {
            words: vec![payloads.clone()],
            ..ROW.place(&stem, name, state, kind)
        };
        let given_up = number(source, &on("SCARD", &beside(&stem, ":garbage")))?.unsigned_abs();
        Ok(Seen {
            places: vec![
                place("ready", State::Waiting, "list"),
                place("retry", State::Waiting, "list"),
                // Those whose time is over, which the library would give to the next consumer.
                place("unack", State::Running, "late"),
                place("pending", State::Delayed, "zset"),
            ],
            stays: match given_up {
                0 => Vec::new(),
                count => vec![("given up by the library".to_owned(), count)],
            },
            ..Seen::default()
        })
    }

    fn translate(&self, record: &Record, names: &Names) -> Translation {
        let payload = record.field("payload").unwrap_or_default();
        // The library counts a failure when it takes a message back from a consumer.
        let failed = i64::from(record.place == "unack");
        let retries = record
            .number_of("retries")
            .saturating_sub(failed)
            .max(0)
            .to_string();
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
            all.extend(words([b"AT", second(record).to_string().as_bytes()]));
        }
        Ok(vec![all])
    }

    fn times(&self, record: &Record) -> (Option<u64>, Option<u64>) {
        (None, (record.place == "pending").then(|| second(record)))
    }

    fn running(&mut self, source: &mut Server, queue: &str) -> Result<Running, Failure> {
        held(source, &beside(&self.stem(queue), ":unack"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::takeover::peer::tests::translated;
    use crate::takeover::record::tests::packed;

    #[test]
    fn a_message_keeps_its_retries_and_its_time() {
        for (place, score, retries, rest) in [
            ("pending", "1800000000", "3", "3 AT 1800000000000"),
            ("ready", "", "3", "3"),
            ("unack", "1", "3", "2"),
            ("unack", "1", "0", "0"),
            ("pending", "1", "", "0 AT 1000"),
        ] {
            let fields = [("payload", "p"), ("retries", retries)];
            let record = packed(place, score, "a", &fields, &[]);
            let all = translated(&DelayQueue::new(None, false), &record).unwrap();
            assert_eq!(all, [format!("DQ.SEND dp:default p ID a RETRIES {rest}")]);
        }
    }

    #[test]
    fn the_keys_are_those_of_the_library() {
        assert_eq!(DelayQueue::new(None, false).key("orders"), "dp:orders");
        assert_eq!(DelayQueue::new(Some("x"), true).key("orders"), "{x:orders}");
    }
}
