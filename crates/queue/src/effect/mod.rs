//! Effects: what an acknowledgement does to keys that hold no queue, in its own log entry (APPLY).
//!
//! This room decides, the server does: [`Effect`] is one change as the words of the plain command,
//! [`acknowledge`] does all that a call asks for in its order, [`refusal`](refusal::refusal) says
//! whether all changes can be done on the keys as they are, [`Outcome`] is what a plain command has
//! replied, and [`Repeat`] what the log has of it.

mod acknowledge;
#[cfg(feature = "validate")]
pub mod plain;
pub mod refusal;
mod repeat;

pub use acknowledge::{acknowledge, Outcomes, Server};
pub use repeat::Repeat;

/// The most effects of one call.
pub const MOST_EFFECTS: usize = 128;
/// The most conditions of one call.
pub const MOST_CONDITIONS: usize = 16;

/// The plain command that an effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Set,
    Del,
    IncrBy,
    HSet,
    HDel,
    HIncrBy,
    SAdd,
    SRem,
    ZAdd,
    ZIncrBy,
    ZRem,
    LPush,
    RPush,
    XAdd,
    PExpire,
}

/// The type of value that a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The key does not exist.
    Nothing,
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A hash.
    Hash,
    /// A stream.
    Stream,
    /// A queue.
    Queue,
    /// The value of another module.
    Other,
}

/// The kind of access that the plain command has to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It changes the value.
    Update,
    /// It changes the value, and its reply tells of it.
    ReadUpdate,
    /// It adds to the value.
    Insert,
    /// It removes from the value.
    Delete,
}

/// The properties of a verb.
struct Row {
    verb: Verb,
    name: &'static str,
    /// Number of words behind the key; XADD's is not fixed.
    words: usize,
    /// The type that its key must hold, if it holds anything; `None`: whatever it holds.
    needs: Option<Holds>,
    access: Access,
    /// Whether the server refuses it at `maxmemory`.
    grows: bool,
}

const ROWS: [Row; 15] = {
    use Access::{Delete, Insert, ReadUpdate, Update};
    use Holds::{Hash, List, Set, SortedSet, Stream, String};
    const fn row(
        verb: Verb,
        name: &'static str,
        words: usize,
        needs: Option<Holds>,
        access: Access,
        grows: bool,
    ) -> Row {
        Row {
            verb,
            name,
            words,
            needs,
            access,
            grows,
        }
    }
    [
        row(Verb::Set, "SET", 1, None, Update, true),
        row(Verb::Del, "DEL", 0, None, Delete, false),
        row(Verb::IncrBy, "INCRBY", 1, Some(String), ReadUpdate, true),
        row(Verb::HSet, "HSET", 2, Some(Hash), Update, true),
        row(Verb::HDel, "HDEL", 1, Some(Hash), Delete, false),
        row(Verb::HIncrBy, "HINCRBY", 2, Some(Hash), ReadUpdate, true),
        row(Verb::SAdd, "SADD", 1, Some(Set), Insert, true),
        row(Verb::SRem, "SREM", 1, Some(Set), Delete, false),
        row(Verb::ZAdd, "ZADD", 2, Some(SortedSet), Update, true),
        row(
            Verb::ZIncrBy,
            "ZINCRBY",
            2,
            Some(SortedSet),
            ReadUpdate,
            true,
        ),
        row(Verb::ZRem, "ZREM", 1, Some(SortedSet), Delete, false),
        row(Verb::LPush, "LPUSH", 1, Some(List), Insert, true),
        row(Verb::RPush, "RPUSH", 1, Some(List), Insert, true),
        row(Verb::XAdd, "XADD", 0, Some(Stream), Update, true),
        row(Verb::PExpire, "PEXPIRE", 1, None, Update, false),
    ]
};

impl Verb {
    /// The verb of this name, in any case.
    pub fn of(name: &[u8]) -> Option<Verb> {
        let named = |row: &&Row| name.eq_ignore_ascii_case(row.name.as_bytes());
        ROWS.iter().find(named).map(|row| row.verb)
    }

    fn row(self) -> &'static Row {
        // The rows stand in the order of the verbs.
        &ROWS[self as usize]
    }

    /// The name of the plain command.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Number of words behind the key. XADD has as many as it says.
    pub fn words(self) -> usize {
        self.row().words
    }

    /// The access of the plain command to its key.
    pub fn access(self) -> Access {
        self.row().access
    }

    /// Whether the server refuses the plain command at `maxmemory`.
    pub fn grows(self) -> bool {
        self.row().grows
    }

    /// The names of all verbs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROWS.iter().map(|row| row.name)
    }
}

/// One change of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect<'a> {
    /// The plain command.
    pub verb: Verb,
    /// The index of the key among the words of the call.
    pub at: usize,
    /// The key.
    pub key: &'a [u8],
    /// The words behind the key: a value, a field or member with its value, or for XADD the fields
    /// and values. ZADD and ZINCRBY have the number first, as the plain commands do.
    pub words: Vec<&'a [u8]>,
    /// In ms: how long the value of SET lives (PX), or the span of PEXPIRE, which may be negative.
    pub span: Option<i64>,
    /// The length to which XADD trims the stream (MAXLEN).
    pub max_len: Option<u64>,
}

impl Effect<'_> {
    /// The field or member that it is about; `None` where it is about the whole key.
    fn part(&self) -> Option<&[u8]> {
        let at = match self.verb {
            Verb::HSet | Verb::HDel | Verb::HIncrBy | Verb::SAdd | Verb::SRem | Verb::ZRem => 0,
            Verb::ZAdd | Verb::ZIncrBy => 1,
            _ => return None,
        };
        self.words.get(at).copied()
    }

    /// Whether this effect and another on the same key can be in one call: each changes another
    /// part of a value of one type, or both add to a list or stream, or one sets the expiry.
    pub fn goes_with(&self, other: &Effect<'_>) -> bool {
        match (self.verb, other.verb) {
            (Verb::PExpire, Verb::PExpire | Verb::Del) | (Verb::Del, Verb::PExpire) => false,
            (Verb::PExpire, _) | (_, Verb::PExpire) => true,
            (Verb::LPush | Verb::RPush, Verb::LPush | Verb::RPush) => true,
            (Verb::XAdd, Verb::XAdd) => true,
            (one, another) => {
                one.row().needs == another.row().needs
                    && self.part().is_some()
                    && self.part() != other.part()
            }
        }
    }
}

/// A condition that must hold for a call to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The index of the key among the words of the call.
    pub at: usize,
    /// The test that it must pass.
    pub is: Is<'a>,
}

/// The test of a condition on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is<'a> {
    /// The key exists.
    There,
    /// The key does not exist.
    Missing,
    /// The key holds this string.
    Equal(&'a [u8]),
}

/// The effects and conditions of an acknowledgement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Apply<'a> {
    /// The effects in the order in which they are done; 1 to [`MOST_EFFECTS`].
    pub effects: Vec<Effect<'a>>,
    /// The conditions that must hold; up to [`MOST_CONDITIONS`].
    pub conditions: Vec<Condition<'a>>,
}

/// The reply of a plain command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// OK.
    Done,
    /// A number, or the length of something.
    Integer(i64),
    /// A text: the id of an entry.
    Text(Box<[u8]>),
    /// A score as the server writes it.
    Score(Box<[u8]>),
}
