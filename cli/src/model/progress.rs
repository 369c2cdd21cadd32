//! The progress of a running message, as its consumer has noted it.

/// Reads a note such as `page 7 of 20`, `7/20` or `35 %`. Returns percent, 100 at most.
pub fn percent(note: &[u8]) -> Option<u8> {
    let note = std::str::from_utf8(note.get(..200).unwrap_or(note)).ok()?;
    let mut rest = note;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (done, after) = number(rest.get(start..)?)?;
        let words = after.trim_start();
        if words.starts_with('%') {
            return share(done, 100.0);
        }
        let total = words.strip_prefix('/').or(words.strip_prefix("of "));
        if let Some((total, _)) = total.and_then(|text| number(text.trim_start())) {
            return share(done, total);
        }
        rest = after;
    }
    None
}

/// Reads the number at the beginning of a text. Returns what follows it, too.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let digits = digits.trim_end_matches('.');
    match digits.is_empty() {
        true => None,
        false => Some((digits.parse().unwrap_or(f64::NAN), rest)),
    }
}

fn share(done: f64, total: f64) -> Option<u8> {
    let percent = done * 100.0 / total;
    // The conversion cuts a number that is too large.
    (percent.is_finite() && percent <= 100.0).then_some(percent as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_progress_are_understood() {
        for (note, expected) in [
            ("35%", Some(35)),
            ("video 2: 7 of 20", Some(35)),
            ("page 7/20.", Some(35)),
            ("12.5 % done", Some(12)),
            ("100 %", Some(100)),
            ("page 7", None),
            ("20/7", None),
            ("7/0", None),
            ("0/0", None),
            ("see a/b", None),
            ("5 of them", None),
            ("1.2.3/4", None),
            ("", None),
        ] {
            assert_eq!(percent(note.as_bytes()), expected, "{note}");
        }
        assert_eq!(percent(b"\xff 5%"), None);
        assert_eq!(percent("ü".repeat(300).as_bytes()), None);
    }
}
