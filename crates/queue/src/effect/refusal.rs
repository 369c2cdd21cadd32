//! Whether effects can be done on the keys as they are.

use super::{Effect, Holds, Verb};

/// Why an effect cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The key holds a value of another type.
    WrongType,
    /// The stored value is not an integer, or the sum would be no number.
    NotNumber,
    /// The sum would not fit into 64 bits, or the stream has given its greatest id.
    Overflow,
}

impl Refused {
    /// The code of the error.
    pub fn code(self) -> &'static str {
        match self {
            Refused::WrongType => "WRONGTYPE",
            Refused::NotNumber => "NOTNUMBER",
            Refused::Overflow => "OVERFLOW",
        }
    }
}

/// The keys as they are, for [`refusal`]. Each question is about the key of an effect.
pub trait Keys {
    /// The type of value that the key holds.
    fn holds(&mut self, effect: &Effect<'_>) -> Holds;
    /// The string in the key, which holds one, or its beginning where it is too long for a number.
    fn number(&mut self, effect: &Effect<'_>) -> Option<Vec<u8>>;
    /// The value of this field of the hash in the key.
    fn field(&mut self, effect: &Effect<'_>, field: &[u8]) -> Option<Vec<u8>>;
    /// The score of this member of the sorted set in the key.
    fn score(&mut self, effect: &Effect<'_>, member: &[u8]) -> Option<f64>;
    /// The greatest id that the stream in the key has given.
    fn last_id(&mut self, effect: &Effect<'_>) -> Option<(u64, u64)>;
}

/// The first effect that cannot be done on the keys as they are, by its place, and why; `None` if
/// all can be done.
pub fn refusal(effects: &[Effect<'_>], keys: &mut impl Keys) -> Option<(usize, Refused)> {
    effects.iter().enumerate().find_map(|(at, effect)| {
        let earlier = effects.iter().take(at);
        let same = |other: &&Effect<'_>| other.verb == Verb::XAdd && other.key == effect.key;
        let added = earlier.filter(same).count() as u64;
        refused(effect, added, keys).map(|why| (at, why))
    })
}

/// Why an effect cannot be done. `added` is the number of entries that earlier effects add to its
/// stream.
fn refused(effect: &Effect<'_>, added: u64, keys: &mut impl Keys) -> Option<Refused> {
    let found = keys.holds(effect);
    match (effect.verb.row().needs, found) {
        (_, Holds::Queue) => return Some(Refused::WrongType),
        (None, _) | (Some(_), Holds::Nothing) => {}
        (Some(needed), found) if needed == found => {}
        (Some(_), _) => return Some(Refused::WrongType),
    }
    if found == Holds::Nothing {
        return None;
    }
    let by = |at: usize| integer(effect.words.get(at).copied().unwrap_or_default());
    match effect.verb {
        Verb::IncrBy => sum(keys.number(effect), by(0)),
        Verb::HIncrBy => {
            let field = effect.words.first().copied().unwrap_or_default();
            sum(keys.field(effect, field), by(1))
        }
        Verb::ZIncrBy => {
            let [by, member] = effect.words.as_slice() else {
                return None;
            };
            let score = keys.score(effect, member).unwrap_or(0.0);
            let is_none = double(by).is_none_or(|by| (score + by).is_nan());
            is_none.then_some(Refused::NotNumber)
        }
        Verb::XAdd => {
            let (ms, seq) = keys.last_id(effect)?;
            let is_over = ms == u64::MAX && u64::MAX - seq <= added;
            is_over.then_some(Refused::Overflow)
        }
        _ => None,
    }
}

fn sum(stored: Option<Vec<u8>>, by: Option<i64>) -> Option<Refused> {
    let stored = match stored {
        Some(text) => integer(&text),
        None => Some(0),
    };
    match (stored, by) {
        (Some(stored), Some(by)) => match stored.checked_add(by) {
            Some(_) => None,
            None => Some(Refused::Overflow),
        },
        _ => Some(Refused::NotNumber),
    }
}

/// The integer that a text is, as the server reads one: without a plus, spaces or leading zeros.
pub fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_odd = matches!(text, [b'-', b'0', ..] | [b'0', _, ..] | [b'+', ..]);
    (!is_odd).then_some(number)
}

/// The number that a text is, which may be infinite.
pub fn double(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}
