//! The beginning of a text that is too long to be kept.

/// The beginning of a text, at most `most` bytes long. It does not end within a character
/// of UTF-8.
pub fn cut(text: &[u8], most: usize) -> &[u8] {
    let Some((head, _)) = text.split_at_checked(most) else {
        return text;
    };
    // A character has four bytes at most. The last one that begins in `head` may end behind it.
    let begins = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xC0 != 0x80);
    let Some(start) = (most.saturating_sub(3)..most).rev().find(begins) else {
        return head;
    };
    let from_start = text.get(start..text.len().min(start + 4));
    let first = from_start.and_then(|bytes| bytes.utf8_chunks().next()?.valid().chars().next());
    match first {
        Some(character) if start + character.len_utf8() > most => text.get(..start).unwrap_or(head),
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_text_is_cut_behind_a_character() {
        for (text, most, kept) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc"),
            ("ab\u{e4}", 3, "ab"),
            ("ab\u{e4}", 4, "ab\u{e4}"),
            ("a\u{20ac}b", 4, "a\u{20ac}"),
            ("a\u{20ac}b", 3, "a"),
            ("a\u{20ac}b", 2, "a"),
            ("\u{1f600}\u{1f600}", 7, "\u{1f600}"),
            ("\u{1f600}", 3, ""),
        ] {
            assert_eq!(cut(text.as_bytes(), most), kept.as_bytes(), "{text} {most}");
        }
        for no_text in [
            &b"\x80\x80\x80\x80\x80\x80"[..],
            b"\xff\xff\xff\xff\xff\xff",
            b"aaaa\xe9a",
            b"aaaa\xe2\x82",
            b"aaa\xc3\xa4\xa4",
        ] {
            assert_eq!(cut(no_text, 5), &no_text[..5], "{no_text:?}");
        }
    }
}
