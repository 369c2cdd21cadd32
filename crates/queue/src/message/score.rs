//! The score of a message. It orders the messages of a group.
//!
//! Nanoseconds and ids of 64 bits are usual scores, and a double cannot tell neighbouring ones
//! apart. So integers of 64 bits are kept as such, and compare exactly with doubles.

use std::fmt;

use crate::Millis;

/// 2^53: up to here every integer is a double.
const TWO_53: u64 = 1 << 53;
const TWO_53_DOUBLE: f64 = TWO_53 as f64;
const TWO_63_DOUBLE: f64 = 9_223_372_036_854_775_808.0;
const TWO_64_DOUBLE: f64 = 18_446_744_073_709_551_616.0;
/// The bits of 2^53 and of 2^64 as doubles.
const TWO_53_BITS: u128 = 0x4340_0000_0000_0000;
const TWO_64_BITS: u128 = 0x43F0_0000_0000_0000;
/// The number of bits of [`Score::order`].
pub const ORDER_BITS: u32 = 66;
/// The order of zero.
const ZERO: u128 = 1 << (ORDER_BITS - 1);
/// The longest that the digits of a double can be.
const MOST_DIGITS: usize = 800;
/// Texts with at most this number of digits all name different doubles.
const SAFE_DIGITS: usize = 15;

/// A finite double or an integer of 64 bits, signed or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score(Value);

/// Each number has one form only.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    /// Any finite double except minus zero and the integers of the other two variants.
    Double(f64),
    /// An integer whose absolute value is greater than 2^53.
    Integer(i64),
    /// An integer of 2^63 or more.
    Large(u64),
}

/// The form of a score outside of this module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A double.
    Double(f64),
    /// An integer whose absolute value is greater than 2^53.
    Integer(i64),
    /// An integer of 2^63 or more.
    Large(u64),
}

/// The reason why a text is no score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadScore {
    /// The text is not a finite number.
    NoNumber,
    /// The text is a number that cannot be kept without rounding it.
    Inexact,
}

impl fmt::Display for BadScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadScore::NoNumber => "a finite number",
            BadScore::Inexact => {
                "a number that is kept exactly: an integer from -2^63 to 2^64-1, or a double"
            }
        })
    }
}

impl Score {
    /// The score of a double; `None` if it is not finite.
    pub fn of_double(number: f64) -> Option<Score> {
        let is_large = number.abs() > TWO_53_DOUBLE;
        let value = match number {
            number if !number.is_finite() => return None,
            number if is_large && (-TWO_63_DOUBLE..TWO_63_DOUBLE).contains(&number) => {
                Value::Integer(number as i64)
            }
            number if (TWO_63_DOUBLE..TWO_64_DOUBLE).contains(&number) => {
                Value::Large(number as u64)
            }
            // Adding zero turns minus zero into zero, since both must sort alike.
            number => Value::Double(number + 0.0),
        };
        Some(Score(value))
    }

    /// The score of an integer; `None` if it is not one of 64 bits.
    pub fn of_integer(number: i128) -> Option<Score> {
        if number.unsigned_abs() <= u128::from(TWO_53) {
            return Some(Score(Value::Double(number as f64)));
        }
        if let Ok(number) = i64::try_from(number) {
            return Some(Score(Value::Integer(number)));
        }
        let large = u64::try_from(number).ok()?;
        Some(Score(Value::Large(large)))
    }

    /// The score of a time, at most 2^53-1.
    pub fn of_time(time: Millis) -> Score {
        Score(Value::Double(time as f64))
    }

