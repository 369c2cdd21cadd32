//! The bounds of the numbers that come from outside: from arguments, fields of web pages, JSON and the
//! requests of clients of Amazon SQS. Each is read by its bound.

use std::ops::RangeInclusive;

use serde_json::Value as Json;

/// The greatest integer that JSON and the server keep exactly.
pub const MAX_EXACT: i64 = (1 << 53) - 1;

/// The range of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Its name where it comes from.
    pub name: &'static str,
    /// The least that it may be.
    pub least: i64,
    /// The most that it may be.
    pub most: i64,
}

/// The bounds, and the list of all of them for the tests.
macro_rules! bounds {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $least:expr, $most:expr;)*) => {
        $($(#[$doc])* pub const $constant: Bound = Bound { name: $name, least: $least, most: $most };)*
        #[cfg(test)]
        const ALL: &[Bound] = &[$($constant),*];
    };
}

bounds! {
    /// How many lines a list of the server has, or messages one command changes.
    COUNT = "count", 1, 10_000;
    /// Something that is repeated until a number is reached.
    MANY = "count", 1, MAX_EXACT;
    /// How many queues a page of the API has.
    PAGE_OF_QUEUES = "count", 1, 1000;
    /// How many messages a page of the API has.
    PAGE_OF_MESSAGES = "count", 1, 200;
    /// The number of a page.
    PAGE = "page", 1, 1_000_000;
    /// The failures that a message of an export is forgiven.
    RETRIES_LEFT = "retries-left", -1, MAX_EXACT - 1;
    /// The newest step of a history that was written to a file, of which each is a minute or more.
    NEWEST = "newest", 0, MAX_EXACT / 60_000;
    /// How often a message was delivered before, as a header says.
    RECEIVED = "n", 0, MAX_EXACT;
    /// When a message was sent, as a header says, in Unix ms.
    SENT_AT = "t", 0, MAX_EXACT;
    /// The time for which a message that was received is hidden, in s.
    VISIBILITY = "VisibilityTimeout", 0, 43_200;
    /// The most bytes of a message.
    SIZE = "MaximumMessageSize", 1024, 1_048_576;
    /// How long a message is kept, in s.
    RETENTION = "MessageRetentionPeriod", 60, 1_209_600;
    /// How long a message is late, in s.
    DELAY = "DelaySeconds", 0, 900;
    /// The same in an attribute of dq's own, in ms.
    LONG_DELAY = "dq.delay-ms", 0, MAX_EXACT;
    /// How long a queue lets those wait who receive, in s.
    WAIT_OF_QUEUE = "ReceiveMessageWaitTimeSeconds", 0, 20;
    /// How long one who receives waits, in s.
    WAIT = "WaitTimeSeconds", 0, 20;
    /// How many messages are received at once.
    MESSAGES = "MaxNumberOfMessages", 1, 10;
    /// How many queues an answer lists.
    QUEUES = "MaxResults", 1, 1000;
    /// How many tasks an answer lists.
    TASKS = "MaxResults", 1, 10;
    /// How many messages a task moves a second.
    MOVES = "MaxNumberOfMessagesPerSecond", 1, 500;
    /// How often a message is received before it is a dead letter.
    RECEIVES = "maxReceiveCount", 1, 1000;
    /// How long a key of KMS is used, in s.
    KEY_REUSE = "KmsDataKeyReusePeriodSeconds", 60, 86_400;
}

impl Bound {
    /// Returns a number that is within the bound.
    pub fn check(&self, number: i64) -> Option<i64> {
        (self.least..=self.most).contains(&number).then_some(number)
    }

    /// Reads a text.
    pub fn text(&self, text: &str) -> Option<i64> {
        text.parse().ok().and_then(|number| self.check(number))
    }

    /// Reads a value of JSON. A number with a fraction or an exponent is none.
    pub fn json(&self, value: &Json) -> Option<i64> {
        value.as_i64().and_then(|number| self.check(number))
    }

    /// Reads a count or a place, which is never negative.
    pub fn count(&self, text: &str) -> Option<usize> {
        usize::try_from(self.text(text)?).ok()
    }

    /// Returns the range of an argument that is never negative.
    pub const fn range(&self) -> RangeInclusive<u64> {
        self.least.unsigned_abs()..=self.most.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_str;

    use super::*;
    use crate::time_text::{parse_interval, parse_moment, parse_span, parse_time};

    /// Texts that are a number somewhere, and within no bound.
    const ODD: [&str; 14] = [
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "1e400",
        "-1e400",
        "1e2",
        "1.5",
        "NaN",
        "",
        "0x10",
        "\u{663}",
    ];

    #[test]
    fn each_number_is_read_up_to_its_bounds_and_not_beyond() {
        for bound in ALL {
            for (number, is_within) in [
                (bound.least, true),
                (bound.most, true),
                (bound.least - 1, false),
                (bound.most + 1, false),
            ] {
                let read = is_within.then_some(number);
                assert_eq!(bound.text(&number.to_string()), read, "{bound:?}");
                assert_eq!(bound.json(&Json::from(number)), read, "{bound:?}");
            }
            for text in ODD {
                assert_eq!(bound.text(text), None, "{bound:?} {text}");
                let json: Json = from_str(text).unwrap_or_default();
                assert_eq!(bound.json(&json), None, "{bound:?} {text}");
            }
        }
    }

    #[test]
    fn no_time_is_beyond_what_the_server_keeps_exactly() {
        let most = MAX_EXACT.unsigned_abs();
        for (first, second) in ODD.iter().flat_map(|a| ODD.map(|b| (*a, b))) {
            for text in [
                first.to_owned(),
                format!("{first}ms"),
                format!("{first}d"),
                format!("{first}d{second}ms"),
                format!("{second}s{first}h"),
            ] {
                for read in [parse_span, parse_interval, parse_moment, parse_time] {
                    assert!(read(&text).unwrap_or(0) <= most, "{text}");
                }
            }
        }
    }
}
