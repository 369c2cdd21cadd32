//! Plain keys in memory, as simple as they can be: what a server has beside its queues, where tests
//! have no server.

use std::collections::BTreeMap;

use super::refusal::{double, integer};
use super::{Holds, Outcome, Repeat};
use crate::Millis;

/// A value with the time from which on it counts as missing, in Unix ms.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    value: Value,
    expires: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
}

/// The plain keys of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlainKeys {
    stored: BTreeMap<Vec<u8>, Stored>,
}

impl PlainKeys {
    /// Removes what has expired, as a primary does when it looks at a key.
    pub fn expire(&mut self, now: Millis) {
        let is_over = |stored: &Stored| stored.expires.is_some_and(|at| at <= now);
        self.stored.retain(|_, stored| !is_over(stored));
    }

    /// The type of value that a key holds.
    pub fn holds(&self, key: &[u8]) -> Holds {
        match self.stored.get(key).map(|stored| &stored.value) {
            None => Holds::Nothing,
            Some(Value::Text(_)) => Holds::String,
            Some(Value::List(_)) => Holds::List,
            Some(Value::Hash(_)) => Holds::Hash,
        }
    }

    /// The string in a key.
    pub fn text(&self, key: &[u8]) -> Option<&[u8]> {
        match &self.stored.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A field of the hash in a key.
    pub fn field(&self, key: &[u8], field: &[u8]) -> Option<&[u8]> {
        match &self.stored.get(key)?.value {
            Value::Hash(fields) => fields.get(field).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The integer in a key, 0 where there is none.
    pub fn count(&self, key: &[u8]) -> i64 {
        self.text(key).and_then(integer).unwrap_or(0)
    }

    /// All keys whose string is no number, and those that hold something else: what may decide
    /// about later calls, with the time from now on until they expire.
    pub fn shape(&self, now: Millis) -> String {
        let is_counter =
            |value: &Value| matches!(value, Value::Text(text) if double(text).is_some());
        let told = self.stored.iter().map(|(key, stored)| {
            let left = stored.expires.map(|at| at.saturating_sub(now));
            let value = (!is_counter(&stored.value)).then_some(&stored.value);
            format!("{key:?} {value:?} {left:?};")
        });
        told.collect()
    }

    /// Does an effect as the log has it: on a replica, where a key that has expired may still be,
    /// or for the first time on a primary.
    ///
    /// # Errors
    /// A command that this server does not know, or that the value refuses.
    pub fn repeat(&mut self, key: &[u8], repeat: &Repeat<'_>) -> Result<Outcome, String> {
        if repeat.is_new {
            self.stored.remove(key);
        }
        let words: Vec<&[u8]> = repeat.words.iter().map(|word| &**word).collect();
        let Some((name, words)) = words.split_first() else {
            return Err("an effect without words".to_owned());
        };
        let number = |text: &[u8]| integer(text).ok_or("no number");
        match (*name, words) {
            (b"SET", [value]) => self.set(key, value, None),
            (b"SET", [value, _, at]) => self.set(key, value, Millis::try_from(number(at)?).ok()),
            (b"DEL", []) => {
                let had = self.stored.remove(key).is_some();
                return Ok(Outcome::Integer(i64::from(had)));
            }
            (b"PEXPIREAT", [at]) => {
                let at = Millis::try_from(number(at)?).ok();
                let stored = self.stored.get_mut(key);
                let has = stored.is_some();
                stored.into_iter().for_each(|stored| stored.expires = at);
                return Ok(Outcome::Integer(i64::from(has)));
            }
            (b"INCRBY", [by]) => match self.value(key, Value::Text(b"0".to_vec())) {
                Value::Text(text) => return add(text, number(by)?),
                _ => return Err("another type".to_owned()),
            },
            (b"HINCRBY", [field, by]) => match self.value(key, Value::Hash(BTreeMap::new())) {
                Value::Hash(fields) => {
                    let text = fields.entry(field.to_vec()).or_insert(b"0".to_vec());
                    return add(text, number(by)?);
                }
                _ => return Err("another type".to_owned()),
            },
            (b"RPUSH", [value]) => match self.value(key, Value::List(Vec::new())) {
                Value::List(values) => {
                    values.push(value.to_vec());
                    return Ok(Outcome::Integer(values.len() as i64));
                }
                _ => return Err("another type".to_owned()),
            },
            _ => return Err(format!("{} is not known", String::from_utf8_lossy(name))),
        }
        Ok(Outcome::Done)
    }

    fn set(&mut self, key: &[u8], value: &[u8], expires: Option<Millis>) {
        let value = Value::Text(value.to_vec());
        self.stored.insert(key.to_vec(), Stored { value, expires });
    }

    /// The value in a key, which is made if there is none.
    fn value(&mut self, key: &[u8], new: Value) -> &mut Value {
        let new = Stored {
            value: new,
            expires: None,
        };
        &mut self.stored.entry(key.to_vec()).or_insert(new).value
    }
}

/// Adds to the number that a text is.
fn add(text: &mut Vec<u8>, by: i64) -> Result<Outcome, String> {
    let sum = integer(text).and_then(|number| number.checked_add(by));
    let sum = sum.ok_or("no number")?;
    *text = sum.to_string().into_bytes();
    Ok(Outcome::Integer(sum))
}