    /// Reads a number. An integer is kept as it is. A decimal becomes the nearest double, which must
    /// be the same number when it is written with as many digits.
    pub fn parse(text: &str) -> Result<Score, BadScore> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().map_err(|_| BadScore::Inexact)?;
            return Score::of_integer(number).ok_or(BadScore::Inexact);
        }
        let number: f64 = text.parse().map_err(|_| BadScore::NoNumber)?;
        let has_digits = digits.starts_with(|first: char| first == '.' || first.is_ascii_digit());
        match number.is_finite() {
            true if is_kept(digits, number) => Score::of_double(number).ok_or(BadScore::NoNumber),
            true => Err(BadScore::Inexact),
            false if has_digits => Err(BadScore::Inexact),
            false => Err(BadScore::NoNumber),
        }
    }

    /// The number.
    pub fn number(self) -> Number {
        match self.0 {
            Value::Double(number) => Number::Double(number),
            Value::Integer(number) => Number::Integer(number),
            Value::Large(number) => Number::Large(number),
        }
    }

    /// The score as a double, if that is the same number.
    pub fn as_double(self) -> Option<f64> {
        let double = match self.0 {
            Value::Double(number) => number,
            Value::Integer(number) => number as f64,
            Value::Large(number) => number as f64,
        };
        (Score::of_double(double) == Some(self)).then_some(double)
    }

    /// A number of [`ORDER_BITS`] bits that has the same order as the score.
    ///
    /// From 2^53 to 2^64 all doubles are integers, so there the number goes on by one for each
    /// integer, and below and above by one for each double.
    #[inline]
    pub fn order(self) -> u128 {
        let whole = |number: u64| TWO_53_BITS + u128::from(number - TWO_53);
        let (is_negative, distance) = match self.0 {
            Value::Double(number) => {
                let absolute = number.abs();
                let bits = u128::from(absolute.to_bits());
                let distance = if absolute <= TWO_53_DOUBLE {
                    bits
                } else if absolute < TWO_64_DOUBLE {
                    whole(absolute as u64)
                } else {
                    whole(u64::MAX) + 1 + (bits - TWO_64_BITS)
                };
                (number < 0.0, distance)
            }
            Value::Integer(number) => (number < 0, whole(number.unsigned_abs())),
            Value::Large(number) => (false, whole(number)),
        };
        match is_negative {
            true => ZERO - distance,
            false => ZERO + distance,
        }
    }
}

/// Whether a double is the number that its text names: it is the same number if it is written with
/// the same number of digits, or with as few digits as distinguish it. `0.1` is, though no double
/// is a tenth, because it comes back as `0.1`.
fn is_kept(text: &str, number: f64) -> bool {
    let digits = significant(text);
    match digits.len() {
        0 => number == 0.0,
        len if len <= SAFE_DIGITS && number.is_normal() => true,
        len if len > MOST_DIGITS => false,
        len => {
            significant(&format!("{number:.*e}", len - 1)) == digits
                || significant(&format!("{number:e}")) == digits
        }
    }
}

