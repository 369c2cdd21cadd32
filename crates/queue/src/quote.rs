//! Bytes of a client made fit for one line of text.

use std::fmt::Write;

/// How many characters of the client's text an error shows, at most.
const SHOWN: usize = 64;

/// `bytes` in single quotes, for an error reply.
///
/// An error reply ends at the first line break, so control characters,
/// invalid UTF-8, the quote and the backslash are escaped. At most 64
/// characters are shown, then `...`. Cost: O(1).
pub fn quote(bytes: &[u8]) -> String {
    // No character takes more than four bytes, so nothing past this can be
    // shown; one more character tells whether something was left out.
    let head = bytes.get(..(SHOWN + 1) * 4).unwrap_or(bytes);
    let mut out = String::from("'");
    let mut shown = 0;
    for chunk in head.utf8_chunks() {
        for c in chunk.valid().chars() {
            if shown == SHOWN {
                return out + "...'";
            }
            shown += 1;
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                    out.extend(c.escape_default())
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            if shown == SHOWN {
                return out + "...'";
            }
            shown += 1;
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_it_is() {
        assert_eq!(quote(b""), "''");
        assert_eq!(quote("/übung/~1".as_bytes()), "'/übung/~1'");
    }

    #[test]
    fn what_could_break_a_reply_line_is_escaped() {
        assert_eq!(quote(b"a\r\n\0b"), r"'a\r\n\u{0}b'");
        assert_eq!(quote(b"it's \\"), r"'it\'s \\'");
        assert_eq!(quote(b"a\xffb"), r"'a\xffb'");
        assert_eq!(quote("\u{85}\u{2028}".as_bytes()), r"'\u{85}\u{2028}'");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(quote(&[b'x'; 64]), format!("'{}'", "x".repeat(64)));
        assert_eq!(quote(&[b'x'; 65]), format!("'{}...'", "x".repeat(64)));
        assert_eq!(
            quote("€".repeat(1000).as_bytes()),
            format!("'{}...'", "€".repeat(64))
        );
        assert_eq!(quote(&[0xff; 1000]), format!("'{}...'", r"\xff".repeat(64)));
    }
}
