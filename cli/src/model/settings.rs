//! The words of options, with times for people.

use redis::Value;

use super::record::{shown, Record};
use crate::time_text::{exact, parse_span};

/// The settings of a queue that can be changed, by their names in DQ.INFO and DQ.ALTER, and
/// whether they are a time.
const SETTINGS: [(&str, bool); 23] = [
    ("lease", true),
    ("retries", false),
    ("backoff", false),
    ("maxbackoff", true),
    ("jitter", false),
    ("ttl", true),
    ("retain", true),
    ("retaincount", false),
    ("deadretain", true),
    ("deadcount", false),
    ("dedup", true),
    ("maxlen", false),
    ("maxbytes", false),
    ("maxrunning", false),
    ("rate", false),
    ("groupconcurrency", false),
    ("onretry", false),
    ("ondead", false),
    ("breaker", false),
    ("fair", false),
    ("sends", false),
    ("maxtimeouts", false),
    ("errors", false),
];

/// Returns the settings of a queue with their values for people, which `words` reads: `30s`,
/// `EXP 1000`.
pub fn shown_settings(info: &Record) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for (name, is_time) in SETTINGS {
        let value = match info.get(name) {
            Value::Int(ms) if is_time => u64::try_from(*ms).map_or(ms.to_string(), exact),
            value => shown(value),
        };
        let known = info.fields().iter().any(|(field, _)| shown(field) == name);
        if known {
            settings.push((name.to_owned(), value));
        }
    }
    settings
}

/// Options whose value is any text, which is never a time.
const TEXTS: [&str; 2] = ["DEADTO", "EVENTS"];

/// Returns the words of DQ.CREATE or DQ.ALTER for options as a person writes them: a value
/// such as `30s` or `2h` becomes milliseconds, and `LEASE=30s` two words. All else is the
/// server's to judge.
pub fn words(given: &[String]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for text in given {
        match text.split_once('=') {
            Some((option, value)) if is_option(option) => {
                words.push(option.to_owned());
                words.extend(value.split(' ').map(str::to_owned));
            }
            _ => words.push(text.clone()),
        }
    }
    let mut before = String::new();
    for word in &mut words {
        let is_text = TEXTS.iter().any(|text| text.eq_ignore_ascii_case(&before));
        before.clone_from(word);
        let has_unit = word.starts_with(|c: char| c.is_ascii_digit())
            && word.ends_with(|c: char| c.is_ascii_alphabetic());
        if let (true, false, Ok(ms)) = (has_unit, is_text, parse_span(word)) {
            *word = ms.to_string();
        }
    }
    words
}

fn is_option(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_shown_as_they_can_be_typed() {
        let info = crate::model::record::record(&[
            ("lease", Value::Int(90_000)),
            ("retries", Value::Int(-1)),
            ("backoff", Value::BulkString(b"EXP 1000".to_vec())),
            ("rate", Value::Nil),
            ("now", Value::Int(5)),
        ]);
        let shown: Vec<String> = shown_settings(&info)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            shown,
            ["lease=1m30s", "retries=-1", "backoff=EXP 1000", "rate="]
        );
        // A span with several units is read, too.
        assert_eq!(words(&["lease=1m30s".to_owned()]), ["lease", "90000"]);
    }

    #[test]
    fn times_become_milliseconds() {
        let of = |text: &str| {
            let given: Vec<String> = text.split('|').map(str::to_owned).collect();
            words(&given).join(" ")
        };
        assert_eq!(of("LEASE|30s|RETRIES|5"), "LEASE 30000 RETRIES 5");
        assert_eq!(
            of("backoff|EXP|1s|maxbackoff|1h"),
            "backoff EXP 1000 maxbackoff 3600000"
        );
        assert_eq!(of("rate|10|per|1m"), "rate 10 per 60000");
        assert_eq!(
            of("lease=2m|backoff=FIXED 5s"),
            "lease 120000 backoff FIXED 5000"
        );
        assert_eq!(of("DEADTO|2d|retain|2d"), "DEADTO 2d retain 172800000");
        assert_eq!(of("lease|soon"), "lease soon");
    }
}