/// The digits of a number, without zeros at its beginning and at its end.
fn significant(text: &str) -> Vec<u8> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text).bytes();
    let digits = mantissa.filter(u8::is_ascii_digit);
    let mut digits: Vec<u8> = digits.skip_while(|digit| *digit == b'0').collect();
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0');
    digits.truncate(digits.len() - zeros.count());
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Score {
        Score::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn integers_of_64_bits_are_kept() {
        for (text, number) in [
            ("0", Number::Double(0.0)),
            ("-0", Number::Double(0.0)),
            ("9007199254740992", Number::Double(TWO_53_DOUBLE)),
            ("9007199254740993", Number::Integer(9_007_199_254_740_993)),
            ("-9007199254740993", Number::Integer(-9_007_199_254_740_993)),
            ("+9223372036854775807", Number::Integer(i64::MAX)),
            ("-9223372036854775808", Number::Integer(i64::MIN)),
            ("9223372036854775808", Number::Large(1 << 63)),
            ("18446744073709551615", Number::Large(u64::MAX)),
            ("1e18", Number::Integer(1_000_000_000_000_000_000)),
            ("1e19", Number::Large(10_000_000_000_000_000_000)),
            ("-1e19", Number::Double(-1e19)),
        ] {
            assert_eq!(parse(text).number(), number, "{text}");
        }
    }

    #[test]
    fn what_would_be_rounded_is_refused() {
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "99999999999999999999999999999999999999999999",
            "9007199254740993.5",
            "9007199254740993.0",
            "9007199254740993e0",
            "3.14159265358979323846",
            "1e-400",
            "1e400",
            "-1.5e999",
        ] {
            assert_eq!(Score::parse(text), Err(BadScore::Inexact), "{text}");
        }
        for text in [
            "",
            "-",
            "x",
            "nan",
            "inf",
            "-infinity",
            "1.5x",
            "0x1",
            "1e",
            ".",
        ] {
            assert_eq!(Score::parse(text), Err(BadScore::NoNumber), "{text}");
        }
        let long = format!("0.{}1", "0".repeat(10_000));
        assert_eq!(Score::parse(&long), Err(BadScore::Inexact));
        let long = format!("0.{}", "1".repeat(10_000));
        assert_eq!(Score::parse(&long), Err(BadScore::Inexact));
    }

    #[test]
    fn decimals_come_back_as_they_were_given() {
        for (text, number) in [
            ("0.1", 0.1),
            ("0.10", 0.1),
            ("0.10000000000000001", 0.1),
            ("0.30000000000000004", 0.1 + 0.2),
            ("-1.50", -1.5),
            ("1.7976931348623157e308", f64::MAX),
            ("5e-324", 5e-324),
            ("1563978617.123456", 1563978617.123456),
            // Both texts are equally near, and programs print either.
            ("1337874644380133.3", 1_337_874_644_380_133_f64 + 0.25),
            ("1337874644380133.2", 1_337_874_644_380_133_f64 + 0.25),
            ("0.000", 0.0),
            ("-0.0", 0.0),
            (".5", 0.5),
            (
                "0.1000000000000000055511151231257827021181583404541015625",
                0.1,
            ),
        ] {
            assert_eq!(parse(text), Score::of_double(number).unwrap(), "{text}");
        }
    }

    #[test]
    fn scores_are_ordered_by_their_numbers() {
        let sorted = [
            "-1.7976931348623157e308",
            "-1e19",
            "-9223372036854775808",
            "-9223372036854775807",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-5e-324",
            "0",
            "5e-324",
            "1",
            "9007199254740991",
            "9007199254740992",
            "9007199254740993",
            "9007199254740994.0",
            "9007199254740995",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616.0",
            "1.7976931348623157e308",
        ];
        let orders = sorted.map(|text| parse(text).order());
        assert!(orders.is_sorted_by(|a, b| a < b), "{orders:x?}");
        assert!(orders.iter().all(|order| order >> ORDER_BITS == 0));
        assert_eq!(parse("9007199254740994.0"), parse("9007199254740994"));
    }

    proptest! {
        #[test]
        fn any_integer_is_kept_and_ordered(a in any::<u64>(), b in any::<i64>(), by in 0..64u32) {
            let (a, b) = (i128::from(a >> by), i128::from(b >> by));
            let [one, other] = [a, b].map(|n| parse(&n.to_string()));
            prop_assert_eq!(one.order().cmp(&other.order()), a.cmp(&b));
            for (score, n) in [(one, a), (other, b)] {
                let kept = match score.number() {
                    Number::Double(n) => n as i128,
                    Number::Integer(n) => n.into(),
                    Number::Large(n) => n.into(),
                };
                prop_assert_eq!(kept, n);
            }
        }

        #[test]
        fn any_double_is_kept_and_ordered(a in any::<f64>(), b in any::<f64>()) {
            let [one, other] = [a, b].map(Score::of_double);
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert_eq!(one.order().cmp(&other.order()), (a + 0.0).total_cmp(&(b + 0.0)));
                prop_assert_eq!(one.as_double(), Some(a + 0.0));
                prop_assert_eq!(parse(&format!("{a:e}")), one);
                prop_assert_eq!(parse(&format!("{b:.16e}")), other);
            }
        }
    }
}
