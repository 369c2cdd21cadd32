//! The words of options, with times for people.

use crate::time_text::parse_span;

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
