//! The words of options, with times for people.

use super::record::{shown, Record};
use crate::time_text::{exact, parse_span};

/// The settings of a queue that can be changed, by their names in DQ.INFO and DQ.ALTER, with the
/// words of their values. A word in upper case is as it is, and those in brackets may be missing.
const SETTINGS: [(&str, &str); 24] = [
    ("lease", "time"),
    ("retries", "n"),
    ("backoff", "kind time"),
    ("maxbackoff", "time"),
    ("jitter", "n"),
    ("ttl", "time"),
    ("retain", "time"),
    ("retaincount", "n"),
    ("deadretain", "time"),
    ("deadcount", "n"),
    ("dedup", "time"),
    ("maxlen", "n"),
    ("maxbytes", "n"),
    ("maxrunning", "n"),
    ("rate", "n PER time"),
    ("groupconcurrency", "n"),
    ("onretry", "word"),
    ("ondead", "word"),
    ("breaker", "n PER time OPEN time [MAX time]"),
    ("fair", "word"),
    ("sends", "word"),
    ("maxtimeouts", "n"),
    ("errors", "n"),
    ("eventslen", "n"),
];

/// Returns the settings of a queue with their values for people, which `words` and `field` read:
/// `30s`, `EXP 1s`.
pub fn shown_settings(info: &Record) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for (name, shape) in SETTINGS {
        let known = info.fields().iter().any(|(field, _)| shown(field) == name);
        if known {
            let value = shown(info.get(name));
            let words =
                value
                    .split(' ')
                    .zip(tokens(shape))
                    .map(|(word, token)| match word.parse() {
                        Ok(ms) if token == "time" => exact(ms),
                        _ => word.to_owned(),
                    });
            settings.push((name.to_owned(), words.collect::<Vec<_>>().join(" ")));
        }
    }
    settings
}

/// Returns the settings of a queue as words of DQ.CREATE, with the server's own figures.
pub fn server_words(info: &Record) -> Vec<String> {
    let mut words = Vec::new();
    for (name, _) in SETTINGS {
        let value = shown(info.get(name));
        if !value.is_empty() {
            words.push(name.to_ascii_uppercase());
            words.extend(value.split(' ').map(str::to_owned));
        }
    }
    words
}

fn tokens(shape: &str) -> impl Iterator<Item = &str> {
    shape.split(' ').map(|token| token.trim_matches(['[', ']']))
}

/// Returns the words of DQ.ALTER for the value of one setting as a person writes it. Nothing is 0.
/// A text that is typed into one field is the value of this setting alone, and never another
/// option.
pub fn field(name: &str, typed: &str) -> Result<Vec<String>, String> {
    let shape = SETTINGS.iter().find(|(setting, _)| *setting == name);
    let (_, shape) = shape.ok_or_else(|| format!("{name}: there is no such setting"))?;
    let given: Vec<&str> = typed.split_whitespace().collect();
    if matches!(given[..], [] | ["0"]) {
        return Ok(vec!["0".to_owned()]);
    }
    let (whole, least) = (
        tokens(shape).count(),
        shape
            .split(" [")
            .next()
            .map_or(0, |must| tokens(must).count()),
    );
    let fits = given.len() == whole || given.len() == least;
    let is_keyword = |token: &str| token.starts_with(|c: char| c.is_ascii_uppercase());
    let keywords = tokens(shape).zip(&given);
    let mut wrong =
        keywords.filter(|(token, word)| is_keyword(token) && !token.eq_ignore_ascii_case(word));
    if !fits || wrong.next().is_some() {
        return Err(format!("{name}: write {shape}"));
    }
    let one = |(token, word): (&str, &&str)| match token {
        "time" => parse_span(word)
            .map_or_else(|why| Err(format!("{name}: {why}")), |ms| Ok(ms.to_string())),
        _ => Ok((*word).to_owned()),
    };
    tokens(shape).zip(&given).map(one).collect()
}

/// Options whose value is any text, which is never a time.
const TEXTS: [&str; 2] = ["DEADTO", "EVENTS"];

/// The words behind which a time stands.
const BEFORE_TIMES: [&str; 9] = [
    "LEASE",
    "MAXBACKOFF",
    "TTL",
    "RETAIN",
    "DEADRETAIN",
    "DEDUP",
    "PER",
    "OPEN",
    "MAX",
];

