//! Reads the arguments of GROUPPUSH, which takes the group, id, score and due
//! time of a message from its JSON payload.

use smallvec::SmallVec;

use super::message_options::{MessageOptions, Scope};
use super::option::{exclude, once};
use super::words::check_name;
use super::{ArgError, Parsed, Words};
use crate::json::{extract, JsonError, Path, Scalar};
use crate::limits::MAX_NAME;
use crate::op::Send;
use crate::quote::quote;
use crate::MAX_EXACT;

/// The separator between the values of which the name of a group is made.
const SEPARATOR: &str = "_";

/// The arguments of GROUPPUSH.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPush<'a> {
    /// The message.
    pub send: Send<'a>,
    /// Whether its due time comes from the payload, by ATPATH.
    pub has_at_path: bool,
}

/// Reads the arguments of GROUPPUSH: `json GROUPBY n path ... [IDPATH path]
/// [SCOREPATH path] [ATPATH path] [options]`. The payload is at most `max`
/// bytes long.
///
/// Cost: as that of [`extract`], which reads the payload once.
pub fn group_push<'a>(mut words: Words<'a>, max: u64) -> Parsed<GroupPush<'a>> {
    let payload = words.payload(max)?;
    let mut group_by = None;
    let (mut id_path, mut score_path, mut at_path) = (None, None, None);
    let mut options = MessageOptions::new(Scope::GROUP_PUSH);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "GROUPBY" => once(&mut group_by, what, paths(&mut words, what)?)?,
            what @ "IDPATH" => once(&mut id_path, what, path(&mut words, what)?)?,
            what @ "SCOREPATH" => once(&mut score_path, what, path(&mut words, what)?)?,
            what @ "ATPATH" => once(&mut at_path, what, path(&mut words, what)?)?,
            _ => options.read(&option, &mut words)?,
        }
    }
    let Some(mut asked) = group_by else {
        return Err("ERR GROUPBY is missing".into());
    };
    exclude(("IDPATH", id_path.is_some()), ("ID", options.id.is_some()))?;
    exclude(
        ("SCOREPATH", score_path.is_some()),
        ("SCORE", options.score.is_some()),
    )?;
    let at = ("ATPATH", at_path.is_some());
    exclude(at, ("DELAY", options.delay.is_some()))?;
    exclude(at, ("AT", options.at.is_some()))?;

    let group_paths = asked.len();
    asked.extend(
        [&id_path, &score_path, &at_path]
            .into_iter()
            .flatten()
            .cloned(),
    );
    let mut values = extract(payload, &asked).map_err(json_failure)?.into_iter();

    let parts: Vec<Scalar<'_>> = values.by_ref().take(group_paths).collect();
    let parts: Vec<&str> = parts.iter().map(Scalar::text).collect();
    let group = parts.join(SEPARATOR).into_bytes();
    check_name("GROUPBY: the group", &group, MAX_NAME)?;
    options.group = Some(group.into());
    if let Some((path, value)) = value_of(&id_path, &mut values) {
        let id = value.text().as_bytes();
        check_name(&format!("IDPATH: value at path {path}"), id, MAX_NAME)?;
        options.id = Some(id.to_vec().into());
    }
    if let Some((path, value)) = value_of(&score_path, &mut values) {
        let score = value.as_score().map_err(|expected| {
            ArgError::from(format!(
                "ERR SCOREPATH: value at path {path} must be {expected}"
            ))
        })?;
        options.score = Some(score);
    }
    if let Some((path, value)) = value_of(&at_path, &mut values) {
        let Some(at) = value.as_ms() else {
            let range = format!("an integer from 0 to {MAX_EXACT}");
            return Err(format!("ERR ATPATH: value at path {path} must be {range}").into());
        };
        options.at = Some(at);
    }
    Ok(GroupPush {
        send: options.send(SmallVec::from_buf([payload]))?,
        has_at_path: at_path.is_some(),
    })
}

fn paths(words: &mut Words<'_>, what: &str) -> Parsed<Vec<Path>> {
    let count = words.count(what, 1)?;
    (0..count).map(|_| path(words, what)).collect()
}

fn path(words: &mut Words<'_>, what: &str) -> Parsed<Path> {
    Path::parse(words.bytes(what)?).map_err(json_failure)
}

/// Takes the next of `values`, which is the one at `path`. Returns the quoted
/// path and the value; `None` if the option with this path was not given.
fn value_of<'a>(
    path: &Option<Path>,
    values: &mut impl Iterator<Item = Scalar<'a>>,
) -> Option<(String, Scalar<'a>)> {
    let path = path.as_ref()?;
    Some((quote(path.as_str().as_bytes()), values.next()?))
}

