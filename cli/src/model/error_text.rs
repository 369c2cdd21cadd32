//! The line of an error that says what went wrong, and the pattern of errors like it.

/// Numbers of at least this many digits are replaced in the pattern of an error, because they
/// differ each time. Shorter ones stay, so `HTTP 500` and `HTTP 503` are two errors.
const NUMBER: usize = 4;

/// Minimum length of a row of hexadecimal digits and dashes, with a digit, that is taken for
/// an id.
const ID: usize = 8;

/// Returns the line of an error that says what went wrong: the last one outside of any
/// stack trace. In a traceback of Python that is the exception, and in the traces of Java,
/// Node and PHP the message before their frames.
pub fn summary(error: &[u8]) -> &[u8] {
    let lines = || {
        error
            .split(|byte| *byte == b'\n')
            .map(|line| line.trim_ascii_end())
    };
    let found = lines().rfind(|line| !is_frame(line));
    let first = lines().find(|line| !line.is_empty());
    found.or(first).map_or(b"", <[u8]>::trim_ascii)
}

/// Returns whether a line is one of a stack trace, or empty.
fn is_frame(line: &[u8]) -> bool {
    let starts = |text: &str| line.starts_with(text.as_bytes());
    line.is_empty()
        || line.starts_with(b" ")
        || line.starts_with(b"\t")
        || line.starts_with(b"#")
        || starts("at ")
        || starts("Stack trace:")
        || starts("Traceback ")
}

/// Returns a pattern, as of KEYS, that matches errors like this one: with other numbers and
/// ids in the line that says what went wrong, and with any other lines.
pub fn pattern(error: &[u8]) -> Vec<u8> {
    let line = summary(error);
    let mut pattern = Vec::new();
    if line.is_empty() {
        return pattern;
    }
    let start = position(error, line);
    if start > 0 {
        pattern.push(b'*');
    }
    let mut rest = line;
    while let Some(first) = rest.first() {
        let varies = varying(rest);
        if varies > 0 {
            push_star(&mut pattern);
            rest = rest.get(varies..).unwrap_or_default();
            continue;
        }
        // A word stays together, so that digits within a longer word do not count.
        let word = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric());
        let (kept, after) = rest.split_at(word.count().max(1).min(rest.len()));
        if matches!(first, b'*' | b'?' | b'[' | b']' | b'\\' | b'^' | b'-') {
            pattern.push(b'\\');
        }
        pattern.extend_from_slice(kept);
        rest = after;
    }
    if start + line.len() < error.len() {
        push_star(&mut pattern);
    }
    pattern
}

fn push_star(pattern: &mut Vec<u8>) {
    let escaped = pattern.len() >= 2 && pattern.ends_with(b"\\*");
    if !pattern.ends_with(b"*") || escaped {
        pattern.push(b'*');
    }
}

/// Returns the length of the part at the beginning that differs each time. 0 if there is none.
fn varying(text: &[u8]) -> usize {
    let row = |is_part: fn(&u8) -> bool| {
        let length = text.iter().take_while(|byte| is_part(byte)).count();
        let ends = text
            .get(length)
            .is_none_or(|next| !next.is_ascii_alphanumeric());
        text.get(..length).filter(|_| ends).unwrap_or_default()
    };
    let word = row(u8::is_ascii_alphanumeric);
    if word.len() >= NUMBER && word.iter().all(u8::is_ascii_digit) {
        return word.len();
    }
    let id = row(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    if id.len() >= ID && id.iter().any(u8::is_ascii_digit) && id.iter().any(|b| *b != b'-') {
        return id.len();
    }
    match word.strip_prefix(b"0x") {
        Some(rest) if !rest.is_empty() && rest.iter().all(u8::is_ascii_hexdigit) => word.len(),
        _ => 0,
    }
}

/// Returns the position of a line, which is a part of a text, in this text.
fn position(text: &[u8], line: &[u8]) -> usize {
    let found = text
        .windows(line.len().max(1))
        .rposition(|part| part == line);
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: &str) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            text(summary(error.as_bytes())),
            text(&pattern(error.as_bytes())),
        )
    }

    #[test]
    fn the_line_that_says_what_went_wrong_is_found() {
        for (error, expected) in [
            ("HTTP 500", "HTTP 500"),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nValueError: bad",
                "ValueError: bad",
            ),
            ("Error: boom\n    at f (a.js:1:2)\n    at g", "Error: boom"),
            (
                "java.lang.E: x\n\tat a.B.c(B.java:3)\nCaused by: java.io.E: refused\n\t... 3 more",
                "Caused by: java.io.E: refused",
            ),
            ("E: x in a.php:3\nStack trace:\n#0 a.php(3): f()\n#1 {main}\n  thrown in a.php", "E: x in a.php:3"),
            ("\n\n", ""),
            ("", ""),
            ("  indented", "indented"),
        ] {
            assert_eq!(of(error).0, expected);
        }
    }

    #[test]
    fn numbers_and_ids_that_differ_are_left_out() {
        for (error, expected) in [
            ("HTTP 500", "HTTP 500"),
            ("order 123456 is gone", "order * is gone"),
            ("order-123456: v1.2.3", "order\\-*: v1.2.3"),
            (
                "key f81d4fae-7dec-11d0-a765-00a0c91e6bf6 missing",
                "key * missing",
            ),
            ("object at 0x7f3a", "object at *"),
            (
                "deadbeef is a word, cafe1234 is not",
                "deadbeef is a word, * is not",
            ),
            ("a*b [x] c-d", "a\\*b \\[x\\] c\\-d"),
            (
                "Traceback (most recent call last):\n  x\nValueError: bad 12345",
                "*ValueError: bad *",
            ),
            ("Error: boom\n    at f", "Error: boom*"),
            ("", ""),
        ] {
            assert_eq!(of(error).1, expected);
        }
    }
}
