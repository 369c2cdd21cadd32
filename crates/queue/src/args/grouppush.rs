//! Reads the arguments of GROUPPUSH, which takes the group, id, score and due
//! time of a message from its JSON payload.

use smallvec::SmallVec;

use super::message_options::MessageOptions;
use super::option::{exclude, once};
use super::scope::Scope;
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
