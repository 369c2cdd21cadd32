//! Finding messages: DQ.FIND, and DQ.LIST where that is enough.

use redis::Cmd;

use super::queue::STATES;
use super::record::{bytes, integer, unexpected, Record};
use super::search::{Place, ANY};
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::Millis;

/// The messages of a queue that are meant. All conditions must apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The state in which messages are searched for, or `any`.
    pub state: String,
    /// A pattern of their ids.
    pub id: Option<Vec<u8>>,
    /// The type that messages must have.
    pub kind: Option<Vec<u8>>,
    /// The group that messages must be in.
    pub group: Option<Vec<u8>>,
    /// The batch that messages must be in.
    pub batch: Option<Vec<u8>>,
    /// The queue and the id of the message whose children are meant.
    pub parent: Option<(Vec<u8>, Vec<u8>)>,
    /// A header and its value.
    pub header: Option<(Vec<u8>, Vec<u8>)>,
    /// A pattern of their last error.
    pub error: Option<Vec<u8>>,
    /// A pattern of their payload.
    pub payload: Option<Vec<u8>>,
    /// The time that orders the state is at or after this.
    pub since: Option<Millis>,
    /// The time that orders the state is before this.
    pub until: Option<Millis>,
}

/// The two words of a condition.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// The action on the messages that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Redrives the messages, which must be dead.
    Redrive,
    /// Cancels the messages.
    Cancel,
    /// Removes the messages without a record.
    Purge,
}

impl Act {
    /// Returns the word of the server, in lower case.
    pub fn word(self) -> &'static str {
        match self {
            Act::Redrive => "redrive",
            Act::Cancel => "cancel",
            Act::Purge => "purge",
        }
    }

    /// Returns the word for the finished action.
    pub fn done(self) -> &'static str {
        match self {
            Act::Redrive => "pending again",
            Act::Cancel => "cancelled",
            Act::Purge => "removed",
        }
    }

    /// Parses the word of an action: redrive, cancel or purge.
    pub fn of(word: &str) -> Option<Act> {
        let all = [Act::Redrive, Act::Cancel, Act::Purge];
        all.into_iter().find(|act| act.word() == word)
    }

    /// Returns whether it can do anything to messages of this state. It can to some of `any`.
    pub fn fits(self, state: &str) -> bool {
        match self {
            _ if state == ANY => true,
            Act::Redrive => state == "dead",
            Act::Cancel => !matches!(state, "finished" | "cancelled"),
            Act::Purge => true,
        }
    }
}

impl Filter {
    /// Creates the filter of all messages of a state. Fails if there is no such state.
    pub fn of_state(state: &str) -> Result<Filter, Failure> {
        if state != ANY && !STATES.contains(&state) {
            let known = STATES.join(", ");
            return Err(Failure::mistake(format!("the states are {known}")));
        }
        Ok(Filter {
            state: state.to_owned(),
            ..Filter::default()
        })
    }

    /// Returns whether it is about all messages of the state.
    pub fn is_whole_state(&self) -> bool {
        let whole = Filter {
            state: self.state.clone(),
            ..Filter::default()
        };
        *self == whole
    }

    /// Returns whether DQ.LIST can do it, which needs only the right to read.
    fn is_list(&self) -> bool {
        let listed = Filter {
            state: self.state.clone(),
            kind: self.kind.clone(),
            group: self.group.clone(),
            ..Filter::default()
        };
        *self == listed
    }

    /// Returns the conditions in words, for people and the audit log.
    pub fn words(&self) -> String {
        let mut words = vec![self.state.clone()];
        for (name, value) in self.texts() {
            words.extend(value.map(|value| format!("{name} {}", printable(value))));
        }
        for (name, pair) in self.pairs() {
            let text =
                |(first, second)| format!("{name} {} {}", printable(first), printable(second));
            words.extend(pair.map(text));
        }
        let stamp = crate::time_text::stamp;
        words.extend(self.since.map(|at| format!("since {}", stamp(at))));
        words.extend(self.until.map(|at| format!("until {}", stamp(at))));
        words.join(", ")
    }

    fn texts(&self) -> [(&'static str, Option<&[u8]>); 6] {
        [
            ("id", self.id.as_deref()),
            ("type", self.kind.as_deref()),
            ("group", self.group.as_deref()),
            ("batch", self.batch.as_deref()),
            ("error", self.error.as_deref()),
            ("payload", self.payload.as_deref()),
        ]
    }

    fn pairs(&self) -> [(&'static str, Option<Pair<'_>>); 2] {
        fn halves(pair: &(Vec<u8>, Vec<u8>)) -> Pair<'_> {
            (&pair.0, &pair.1)
        }
        [
            ("parent", self.parent.as_ref().map(halves)),
            ("header", self.header.as_ref().map(halves)),
        ]
    }

