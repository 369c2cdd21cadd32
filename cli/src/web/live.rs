//! The parts of a page that are replaced by their newer versions, so that only changes go
//! over the wire.
//!
//! A part is an element with `data-live` and an id. Parts may be within parts: if only an
//! inner one has changed, only that is sent. The server remembers for a while what it has
//! sent under a number, and the script of the page tells the number.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{json, Map, Value};

/// Maximum number of versions that are remembered. Each open page needs one.
const MOST: usize = 256;

/// Elements without an end tag.
const VOID: [&str; 6] = ["br", "hr", "img", "input", "link", "meta"];

/// A part of a page, as positions in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part<'a> {
    id: &'a str,
    start: usize,
    /// The end of its start tag.
    inside: usize,
    /// The beginning of its end tag.
    close: usize,
    end: usize,
}

/// The remembered state of a part: hashes of its start tag, and of all of it without the
/// parts that are in it.
type Known = HashMap<u64, (u64, u64)>;

/// The versions that were sent, by number.
#[derive(Default)]
pub struct Versions(Mutex<Sent>);

#[derive(Default)]
struct Sent {
    /// The number of the newest version.
    newest: u64,
    versions: VecDeque<(u64, Arc<Known>)>,
}

impl Versions {
    /// Remembers a whole page. Returns its number.
    pub fn remember(&self, page: &str) -> u64 {
        self.add(known(page, &parts(page)), None)
    }

    fn add(&self, known: Known, before: Option<u64>) -> u64 {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.newest += 1;
        let number = sent.newest;
        sent.versions.retain(|(known, _)| Some(*known) != before);
        if sent.versions.len() >= MOST {
            sent.versions.pop_front();
        }
        sent.versions.push_back((number, Arc::new(known)));
        number
    }

    /// Returns the changes since the version of this number: the insides of parts, and
    /// whole parts, by their ids. If the number is not remembered, that is everything.
    pub fn changes(&self, page: &str, since: u64) -> Value {
        let before = {
            let sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = sent.versions.iter().find(|(number, _)| *number == since);
            found.map(|(_, known)| Arc::clone(known))
        };
        let before = before.unwrap_or_default();
        let parts = parts(page);
        let now = known(page, &parts);
        let (mut inside, mut whole) = (Map::new(), Map::new());
        let mut sent_to = 0;
        for (i, part) in parts.iter().enumerate() {
            // The part is inside a part that is sent as a whole.
            if part.end <= sent_to {
                continue;
            }
            let key = hash(part.id);
            let (old, new) = (before.get(&key), now.get(&key));
            if old == new {
                continue;
            }
            let has_parts = parts.get(i + 1).is_some_and(|next| next.start < part.end);
            let same_start = old.map(|old| old.0) == new.map(|new| new.0);
            let text = |from, to| Value::from(page.get(from..to).unwrap_or_default());
            if same_start && !has_parts {
                inside.insert(part.id.to_owned(), text(part.inside, part.close));
            } else {
                whole.insert(part.id.to_owned(), text(part.start, part.end));
            }
            sent_to = part.end;
        }
        let number = self.add(now, Some(since));
        json!({ "v": number, "in": inside, "out": whole })
    }
}

fn hash(text: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn known(page: &str, parts: &[Part]) -> Known {
    let mut known = Known::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        let mut from = part.start;
        for inner in parts.iter().skip(i + 1) {
            if inner.start >= part.end {
                break;
            }
            if inner.start < from {
                continue;
            }
            page.get(from..inner.start).hash(&mut hasher);
            inner.id.hash(&mut hasher);
            from = inner.end;
        }
        page.get(from..part.end).hash(&mut hasher);
        let start = hash(page.get(part.start..part.inside));
        known.insert(hash(part.id), (start, hasher.finish()));
    }
    known
}

/// Finds the parts of a page, in the order of their beginnings. The page is of our own
/// templates, which escape all text, so each `<` begins a tag.
fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut open: Vec<(&str, Option<usize>)> = Vec::new();
    let mut at = 0;
    while let Some(start) = page.get(at..).and_then(|rest| rest.find('<')) {
        let start = at + start;
        let Some(length) = page.get(start..).and_then(|rest| rest.find('>')) else {
            break;
        };
        let end = start + length + 1;
        at = end;
        let tag = page.get(start + 1..end - 1).unwrap_or_default();
        if let Some(name) = tag.strip_prefix('/') {
            // A tag that was never opened would be a mistake of the template.
            while let Some((opened, part)) = open.pop() {
                if let Some(part) = part.and_then(|i| parts.get_mut(i)) {
                    (part.close, part.end) = (start, end);
                }
                if opened == name {
                    break;
                }
            }
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if name.starts_with('!') || VOID.contains(&name) {
            continue;
        }
        let id = is_live(tag).then(|| attribute(tag, "id")).flatten();
        if let Some(id) = id {
            parts.push(Part {
                id,
                start,
                inside: end,
                close: end,
                end,
            });
        }
        open.push((name, id.map(|_| parts.len() - 1)));
    }
    parts
}

fn is_live(tag: &str) -> bool {
    tag.split(' ').any(|word| word == "data-live")
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let rest = tag.get(start..)?;
    rest.get(..rest.find('"')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(a: &str, b: &str, rest: &str) -> String {
        format!(
            "<!DOCTYPE html><main><input name=\"x\"><div id=\"list\" data-live>{rest}\
             <td class=\"n\" id=\"a\" data-live>{a}</td><td id=\"b\" data-live><b>{b}</b></td></div>\
             <p id=\"other\" data-live>same</p></main>"
        )
    }

    #[test]
    fn parts_are_found_with_their_ends() {
        let page = page("1", "2", "");
        let found: Vec<_> = parts(&page)
            .iter()
            .map(|part| (part.id, &page[part.inside..part.close]))
            .collect();
        assert_eq!(
            found[1..],
            [("a", "1"), ("b", "<b>2</b>"), ("other", "same")]
        );
        assert_eq!(found[0].0, "list");
        assert!(found[0].1.starts_with("<td") && found[0].1.ends_with("</td>"));
    }

    #[test]
    fn only_what_has_changed_is_sent() {
        let versions = Versions::default();
        let first = versions.remember(&page("1", "2", ""));
        let next = versions.changes(&page("1", "2", ""), first);
        assert_eq!((&next["in"], &next["out"]), (&json!({}), &json!({})));
        let v = next["v"].as_u64().unwrap();
        let next = versions.changes(&page("7", "2", ""), v);
        assert_eq!(
            (&next["in"], &next["out"]),
            (&json!({"a": "7"}), &json!({}))
        );
        // A changed frame of the list is sent with all its content.
        let v = next["v"].as_u64().unwrap();
        let next = versions.changes(&page("8", "2", "new"), v);
        assert_eq!(next["in"], json!({}));
        assert_eq!(next["out"].as_object().unwrap().len(), 1);
        assert!(next["out"]["list"].as_str().unwrap().contains("new"));
        // A version that is not remembered.
        let next = versions.changes(&page("8", "2", ""), 12345);
        assert_eq!(next["out"].as_object().unwrap().len(), 2);
    }

    #[test]
    fn a_bounded_number_of_versions_is_remembered() {
        let versions = Versions::default();
        let first = versions.remember(&page("1", "2", ""));
        for _ in 0..MOST {
            versions.remember(&page("1", "2", ""));
        }
        assert_eq!(versions.0.lock().unwrap().versions.len(), MOST);
        let all = versions.changes(&page("1", "2", ""), first);
        assert_eq!(all["out"].as_object().unwrap().len(), 2);
    }
}
