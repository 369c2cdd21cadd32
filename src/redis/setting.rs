//! A setting of the module, and how it is parsed.

use std::sync::atomic::{AtomicI64, Ordering};

/// A setting: a number in a range, which can be changed while the server runs.
#[derive(Debug)]
pub struct Setting {
    /// Its name, without the `dq.` that the server puts before it.
    pub name: &'static str,
    /// Its value if it is not configured.
    pub default: i64,
    /// Its smallest value.
    pub min: i64,
    /// Its largest value.
    pub max: i64,
    /// Whether it is a number of bytes, which may have a unit (`64mb`).
    pub memory: bool,
    value: AtomicI64,
}

impl Setting {
    /// A number with this default and range, both ends included.
    pub const fn new(name: &'static str, default: i64, min: i64, max: i64) -> Self {
        Setting {
            name,
            default,
            min,
            max,
            memory: false,
            value: AtomicI64::new(default),
        }
    }

    /// Makes it a number of bytes, which may have a unit.
    pub const fn in_bytes(mut self) -> Self {
        self.memory = true;
        self
    }

    /// The current value.
    #[inline]
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The current value of a setting whose range has no negative numbers.
    #[inline]
    pub fn unsigned(&self) -> u64 {
        self.get().unsigned_abs()
    }

    /// Sets the value. The caller must have checked the range.
    pub fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Parses a value of a configuration. Returns `None` if it is not a number or out of range.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let value = if self.memory {
            parse_bytes(text)?
        } else {
            text.parse().ok()?
        };
        (self.min..=self.max).contains(&value).then_some(value)
    }
}

/// Parses a number of bytes with a unit, in the format of the server's own settings.
fn parse_bytes(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: i64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_must_be_a_number_in_the_range() {
        let setting = Setting::new("x", 1, -1, 9);
        for (text, value) in [("7", Some(7)), ("-1", Some(-1)), ("9", Some(9))] {
            assert_eq!(setting.parse(text), value, "{text}");
        }
        for text in ["-2", "10", "x", "", "1.5", "7 "] {
            assert_eq!(setting.parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_of_bytes_may_have_the_units_of_the_server() {
        let setting = Setting::new("x", 1, 1, u32::MAX as i64).in_bytes();
        for (text, bytes) in [
            ("1", Some(1)),
            ("10b", Some(10)),
            ("1k", Some(1000)),
            ("1KB", Some(1024)),
            ("64mb", Some(64 << 20)),
            ("4gb", None),
            ("0", None),
            ("1tb", None),
            ("mb", None),
            ("-1", None),
            ("9223372036854775807gb", None),
        ] {
            assert_eq!(setting.parse(text), bytes, "{text}");
        }
    }
}