    fn cmd(&self, name: &str, place: &Place, step: &Step) -> Cmd {
        let mut cmd = verb(name, &place.queue);
        cmd.arg(place.state);
        for (name, value) in self.texts() {
            if let Some(value) = value {
                cmd.arg(name).arg(value);
            }
        }
        for (name, pair) in self.pairs() {
            if let Some((first, second)) = pair {
                cmd.arg(name).arg(first).arg(second);
            }
        }
        for (name, at) in [("SINCE", self.since), ("UNTIL", self.until)] {
            if let Some(at) = at {
                cmd.arg(name).arg(at);
            }
        }
        if let Some(cursor) = &step.cursor {
            cmd.arg("CURSOR").arg(cursor);
        }
        if step.newest_first {
            cmd.arg("REV");
        }
        cmd.arg("COUNT").arg(step.count);
        cmd
    }
}

/// One step over a state.
#[derive(Debug, Clone)]
pub struct Step {
    /// The place at which the search goes on. `None` at the beginning.
    pub cursor: Option<Vec<u8>>,
    /// Maximum number of messages that a step examines, up to 10,000.
    pub count: usize,
    /// Whether the search goes from the last message to the first.
    pub newest_first: bool,
}

impl Step {
    /// Creates the first step.
    pub fn first(count: usize) -> Step {
        Step {
            cursor: None,
            count,
            newest_first: false,
        }
    }
}

/// Fetches the messages that one step finds, and the position of the next step.
pub fn messages(
    server: &mut Server,
    place: &Place,
    filter: &Filter,
    step: &Step,
) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
    let name = if filter.is_list() {
        "DQ.LIST"
    } else {
        "DQ.FIND"
    };
    Record::page(server.call(&filter.cmd(name, place, step))?)
}

/// Counts the messages that one step finds. Returns also where the next step goes on.
pub fn count(
    server: &mut Server,
    place: &Place,
    filter: &Filter,
    step: &Step,
) -> Result<(Option<Vec<u8>>, u64), Failure> {
    let mut cmd = filter.cmd("DQ.FIND", place, step);
    cmd.arg("IDS");
    let (next, ids) = parts(server.call(&cmd)?)?;
    match ids {
        redis::Value::Array(ids) => Ok((next, ids.len() as u64)),
        _ => Err(unexpected()),
    }
}

/// Does something with the messages that one step finds. Returns where the next step
/// goes on, and how many were changed.
pub fn act(
    server: &mut Server,
    place: &Place,
    filter: &Filter,
    step: &Step,
    act: Act,
) -> Result<(Option<Vec<u8>>, u64), Failure> {
    let mut cmd = filter.cmd("DQ.FIND", place, step);
    cmd.arg("DO").arg(act.word());
    let (next, changed) = parts(server.call(&cmd)?)?;
    Ok((next, integer(&changed)?))
}

fn parts(reply: redis::Value) -> Result<(Option<Vec<u8>>, redis::Value), Failure> {
    let redis::Value::Array(parts) = reply else {
        return Err(unexpected());
    };
    let [cursor, found] = <[redis::Value; 2]>::try_from(parts).map_err(|_| unexpected())?;
    let cursor = bytes(&cursor).ok_or_else(unexpected)?.to_vec();
    Ok((Some(cursor).filter(|cursor| cursor != b"0"), found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(cmd: &Cmd) -> String {
        let packed = String::from_utf8(cmd.get_packed_command()).unwrap();
        let lines = packed.split("\r\n").filter(|l| !l.starts_with(['*', '$']));
        lines.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    #[test]
    fn all_conditions_become_options() {
        let some = |text: &str| Some(text.as_bytes().to_vec());
        let filter = Filter {
            state: "dead".to_owned(),
            id: some("a*"),
            kind: some("mail"),
            group: some("g"),
            batch: some("b"),
            parent: Some((b"q2".to_vec(), b"p".to_vec())),
            header: Some((b"k".to_vec(), b"v".to_vec())),
            error: some("HTTP*"),
            payload: some("a*b"),
            since: Some(5),
            until: Some(9),
        };
        let step = Step {
            cursor: some("7-1"),
            count: 50,
            newest_first: true,
        };
        assert_eq!(
            words(&filter.cmd("DQ.FIND", &Place::of(b"q", "dead").unwrap(), &step)),
            "DQ.FIND q dead id a* type mail group g batch b error HTTP* payload a*b \
             parent q2 p header k v SINCE 5 UNTIL 9 CURSOR 7-1 REV COUNT 50"
        );
        assert!(!filter.is_list() && !filter.is_whole_state());
        assert!(filter.words().starts_with("dead, id a*, type mail"));
        assert!(filter.words().contains(", parent q2 p, header k v, since "));
    }

    #[test]
    fn a_state_alone_needs_no_right_to_write() {
        let mut filter = Filter::of_state("ready").unwrap();
        assert!(filter.is_list() && filter.is_whole_state());
        filter.group = Some(b"g".to_vec());
        assert!(filter.is_list() && !filter.is_whole_state());
        assert!(Filter::of_state("asleep").is_err());
    }

    #[test]
    fn acts_have_their_words() {
        assert_eq!(Act::of("purge"), Some(Act::Purge));
        assert_eq!(Act::of("delete"), None);
        assert!(Act::Redrive.fits("dead") && !Act::Redrive.fits("ready"));
        assert!(!Act::Cancel.fits("finished"));
    }
}
