//! Quotes bytes of a client for one line of text, such as an error reply.

use std::fmt::Write;

/// The most characters of the client's text that an error shows.
const SHOWN: usize = 64;

/// Puts `bytes` in single quotes for an error reply.
///
/// A client takes the first line break for the end of the reply, so control
/// characters, invalid UTF-8, the quote and the backslash are escaped. At most
/// 64 characters are shown, then `...`. O(1).
pub fn quote(bytes: &[u8]) -> String {
    // A character takes at most four bytes, so no later byte can be shown. One
    // character more than is shown tells whether something was left out.
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
    fn plain_text_is_quoted_unchanged() {
        assert_eq!(quote(b""), "''");
        assert_eq!(quote("/übung/~1".as_bytes()), "'/übung/~1'");
    }

    #[test]
    fn bytes_that_could_break_a_reply_line_are_escaped() {
        assert_eq!(quote(b"a\r\n\0b"), r"'a\r\n\u{0}b'");
        assert_eq!(quote(b"it's \\"), r"'it\'s \\'");
        assert_eq!(quote(b"a\xffb"), r"'a\xffb'");
        assert_eq!(quote("\u{85}\u{2028}".as_bytes()), r"'\u{85}\u{2028}'");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(quote(&[b'x'; 64]), format!("'{}'", "x".repeat(64)));
        assert_eq!(quote(&[b'x'; 65]), format!("'{}...'", "x".repeat(64)));
        assert_eq!(
            quote("€".repeat(1000).as_bytes()),
            format!("'{}...'", "€".repeat(64))
        );
        assert_eq!(quote(&[0xff; 1000]), format!("'{}...'", r"\xff".repeat(64)));
    }
}
