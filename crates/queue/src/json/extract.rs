//! Extracts values from a document in one pass.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{JsonError, Path, Scalar};
use crate::quote::quote;

/// The most objects and arrays that may be nested in each other, including the
/// root.
pub const MAX_DEPTH: usize = 128;

/// Returns the values at `paths` in `payload`, in the order of `paths`.
///
/// The payload must be one JSON document in UTF-8 whose root is an object,
/// nested at most [`MAX_DEPTH`] levels. All of it is checked. Of fields with
/// the same name the last one counts, at every level. The token of a path under
/// an array is an index: `0`, or digits without a leading zero. A number may be
/// of any size; but a number beyond a double is refused as out of range if a
/// path continues below it.
///
/// Errors: every [`JsonError`]. It is `BadPath` also if one path continues
/// below another, since no document has a value at both.
///
/// Cost: O(payload), plus O(log paths) for each field on the way to a path, however
/// often a field comes; memory O(paths), and none for values that are not asked for.
pub fn extract<'a>(payload: &'a [u8], paths: &[Path]) -> Result<Vec<Scalar<'a>>, JsonError> {
    let text = std::str::from_utf8(payload).map_err(|error| JsonError::NotUtf8 {
        position: error.valid_up_to(),
    })?;
    check_depth(payload)?;
    let wanted = sort(paths)?;
    let mut found = BTreeMap::new();

    let mut document = serde_json::Deserializer::from_str(text);
    // The limit of serde_json is one level lower, and it only counts levels on
    // the way to a path. `check_depth` has checked ours.
    document.disable_recursion_limit();
    let walk = Walk {
        wanted: &wanted,
        first: 0,
        found: &mut found,
        depth: 0,
    };
    document
        .deserialize_map(walk)
        .and_then(|()| document.end())
        .map_err(|error| bad_json(text, 0, &error))?;

    let value = |path: &Path| {
        let at = wanted.binary_search_by(|other| other.tokens().cmp(path.tokens()));
        found.get(&at.ok()?)
    };
    paths
        .iter()
        .map(|path| match value(path) {
            Some(Found::Raw(raw)) => scalar(text, raw),
            Some(Found::WrongType) => Err(JsonError::WrongType {
                path: quote(path.as_str().as_bytes()),
            }),
            None => Err(JsonError::Missing {
                path: quote(path.as_str().as_bytes()),
            }),
        })
        .collect()
}

/// The value that was found at a path so far.
#[derive(Clone, Copy)]
enum Found<'a> {
    WrongType,
    /// The text of a string (including its quotes), number or boolean.
    Raw(&'a str),
}

impl<'a> Found<'a> {
    fn of(raw: &'a RawValue) -> Self {
        match raw.get().as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b't' | b'f') => Found::Raw(raw.get()),
            _ => Found::WrongType,
        }
    }
}

/// Sorts `paths` by their tokens, so that all paths below one field are
/// neighbours and are found by bisection. Equal ones are there once.
///
/// Errors: `BadPath` if a path continues below another.
fn sort(paths: &[Path]) -> Result<Vec<&Path>, JsonError> {
    let mut wanted: Vec<&Path> = paths.iter().collect();
    wanted.sort_by(|a, b| a.tokens().cmp(b.tokens()));
    wanted.dedup_by(|a, b| a.tokens() == b.tokens());
    for (upper, lower) in wanted.iter().zip(wanted.iter().skip(1)) {
        if lower.tokens().starts_with(upper.tokens()) {
            return Err(JsonError::BadPath {
                path: quote(lower.as_str().as_bytes()),
                what: "another path names a value above it",
            });
        }
    }
    Ok(wanted)
}

/// The visitor of a value that has paths below it, or where a path ends. `wanted`
/// has only these paths. All of them have the same first `depth` tokens.
struct Walk<'w, 'p, 'a> {
    wanted: &'w [&'p Path],
    /// The place of the first of them among all paths.
    first: usize,
    /// The values that were found, by the place of the path.
    found: &'w mut BTreeMap<usize, Found<'a>>,
    depth: usize,
}

impl<'p, 'a> Walk<'_, 'p, 'a> {
    /// The token of a path on this level.
    fn token(&self, path: &'p Path) -> Option<&'p str> {
        path.tokens().get(self.depth).map(String::as_str)
    }

    /// The range of the paths whose next token is `token`; `None` if there are
    /// none.
    fn below(&self, token: &str) -> Option<Range<usize>> {
        let bound = |past: bool| {
            self.wanted.partition_point(|path| match self.token(path) {
                Some(own) if past => own <= token,
                Some(own) => own < token,
                None => true,
            })
        };
        let first = bound(false);
        // Most fields are not asked for, so the second bisection is only done
        // for a hit.
        let hit = self.token(self.wanted.get(first)?)? == token;
        hit.then(|| first..bound(true))
    }

    /// The visitor of a value on the next level, for the paths in `range`.
    fn enter(&mut self, range: Range<usize>) -> Option<Walk<'_, 'p, 'a>> {
        let walk = Walk {
            wanted: self.wanted.get(range.clone())?,
            first: self.first + range.start,
            found: self.found,
            depth: self.depth.saturating_add(1),
        };
        // An earlier field of the same name does not count any more, nor does
        // anything found below it. A field may come very often, so only what was
        // found is looked at.
        let own = walk.first..walk.first + walk.wanted.len();
        while let Some((place, _)) = walk.found.range(own.clone()).next() {
            let place = *place;
            walk.found.remove(&place);
        }
        Some(walk)
    }

    /// Whether a path ends here. Then it is the only one, since none continues below
    /// another.
    fn is_at_end(&self) -> bool {
        let path = self.wanted.first();
        path.is_some_and(|path| self.token(path).is_none())
    }
}