/// Returns the words of DQ.CREATE, DQ.ALTER or DQ.LIMIT for options as a person writes them: a
/// time such as `30s` or `2h` becomes milliseconds, and `LEASE=30s` two words. A time without a
/// unit is an error. All else is the server's to judge.
pub fn words(given: &[String]) -> Result<Vec<String>, String> {
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
    // The two words before the one that is read, in upper case. A text is none of them.
    let mut before = [String::new(), String::new()];
    for word in &mut words {
        let is_text = TEXTS.contains(&before[1].as_str());
        let is_wait = before[0] == "BACKOFF";
        let is_time = is_wait || BEFORE_TIMES.contains(&before[1].as_str());
        let upper = match is_text {
            true => String::new(),
            false => word.to_uppercase(),
        };
        let starts_as_time = word.starts_with(|c: char| c.is_ascii_digit());
        if is_time && !is_text && starts_as_time {
            let option = before[usize::from(!is_wait)].to_lowercase();
            let ms = parse_span(word).map_err(|why| format!("{option}: {why}"))?;
            *word = ms.to_string();
        }
        before.swap(0, 1);
        before[1] = upper;
    }
    Ok(words)
}

fn is_option(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use redis::Value;

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
            ["lease=1m30s", "retries=-1", "backoff=EXP 1s", "rate="]
        );
        // A span with several units is read, too.
        assert_eq!(
            words(&["lease=1m30s".to_owned()]).unwrap(),
            ["lease", "90000"]
        );
    }

    #[test]
    fn a_field_holds_the_value_of_one_setting() {
        let of = |name: &str, typed: &str| field(name, typed).map(|words| words.join(" "));
        for (name, typed, words) in [
            ("lease", "30s", "30000"),
            ("lease", "", "0"),
            ("retries", "-1", "-1"),
            ("backoff", "exp  1s", "exp 1000"),
            ("rate", "10 per 1m", "10 per 60000"),
            ("rate", "0", "0"),
            ("breaker", "5 PER 1m OPEN 30s", "5 PER 60000 OPEN 30000"),
            (
                "breaker",
                "5 PER 1m OPEN 30s MAX 1h",
                "5 PER 60000 OPEN 30000 MAX 3600000",
            ),
        ] {
            assert_eq!(of(name, typed).as_deref(), Ok(words), "{name}");
        }
        for (name, typed) in [
            ("lease", "1s EVENTS other"),
            ("lease", "30"),
            ("maxlen", "5 DEADTO other"),
            ("onretry", "SKIP EVENTS other"),
            ("backoff", "EXP EVENTS"),
            ("backoff", "EXP 1s EVENTS other"),
            ("rate", "10 PER"),
            ("rate", "10 EVENTS other"),
            ("breaker", "5 PER 1m OPEN 30s EVENTS other"),
            ("events", "other"),
        ] {
            assert!(of(name, typed).is_err(), "{name} {typed}");
        }
    }

    #[test]
    fn times_become_milliseconds() {
        let of = |text: &str| {
            let given: Vec<String> = text.split('|').map(str::to_owned).collect();
            words(&given).map(|words| words.join(" "))
        };
        let ok = |text: &str| of(text).unwrap();
        assert_eq!(ok("LEASE|30s|RETRIES|5"), "LEASE 30000 RETRIES 5");
        assert_eq!(
            ok("backoff|EXP|1s|maxbackoff|1h"),
            "backoff EXP 1000 maxbackoff 3600000"
        );
        assert_eq!(ok("rate|10|per|1m"), "rate 10 per 60000");
        assert_eq!(
            ok("lease=2m|backoff=FIXED 5s"),
            "lease 120000 backoff FIXED 5000"
        );
        assert_eq!(ok("DEADTO|2d|retain|2d"), "DEADTO 2d retain 172800000");
        assert_eq!(ok("deadto|lease|maxlen|5"), "deadto lease maxlen 5");
        assert_eq!(ok("lease|soon"), "lease soon");
        assert_eq!(ok("retain|0|backoff|fixed|0"), "retain 0 backoff fixed 0");
        for (bare, option) in [
            ("lease|30", "lease"),
            ("LEASE=30", "lease"),
            ("backoff|EXP|1000", "backoff"),
            ("rate|10|per|60", "per"),
            ("breaker|5|PER|1m|OPEN|30", "open"),
        ] {
            let why = of(bare).unwrap_err();
            assert!(
                why.contains(option) && why.contains("5s") && why.contains("5ms"),
                "{why}"
            );
        }
    }
}
