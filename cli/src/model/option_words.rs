//! The words of options as a person writes them, as words of the server.

use crate::time_text::parse_span;

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
    use super::*;

    #[test]
    fn times_become_milliseconds() {
        let of = |text: &str| {
            let given: Vec<String> = text.split('|').map(str::to_owned).collect();
            words(&given).map(|words| words.join(" "))
        };
        let ok = |text: &str| of(text).unwrap();
        assert_eq!(ok("lease=1m30s"), "lease 90000");
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