fn json_failure(error: JsonError) -> ArgError {
    format!("ERR {error}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};
    use crate::message::score::Score;
    use crate::op::DueTime;

    /// The group, id, score and due time that were read.
    fn pushed(text: &str) -> Parsed<(String, Option<String>, Option<Score>, DueTime)> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        words(text, |w| {
            group_push(w, 4096).map(|GroupPush { send, .. }| {
                assert!(text.starts_with(&text_of(send.payloads[0])));
                let group = send.group.as_deref().map(text_of);
                let id = send.id.as_deref().map(text_of);
                (group.unwrap(), id, send.choices.score, send.due)
            })
        })
    }

    #[test]
    fn group_id_score_and_due_time_can_come_from_the_payload() {
        let text = r#"{"u":1002,"o":{"id":18446744073709551615},"r":"x-1","s":-0,"t":77}
            ATPATH t GROUPBY 3 u /o/id u SCOREPATH s REPLACE IDPATH r"#;
        let expected = (
            "1002_18446744073709551615_1002".to_owned(),
            Some("x-1".to_owned()),
            Score::of_double(0.0),
            DueTime::At(77),
        );
        assert_eq!(pushed(text), Ok(expected));
    }

    #[test]
    fn id_score_and_due_time_can_come_from_options() {
        let text = r#"{"GROUPBY":"ID"} DELAY 5 ID mine SCORE 4 GROUPBY 1 GROUPBY"#;
        let expected = (
            "ID".to_owned(),
            Some("mine".to_owned()),
            Score::of_double(4.0),
            DueTime::After(5),
        );
        assert_eq!(pushed(text), Ok(expected));
    }

    #[test]
    fn errors_name_the_bad_option() {
        for (text, expected) in [
            ("GROUPBY 1 g GROUP x", "unknown option 'GROUP'"),
            (
                "GROUPBY 1 g IDPATH id ID x",
                "IDPATH and ID exclude each other",
            ),
            (
                "GROUPBY 1 g SCOREPATH n SCORE 1",
                "SCOREPATH and SCORE exclude each other",
            ),
            (
                "GROUPBY 1 g ATPATH n AT 1",
                "ATPATH and AT exclude each other",
            ),
            (
                "GROUPBY 1 g DELAY 1 ATPATH n",
                "ATPATH and DELAY exclude each other",
            ),
            ("GROUPBY 1 g REPLACE", "REPLACE needs an id"),
            (
                "GROUPBY 0",
                "GROUPBY must be an integer from 1 to 9007199254740991, not '0'",
            ),
            (
                "GROUPBY 2 g",
                "GROUPBY is followed by fewer values than it says",
            ),
            ("GROUPBY 1 g GROUPBY 1 g", "GROUPBY is given twice"),
            ("IDPATH id", "GROUPBY is missing"),
            ("GROUPBY 1 g IDPATH", "IDPATH needs a value"),
            ("GROUPBY 1 g NOSUCH", "unknown option 'NOSUCH'"),
        ] {
            let text = format!(r#"{{"g":1,"id":"a","n":5}} {text}"#);
            assert_eq!(error(pushed(&text)), format!("ERR {expected}"));
        }
    }

    #[test]
    fn errors_name_the_path_of_a_bad_value() {
        let long = format!(r#""{}""#, "x".repeat(1025));
        for (value, option, expected) in [
            (
                r#""5""#,
                "ATPATH v",
                "ATPATH: value at path 'v' must be an integer from 0 to 9007199254740991",
            ),
            (
                "1.5",
                "ATPATH v",
                "ATPATH: value at path 'v' must be an integer from 0 to 9007199254740991",
            ),
            (
                "true",
                "SCOREPATH v",
                "SCOREPATH: value at path 'v' must be a finite number",
            ),
            (
                "1e999",
                "SCOREPATH v",
                "SCOREPATH: value at path 'v' must be a number that is kept exactly: an integer \
                 from -2^63 to 2^64-1, or a double",
            ),
            (
                r#""""#,
                "IDPATH v",
                "IDPATH: value at path 'v' must be 1 to 1024 bytes long, not 0",
            ),
            (
                &long,
                "IDPATH v",
                "IDPATH: value at path 'v' must be 1 to 1024 bytes long, not 1025",
            ),
            (
                "null",
                "IDPATH v",
                "value at path 'v' is not a string, number or boolean",
            ),
            ("1", "IDPATH x", "payload has no value at path 'x'"),
            (
                "1",
                "IDPATH /~2",
                "bad path '/~2': '~' must be written '~0'",
            ),
        ] {
            let text = format!(r#"{{"g":1,"v":{value}}} GROUPBY 1 g {option}"#);
            assert_eq!(error(pushed(&text)), format!("ERR {expected}"));
        }
        let empty = error(pushed(r#"{"g":""} GROUPBY 1 g"#));
        assert_eq!(
            empty,
            "ERR GROUPBY: the group must be 1 to 1024 bytes long, not 0"
        );
        let broken = error(pushed(r#"{"g":oops} GROUPBY 1 g"#));
        assert!(broken.starts_with("ERR bad JSON at byte "), "{broken}");
    }
}
