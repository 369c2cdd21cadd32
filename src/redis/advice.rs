//! Adds to an error about the words of a call a hint from the description of the command: the
//! option that was probably meant, or the syntax.

use super::spec::{Arg, CommandSpec, Kind};
use dq_queue::args::{UNKNOWN_OPTION, WORD_IS_ABSENT};

/// The largest edit distance at which an option may have been meant.
const NEAR: usize = 2;

/// Returns the hint for an error of this command. It is empty for most errors.
#[cold]
pub fn advice(spec: &CommandSpec, error: &str) -> String {
    if let Some(word) = error.strip_prefix(UNKNOWN_OPTION) {
        let word = word.trim_matches('\'').to_ascii_uppercase();
        return match nearest(spec.args, &word) {
            Some(token) => format!("; did you mean {token}?"),
            None => format!("; the syntax is {}", syntax(spec)),
        };
    }
    match WORD_IS_ABSENT.iter().any(|end| error.ends_with(end)) {
        true => format!("; the syntax is {}", syntax(spec)),
        false => String::new(),
    }
}

/// The token nearest to a word, unless none is near, or the word is itself a token in a wrong
/// position. At least half of a short word must be right.
fn nearest(args: &[Arg], word: &str) -> Option<&'static str> {
    let mut tokens = Vec::new();
    collect_tokens(args, &mut tokens);
    let distances = tokens
        .into_iter()
        .map(|token| (distance(token, word), token));
    let (least, token) = distances.min_by_key(|(distance, _)| *distance)?;
    let is_near = (1..=NEAR).contains(&least) && 2 * least <= token.len().min(word.len());
    is_near.then_some(token)
}

fn collect_tokens(args: &[Arg], tokens: &mut Vec<&'static str>) {
    for arg in args {
        tokens.extend(arg.token);
        collect_tokens(arg.hints, tokens);
        if let Kind::OneOf(parts) | Kind::Block(parts) = arg.kind {
            collect_tokens(parts, tokens);
        }
    }
}

/// The number of bytes to add, remove or replace to make one text of the other. The word comes from
/// a client, so it may be long: then it is far from everything.
fn distance(token: &str, word: &str) -> usize {
    if word.len() > token.len() + NEAR {
        return usize::MAX;
    }
    // Each row has the distances of a beginning of the token from all beginnings of the word.
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (length, byte) in (1..).zip(token.bytes()) {
        let mut next = vec![length];
        for (pair, other) in row.windows(2).zip(word.bytes()) {
            let (replaced, removed) = match pair {
                [before, above] => (before + usize::from(byte != other), above + 1),
                _ => continue,
            };
            let added = next.last().map_or(usize::MAX, |left| left + 1);
            next.push(replaced.min(removed).min(added));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// The syntax of a command in one line: `DQ.GET key id`
fn syntax(spec: &CommandSpec) -> String {
    format!("{} {}", spec.name, joined(spec.args, " "))
}

fn joined(args: &[Arg], between: &str) -> String {
    let texts: Vec<String> = args.iter().map(of_argument).collect();
    texts.join(between)
}

fn of_argument(arg: &Arg) -> String {
    let (mut text, token) = match arg.kind {
        Kind::Word => (String::new(), arg.token),
        Kind::OneOf(choices) => (joined(choices, " | "), arg.token),
        Kind::Block(parts) => (joined(parts, " "), arg.token),
        _ => (arg.name.to_owned(), arg.token),
    };
    if arg.multiple {
        text = format!("{text} [{text} ...]");
    }
    text = match token {
        Some(token) if text.is_empty() => token.to_owned(),
        Some(token) => format!("{token} {text}"),
        None => text,
    };
    match (arg.optional, arg.kind) {
        (true, _) => format!("[{text}]"),
        (false, Kind::OneOf(_)) => format!("<{text}>"),
        (false, _) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::spec::{Access, Keys};

    const SPEC: CommandSpec = CommandSpec {
        name: "DQ.X",
        handler: |_, _| Ok(()),
        flags: "write",
        keys: Keys::First,
        access: Access::Update,
        summary: "",
        complexity: "",
        args: &[
            Arg::key(),
            Arg::one_of(
                "due",
                &[
                    Arg::integer("delay").after("DELAY"),
                    Arg::time("at").after("AT"),
                ],
            ),
            Arg::word("replace", "REPLACE").optional(),
            Arg::integer("receipt").multiple().after("ACK").optional(),
        ],
    };
    const SYNTAX: &str =
        "; the syntax is DQ.X key <DELAY delay | AT at> [REPLACE] [ACK receipt [receipt ...]]";

    #[test]
    fn a_mistyped_option_gets_the_nearest_one() {
        for (word, token) in [
            ("DELY", "DELAY"),
            ("dleay", "DELAY"),
            ("REPLACED", "REPLACE"),
        ] {
            let text = format!("{UNKNOWN_OPTION}'{word}'");
            assert_eq!(advice(&SPEC, &text), format!("; did you mean {token}?"));
        }
    }

    #[test]
    fn a_word_that_is_far_from_every_option_gets_the_syntax() {
        for word in ["", "x", "ID", "NOSUCH", "ack", &"DELAY".repeat(999)] {
            let text = format!("{UNKNOWN_OPTION}'{word}'");
            assert_eq!(advice(&SPEC, &text), SYNTAX, "{word}");
        }
    }

    #[test]
    fn an_absent_word_gets_the_syntax_and_a_wrong_one_does_not() {
        assert_eq!(advice(&SPEC, "ERR DELAY needs a value"), SYNTAX);
        assert_eq!(advice(&SPEC, "ERR DELAY or AT is missing"), SYNTAX);
        assert_eq!(
            advice(&SPEC, "ERR DELAY must be 1, not 'needs a value'"),
            ""
        );
        assert_eq!(advice(&SPEC, "ERR no such queue"), "");
    }
}
