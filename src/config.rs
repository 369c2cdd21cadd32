//! The settings of the module: defaults of queues and limits of the server.

use std::sync::atomic::{AtomicI64, Ordering};

/// The largest value of a time or a count: what every client language can
/// hold exactly (2^53 - 1).
const MAX_EXACT: i64 = (1 << 53) - 1;

/// One setting: a number in a range, changeable while the server runs.
#[derive(Debug)]
pub struct Setting {
    /// Its name, without the `dq.` that the server puts before it.
    pub name: &'static str,
    /// Its value where nobody has set it.
    pub default: i64,
    /// Its smallest value.
    pub min: i64,
    /// Its largest value.
    pub max: i64,
    /// Whether it is written in bytes with units (`64mb`).
    pub memory: bool,
    value: AtomicI64,
}

impl Setting {
    const fn new(name: &'static str, default: i64, min: i64, max: i64) -> Self {
        Setting {
            name,
            default,
            min,
            max,
            memory: false,
            value: AtomicI64::new(default),
        }
    }

    const fn in_bytes(mut self) -> Self {
        self.memory = true;
        self
    }

    /// The value now.
    #[inline]
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The value now, of a setting whose range has no negative part.
    #[inline]
    pub fn unsigned(&self) -> u64 {
        self.get().unsigned_abs()
    }

    /// Sets the value; the caller has checked the range.
    pub fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Reads a value as it is written in a configuration; `None` where it is
    /// no number or out of range.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let value = if self.memory {
            parse_bytes(text)?
        } else {
            text.parse().ok()?
        };
        (self.min..=self.max).contains(&value).then_some(value)
    }
}

/// LEASE of queues that set none, in ms.
pub static LEASE: Setting = Setting::new("lease", 30_000, 1, MAX_EXACT);
/// RETRIES of queues that set none; -1 for all.
pub static RETRIES: Setting = Setting::new("retries", 3, -1, MAX_EXACT);
/// RETAIN of queues that set none, in ms.
pub static RETAIN: Setting = Setting::new("retain", 0, 0, MAX_EXACT);
/// RETAINCOUNT of queues that set none; 0 for no limit.
pub static RETAIN_COUNT: Setting = Setting::new("retain-count", 10_000, 0, MAX_EXACT);
/// The longest payload that is accepted, in bytes. A record holds it whole,
/// with ids and options beside it, and lengths are 32 bits wide.
pub static MAX_PAYLOAD: Setting =
    Setting::new("max-payload", 512 << 20, 1, u32::MAX as i64).in_bytes();
/// The longest that one slice of timer work, or of serving those who wait, may
/// hold the server, in microseconds.
pub static TICK_BUDGET_US: Setting = Setting::new("tick-budget-us", 500, 10, 1_000_000);

/// All of them.
pub static ALL: [&Setting; 6] = [
    &LEASE,
    &RETRIES,
    &RETAIN,
    &RETAIN_COUNT,
    &MAX_PAYLOAD,
    &TICK_BUDGET_US,
];

/// The setting of this full name (`dq.lease`, in any case).
pub fn find(name: &str) -> Option<&'static Setting> {
    let (module, name) = name.split_once('.')?;
    ALL.into_iter().find(|setting| {
        module.eq_ignore_ascii_case("dq") && name.eq_ignore_ascii_case(setting.name)
    })
}

/// Bytes with a unit, as the server's own settings are written.
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
    fn names_are_found_in_any_case_and_only_whole() {
        assert_eq!(find("dq.lease").map(|s| s.name), Some("lease"));
        assert_eq!(
            find("DQ.Retain-Count").map(|s| s.name),
            Some("retain-count")
        );
        for name in ["lease", "dq.", "dq.leases", "dx.lease", ""] {
            assert!(find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn values_are_numbers_in_range() {
        assert_eq!(LEASE.parse("7000"), Some(7000));
        assert_eq!(RETRIES.parse("-1"), Some(-1));
        for text in ["0", "-1", "9007199254740992", "x", "", "1.5", "7 "] {
            assert_eq!(LEASE.parse(text), None, "{text}");
        }
    }

    #[test]
    fn memory_has_the_units_of_the_server() {
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
            assert_eq!(MAX_PAYLOAD.parse(text), bytes, "{text}");
        }
    }
}