impl<'a> DeserializeSeed<'a> for Walk<'_, '_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<(), D::Error> {
        if self.is_at_end() {
            let raw = <&RawValue as serde::Deserialize>::deserialize(value)?;
            self.found.insert(self.first, Found::of(raw));
            Ok(())
        } else {
            value.deserialize_any(self)
        }
    }
}

impl<'a> Visitor<'a> for Walk<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(range) = map.next_key_seed(Key { walk: &self })? {
            match range.and_then(|range| self.enter(range)) {
                Some(walk) => map.next_value_seed(walk)?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
        for index in 0_usize.. {
            let more = match self
                .below(&index.to_string())
                .and_then(|range| self.enter(range))
            {
                Some(walk) => seq.next_element_seed(walk)?.is_some(),
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    // A scalar has nothing below it, so the paths stay missing.

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Finds the name of a field without copying it.
struct Key<'k, 'w, 'p, 'a> {
    walk: &'k Walk<'w, 'p, 'a>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_, '_, '_> {
    type Value = Option<Range<usize>>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_, '_, '_> {
    type Value = Option<Range<usize>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.walk.below(name))
    }
}

/// Refuses a payload that is nested deeper than [`MAX_DEPTH`]. serde_json does
/// not count the levels of values that it skips.
fn check_depth(payload: &[u8]) -> Result<(), JsonError> {
    // Few documents have this many brackets at all, and counting them is much
    // cheaper than finding out which of them are inside strings. The chunks are
    // so short that their counts fit in a byte, so the compiler compares 16
    // bytes at a time.
    let count = |chunk: &[u8]| {
        chunk.iter().fold(0_u8, |count, byte| {
            count.wrapping_add(u8::from(*byte | 0x20 == b'{'))
        })
    };
    let opening: usize = payload
        .chunks(usize::from(u8::MAX))
        .map(|chunk| usize::from(count(chunk)))
        .sum();
    if opening <= MAX_DEPTH {
        return Ok(());
    }
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (position, byte) in payload.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth = depth.saturating_add(1);
                if depth > MAX_DEPTH {
                    return Err(JsonError::TooDeep { position });
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// The value that `raw`, a slice of `text`, represents.
fn scalar<'a>(text: &str, raw: &'a str) -> Result<Scalar<'a>, JsonError> {
    let Some(inner) = raw.strip_prefix('"') else {
        return Ok(match raw {
            "true" => Scalar::Bool(true),
            "false" => Scalar::Bool(false),
            digits => Scalar::Number(digits),
        });
    };
    if !raw.contains('\\') {
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        return Ok(Scalar::Str(Cow::Borrowed(inner)));
    }
    // The escapes are known to be valid, except for surrogates without a
    // partner.
    match serde_json::from_str::<String>(raw) {
        Ok(unescaped) => Ok(Scalar::Str(Cow::Owned(unescaped))),
        Err(error) => {
            let start = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            Err(bad_json(text, start, &error))
        }
    }
}

/// Converts an error of serde_json about `text` from byte `start` on. Its
/// position becomes an offset into all of `text`.
fn bad_json(text: &str, start: usize, error: &serde_json::Error) -> JsonError {
    use serde_json::error::Category;

    let parsed = text.get(start..).unwrap_or_default();
    match error.classify() {
        Category::Data => JsonError::BadJson {
            position: text.len().saturating_sub(parsed.trim_start().len()),
            // The text of serde_json would quote the payload.
            what: "not an object".to_owned(),
        },
        Category::Eof => JsonError::BadJson {
            position: text.len(),
            what: "unexpected end".to_owned(),
        },
        Category::Syntax | Category::Io => {
            let line: usize = parsed
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1))
                .map(str::len)
                .sum();
            let what = error.to_string();
            let what = match what.rsplit_once(" at line ") {
                Some((what, _)) => what.to_owned(),
                None => what,
            };
            // Columns are counted from 1, and a line break is column 0 of the
            // line that it begins.
            let mut position = start
                .saturating_add(line)
                .saturating_add(error.column())
                .saturating_sub(1);
            // A control character in a skipped string is reported at the byte
            // before it.
            let byte = text.as_bytes().get(position);
            if what.starts_with("control character") && byte.is_some_and(|byte| *byte >= b' ') {
                position = position.saturating_add(1);
            }
            JsonError::BadJson { position, what }
        }
    }
}
