//! Makes bytes that clients chose safe and short enough for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text of `bytes`. Everything is escaped that could control a terminal
/// (control characters, marks of the direction of writing) or that is not UTF-8, so
/// that a payload cannot rewrite the screen of the person who looks at it.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                c if c.is_ascii_control() => text.push_str(&format!("\\x{:02x}", c as u32)),
                c if controls_terminal(c) => text.push_str(&format!("\\u{{{:x}}}", c as u32)),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

fn controls_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns bytes as pairs of hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    let pairs = bytes.as_ref().iter();
    pairs
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Reads pairs of hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// Returns how many columns of a terminal `text` takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cuts `text` to at most `columns` columns. An ellipsis shows that it was cut.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        kept.push(c);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// Cuts the middle out of `text`, so that it takes at most `columns` columns: names differ
/// most often at their ends.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns || columns < 3 {
        return cut(text, columns);
    }
    let mut end = String::new();
    let mut used = 0;
    for c in text.chars().rev() {
        used += c.width().unwrap_or(0);
        if used > (columns - 1) / 2 {
            break;
        }
        end.insert(0, c);
    }
    let begin = cut(text, columns - width(&end));
    begin + &end
}

/// Formats a count in at most five columns: 99999, 9999k, 9999M, ...
pub fn compact(count: u64) -> String {
    if count < 100_000 {
        return count.to_string();
    }
    let mut rest = count;
    for unit in ["k", "M", "G", "T", "P"] {
        rest /= 1000;
        if rest < 10_000 {
            return format!("{rest}{unit}");
        }
    }
    format!("{}E", rest / 1000)
}

/// Formats a count with its noun: "1 message", "2 messages".
pub fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_cannot_control_the_terminal() {
        assert_eq!(printable(b"\x1b[2Jhi\0\x7f"), "\\x1b[2Jhi\\x00\\x7f");
        assert_eq!(printable(b"a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(
            printable("\u{9b}x\u{202e}y".as_bytes()),
            "\\u{9b}x\\u{202e}y"
        );
        assert_eq!(printable(b"ok \xff\xfe ok"), "ok \\xff\\xfe ok");
        assert_eq!(printable("订单 é".as_bytes()), "订单 é");
    }

    #[test]
    fn cut_text_fits_and_ends_with_an_ellipsis() {
        assert_eq!(cut("order", 5), "order");
        assert_eq!(cut("orders", 5), "orde…");
        assert_eq!(cut("订单订单", 5), "订单…");
        assert_eq!(cut("订单订单", 4), "订…");
        assert_eq!(cut("ab", 0), "");
        assert_eq!(cut_middle("order", 5), "order");
        assert_eq!(cut_middle("orders:berlin:7", 9), "orde…in:7");
        assert_eq!(cut_middle("订单订单订单", 7), "订单…单");
        assert_eq!(cut_middle("abc", 2), "a…");
    }

    #[test]
    fn counts_stay_in_five_columns() {
        for (count, text) in [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100k"),
            (9_999_999, "9999k"),
            (10_000_000, "10M"),
            (12_345_678_901, "12G"),
        ] {
            assert_eq!(compact(count), text);
        }
        assert!(compact(u64::MAX).len() <= 5);
    }
}
