//! Parses decimal integers, eight digits at a time: every receipt of an ACK is
//! read by this.

/// The number of digits of the largest `i64`. No integer of this many digits
/// overflows a `u64`.
const MAX_DIGITS: usize = 19;

/// Parses an integer as strictly as the server does: no plus sign, no leading
/// zeros and no spaces. Returns `None` for any other word and for an integer
/// outside the range of an `i64`.
#[inline]
pub fn integer(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word {
        b"0" => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        _ => (false, word),
    };
    if !matches!(digits, [b'1'..=b'9', ..]) || digits.len() > MAX_DIGITS {
        return None;
    }
    let mut size = 0u64;
    let mut rest = digits;
    // A receipt has sixteen digits, so two rounds read it.
    while let Some((eight, after)) = rest.split_first_chunk() {
        size = size * 100_000_000 + eight_digits(*eight)?;
        rest = after;
    }
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        size = size * 10 + u64::from(digit);
    }
    match negative {
        true => 0i64.checked_sub_unsigned(size),
        false => i64::try_from(size).ok(),
    }
}

/// The number that eight ASCII digits write; `None` if a byte is not a digit.
/// Neighbouring digits are combined into pairs, pairs into groups of four, and
/// these into the number, each for all of the word at once.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    // A digit has become 0 to 9, so its upper four bits are 0 and stay 0 when 6
    // is added.
    let beyond = (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xF0F0_F0F0_F0F0_F0F0;
    if beyond != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_strictly_as_by_the_server() {
        for (word, value) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-7", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
        ] {
            assert_eq!(integer(word.as_bytes()), value, "{word}");
        }
        for word in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "-01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "1_0",
            "--1",
            "9223372036854775808",
            "1\0",
            "x",
            "inf",
            "\u{661}",
        ] {
            assert_eq!(integer(word.as_bytes()), None, "{word}");
        }
        assert_eq!(integer(b"1\xff"), None);
    }

    #[test]
    fn each_byte_of_a_long_integer_must_be_a_digit() {
        let word = *b"1789012345678901";
        assert_eq!(integer(&word), Some(1_789_012_345_678_901));
        assert_eq!(integer(b"-9876543210987654321"), None);
        assert_eq!(
            integer(b"-8765432109876543210"),
            Some(-8_765_432_109_876_543_210)
        );
        for at in 1..word.len() {
            for byte in 0..=u8::MAX {
                let mut word = word;
                word[at] = byte;
                let text = std::str::from_utf8(&word).ok();
                let value = text.and_then(|text| text.parse().ok());
                assert_eq!(integer(&word), value, "{byte} at {at}");
            }
        }
    }
}
