//! Reads the arguments of GROUPS.

use super::option::once;
use super::words::{ANY, COUNT};
use super::{Parsed, Words};
use crate::queue::inspect::groups::{GroupState, WantedGroups};

/// The COUNT of LIST and GROUPS if none is given.
const STEP: u64 = 10;

/// The arguments of GROUPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupsRequest {
    /// The place at which the listing goes on; 0 is its beginning.
    pub cursor: u64,
    /// The most groups to return; at least 1.
    pub count: usize,
    /// Return only these groups.
    pub wanted: Option<WantedGroups>,
}

/// Reads the arguments of GROUPS: `[CURSOR c] [COUNT n] [STATE ready | running
/// | blocked | paused | held]`
pub fn groups(mut words: Words<'_>) -> Parsed<GroupsRequest> {
    let (mut cursor, mut count, mut wanted) = (None, None, None);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CURSOR" => once(&mut cursor, what, words.number(what, ANY)?)?,
            what @ "COUNT" => once(&mut count, what, words.number(what, COUNT)?)?,
            what @ "STATE" => {
                let choices = [
                    ("ready", WantedGroups::In(GroupState::Ready)),
                    ("running", WantedGroups::In(GroupState::Running)),
                    ("blocked", WantedGroups::In(GroupState::Blocked)),
                    ("paused", WantedGroups::In(GroupState::Paused)),
                    ("held", WantedGroups::Held),
                ];
                let expected = "ready, running, blocked, paused or held";
                once(&mut wanted, what, words.choice(what, expected, &choices)?)?
            }
            _ => return Err(option.unknown()),
        }
    }
    Ok(GroupsRequest {
        cursor: cursor.unwrap_or(0),
        count: count.unwrap_or(STEP) as usize,
        wanted,
    })
}
