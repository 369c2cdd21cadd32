//! The fields of an address or a form. Names and values may be any bytes.

use percent_encoding::{percent_decode, utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};

/// The characters that are kept as they are in an address: letters, digits and a few marks without
/// meaning.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Decoded fields, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    /// Reads the part of an address behind `?`, or a form.
    pub fn parse(text: &[u8]) -> Query {
        let fields = text.split(|byte| *byte == b'&').filter(|f| !f.is_empty());
        Query(
            fields
                .map(|field| {
                    let mut halves = field.splitn(2, |byte| *byte == b'=');
                    let name = decode(halves.next().unwrap_or_default());
                    let value = decode(halves.next().unwrap_or_default());
                    (String::from_utf8_lossy(&name).into_owned(), value)
                })
                .collect(),
        )
    }

    /// Returns the value of a field. An empty one counts as none, as forms send fields
    /// that were not filled in.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_slice())
            .filter(|v| !v.is_empty())
    }

    /// Returns all values of a field that comes several times.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let ours = self.0.iter().filter(move |(known, _)| known == name);
        ours.map(|(_, value)| value.as_slice())
    }

    /// Returns whether there is such a field, even if it is empty.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Returns the value of a field as text. Empty if there is none or it is no UTF-8.
    pub fn text(&self, name: &str) -> &str {
        let value = self.get(name).unwrap_or_default();
        std::str::from_utf8(value).unwrap_or_default()
    }

    /// Returns the fields without these.
    pub fn without(&self, names: &[&str]) -> Query {
        let kept = |(name, _): &&(String, Vec<u8>)| !names.contains(&name.as_str());
        Query(self.0.iter().filter(kept).cloned().collect())
    }

    /// Adds a field.
    pub fn with(mut self, name: &str, value: &[u8]) -> Query {
        self.0.push((name.to_owned(), value.to_vec()));
        self
    }

    /// Adds the fields of another one.
    pub fn and(mut self, other: &Query) -> Query {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Returns the address of a page with these fields.
    pub fn link(&self, page: &str) -> String {
        let fields: Vec<_> = self
            .0
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{}={}", encode(name.as_bytes()), encode(value)))
            .collect();
        match fields.is_empty() {
            true => page.to_owned(),
            false => format!("{page}?{}", fields.join("&")),
        }
    }
}

/// Returns the address of a page with one field.
pub fn link(page: &str, name: &str, value: &[u8]) -> String {
    Query::default().with(name, value).link(page)
}

fn decode(text: &[u8]) -> Vec<u8> {
    let blanks: Vec<u8> = text
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    percent_decode(&blanks).collect()
}

fn encode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => utf8_percent_encode(text, ENCODED).to_string(),
        Err(_) => percent_encoding::percent_encode(bytes, ENCODED).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_an_address() {
        let every: Vec<u8> = (0..=255).collect();
        for value in [&every[..], b"a b&c=d+e%", "订单".as_bytes(), b"<\">'"] {
            let link = link("queue", "queue", value);
            let allowed = |c: char| c.is_ascii_alphanumeric() || "?=%-_.~".contains(c);
            assert!(link.chars().all(allowed), "{link}");
            let query = Query::parse(link.split_once('?').unwrap().1.as_bytes());
            assert_eq!(query.get("queue"), Some(value));
        }
    }

    #[test]
    fn forms_are_read() {
        let query = Query::parse(b"a=1+2&b=&c&&d=%zz&a=3");
        assert_eq!(query.get("a"), Some(&b"1 2"[..]));
        assert_eq!(
            (query.get("b"), query.get("c"), query.get("x")),
            (None, None, None)
        );
        assert_eq!(query.text("d"), "%zz");
        assert_eq!(query.without(&["a", "d"]).link("p"), "p");
    }
}
