//! Compares extraction from random documents with a tree, and feeds it random
//! bytes.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::quote::quote;

/// A document as it was generated, so that the expected values do not come from
/// a parser.
#[derive(Clone, Debug)]
enum Tree {
    Null,
    Bool(bool),
    Number(String),
    Str(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    fn write(&self, escaped: bool, out: &mut String) {
        match self {
            Tree::Null => out.push_str("null"),
            Tree::Bool(value) => out.push_str(if *value { " true" } else { "false\t" }),
            Tree::Number(digits) => out.push_str(digits),
            Tree::Str(value) => write_str(value, escaped, out),
            Tree::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { " ,\n" } else { " " });
                    item.write(escaped, out);
                }
                out.push(']');
            }
            Tree::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "\r\n" });
                    write_str(name, escaped, out);
                    out.push_str(" : ");
                    value.write(escaped, out);
                }
                out.push_str(" }");
            }
        }
    }

    fn at(&self, tokens: &[String]) -> Option<&Tree> {
        let Some((token, rest)) = tokens.split_first() else {
            return Some(self);
        };
        match self {
            Tree::Object(fields) => fields
                .iter()
                .rev()
                .find(|(name, _)| name == token)?
                .1
                .at(rest),
            Tree::List(items) => {
                let canonical = |i: &usize| i.to_string() == *token;
                items.get(token.parse().ok().filter(canonical)?)?.at(rest)
            }
            _ => None,
        }
    }
}

fn write_str(value: &str, escaped: bool, out: &mut String) {
    if !escaped {
        out.push_str(&serde_json::to_string(value).unwrap());
        return;
    }
    out.push('"');
    let mut units = [0; 2];
    for c in value.chars() {
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04X}"));
        }
    }
    out.push('"');
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[ab01]", 1 => "[a~/0]{0,2}", 1 => "\\PC{0,3}"]
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?".prop_map(Tree::Number),
        ".{0,6}".prop_map(Tree::Str),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::List),
            prop::collection::vec((name(), inner), 0..6).prop_map(Tree::Object),
        ]
    })
}

fn document() -> impl Strategy<Value = (Tree, String)> {
    let fields = prop::collection::vec((name(), tree()), 0..6).prop_map(Tree::Object);
    (fields, any::<bool>()).prop_map(|(tree, escaped)| {
        let mut text = String::new();
        tree.write(escaped, &mut text);
        (tree, text)
    })
}

fn some_paths() -> impl Strategy<Value = Vec<Path>> {
    let pointer = prop::collection::vec(name(), 1..4).prop_map(|tokens| {
        let escape = |t: &String| t.replace('~', "~0").replace('/', "~1");
        let tokens: Vec<String> = tokens.iter().map(escape).collect();
        Path::parse(format!("/{}", tokens.join("/")).as_bytes()).unwrap()
    });
    let field = "[ab]{0,1}".prop_map(|name| Path::parse(name.as_bytes()).unwrap());
    prop::collection::vec(prop_oneof![pointer, field], 1..5)
}

proptest! {
    #[test]
    fn extracted_values_equal_those_of_the_generated_tree((tree, text) in document(), asked in some_paths()) {
        let expected: Result<Vec<Scalar>, JsonError> = asked
            .iter()
            .map(|path| match tree.at(path.tokens()) {
                Some(Tree::Bool(value)) => Ok(Scalar::Bool(*value)),
                Some(Tree::Number(digits)) => Ok(Scalar::Number(digits)),
                Some(Tree::Str(value)) => Ok(Scalar::Str(Cow::Borrowed(value))),
                Some(_) => Err(JsonError::WrongType {
                    path: quote(path.as_str().as_bytes()),
                }),
                None => Err(JsonError::Missing {
                    path: quote(path.as_str().as_bytes()),
                }),
            })
            .collect();
        match extract(text.as_bytes(), &asked) {
            Err(JsonError::BadPath { .. }) => {
                let above = |upper: &Path, lower: &Path| {
                    lower.tokens().len() > upper.tokens().len()
                        && lower.tokens().starts_with(upper.tokens())
                };
                let conflict = asked.iter().any(|a| asked.iter().any(|b| above(a, b)));
                prop_assert!(conflict);
            }
            values => prop_assert_eq!(values, expected),
        }
    }

    #[test]
    fn documents_are_accepted_exactly_if_a_full_parser_accepts_them(
        (_, text) in document(),
        at in any::<prop::sample::Index>(),
        put in prop_oneof![any::<u8>(), prop::sample::select(b"{}[],:\"\\0-.e \n".to_vec())],
        cut in any::<bool>(),
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        if cut {
            bytes.remove(at);
        } else {
            bytes[at] = put;
        }
        let full = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes);
        let ours = extract(&bytes, &[]);
        match (&full, &ours) {
            (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
            // Only the full parser has to represent every number and string, so it may
            // refuse values that extraction skips.
            (Err(error), Ok(_)) => prop_assert!(
                error.to_string().contains("number out of range")
                    || error.to_string().contains("surrogate")
                    || error.to_string().contains("hex escape"),
                "{}", error
            ),
            (Ok(_), Err(error)) => prop_assert!(false, "{}", error),
        }
        if let Err(JsonError::BadJson { position, .. }) = ours {
            prop_assert!(position <= bytes.len());
        }
    }

    #[test]
    fn no_bytes_make_extraction_panic(
        payload in prop::collection::vec(any::<u8>(), 0..64),
        soup in "[\\[\\]{}:,\"\\\\ua0-9e.\\-+ tfn\r\n~/]{0,64}",
        path in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let asked: Vec<Path> = Path::parse(&path).into_iter().chain([&b"a"[..], b"/b/0"].iter().filter_map(|path| Path::parse(path).ok())).collect();
        let soup = format!("{{\"a\":{soup}");
        for bytes in [&payload[..], soup.as_bytes()] {
            if let Err(error) = extract(bytes, &asked) {
                prop_assert!(!error.to_string().contains(char::is_control));
            }
        }
        if let Err(error) = Path::parse(&path) {
            prop_assert!(!error.to_string().contains(char::is_control));
        }
    }
}
