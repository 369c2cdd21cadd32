//! Paths to values in a document.

use super::JsonError;
use crate::quote::quote;

/// The path to one value in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// A field of the root object, by its name.
    Field(String),
    /// A JSON Pointer (RFC 6901).
    Pointer {
        /// The pointer as the client wrote it.
        text: String,
        /// Its reference tokens, unescaped; at least one.
        tokens: Vec<String>,
    },
}

impl Path {
    /// Parses a path: a JSON Pointer if it starts with `/`, else the name of a
    /// field of the root. O(length).
    ///
    /// Errors: [`JsonError::BadPath`] if it is not UTF-8, or if a `~` in a
    /// pointer is followed by neither `0` nor `1`.
    pub fn parse(path: &[u8]) -> Result<Path, JsonError> {
        let bad = |what| JsonError::BadPath {
            path: quote(path),
            what,
        };
        let text = std::str::from_utf8(path).map_err(|_| bad("not UTF-8"))?;
        let Some(pointer) = text.strip_prefix('/') else {
            return Ok(Path::Field(text.to_owned()));
        };
        let tokens = pointer
            .split('/')
            .map(|token| unescape(token).ok_or_else(|| bad("'~' must be written '~0'")))
            .collect::<Result<_, _>>()?;
        Ok(Path::Pointer {
            text: text.to_owned(),
            tokens,
        })
    }

    /// The path as the client wrote it.
    pub fn as_str(&self) -> &str {
        match self {
            Path::Field(name) => name,
            Path::Pointer { text, .. } => text,
        }
    }

    /// The field names and array indices on the way down from the root; at
    /// least one.
    pub fn tokens(&self) -> &[String] {
        match self {
            Path::Field(name) => std::slice::from_ref(name),
            Path::Pointer { tokens, .. } => tokens,
        }
    }
}

/// Replaces `~1` by `/` and `~0` by `~`. Returns `None` if there is any other
/// `~`.
fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (c, rest) = match part.strip_prefix('0') {
            Some(rest) => ('~', rest),
            None => ('/', part.strip_prefix('1')?),
        };
        out.push(c);
        out.push_str(rest);
    }
    Some(out)
}
