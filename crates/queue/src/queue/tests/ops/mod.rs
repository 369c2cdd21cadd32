//! The operations of the random tests, in a form that keeps its meaning when
//! proptest shrinks a plan: messages and receipts are named by position, not by
//! value.

mod build;

use std::fmt;

use crate::message::state::State;
use crate::message::Choices;
use crate::op::{FindAct, GroupChanges, NackKind, NackPause};
use crate::schedule::{Limits, Overlap};
use crate::settings::Changes;
use crate::Millis;

/// Names a message.
#[derive(Debug, Clone, Copy)]
pub enum Name {
    /// The id is one of those that tests give.
    Given(u8),
    /// The id is that of the message with this index in the queue (modulo their number),
    /// if there is one.
    At(u8),
}

/// A due time.
#[derive(Debug, Clone, Copy)]
pub enum When {
    Now,
    After(Millis),
    /// This many milliseconds after the start of the test.
    At(Millis),
}

/// The arguments of a SEND.
#[derive(Clone)]
pub struct NewMessage {
    pub size: u8,
    pub id: Option<u8>,
    pub replace: bool,
    pub rerun: bool,
    pub due: When,
    pub group: Option<u8>,
    pub priority: i8,
    pub choices: Choices,
    pub if_group: bool,
    /// The number of its deduplication id, and how long that counts, in ms.
    pub dedup: Option<(u8, Millis)>,
    pub new_salt: Option<u64>,
}

/// One operation. A receipt is given by how many were given out after it.
#[derive(Debug, Clone)]
pub enum RandomOp {
    Tick,
    Send(u8, NewMessage),
    Fetch {
        count: u64,
        per_group: u64,
        group: Option<u8>,
        lease: Option<Millis>,
        max_bytes: Option<u64>,
        acks: Vec<u8>,
        no_ack: bool,
        /// The name of the consumer, and the token if it has one.
        consumer: Option<(u8, Option<u8>)>,
    },
    Ack(Vec<u8>),
    /// Without a receipt, as in a queue that only receives messages.
    /// The messages to send, and the one that gets a signal.
    AckSend(Option<u8>, Vec<NewMessage>, Option<Name>),
    Nack(Vec<u8>, NackKind, Option<u8>, Option<NackPause>),
    Touch(Millis, Vec<u8>, Option<u8>),
    EndLeases(Vec<u8>),
    Grace(Millis, Vec<u8>),
    Cancel(Vec<Name>),
    Reschedule(Name, When),
    Update(Name, u8),
    Signal(Name, u8),
    Redrive(u64),
    RedriveIds(Vec<Name>),
    /// The action of a search on the messages that it has found in a state: with this
    /// many, without the last or, if the flag is set, the first.
    Find(State, FindAct, u8, bool),
    Purge(Option<State>, Option<u8>),
    /// A slice of a purge: these messages.
    Remove(Vec<u8>),
    /// A slice of a purge: the holds of this group, or the taken ids.
    Free(Option<u8>),
    Pause(Option<u8>, Option<Millis>),
    Resume(Option<u8>),
    GroupSet(u8, GroupChanges),
    Alter(Changes),
    Schedule {
        name: u8,
        period: Millis,
        start: Option<Millis>,
        overlap: Overlap,
        /// The end of the schedule is given in ms after the start of the test.
        limits: Limits,
        new_message: NewMessage,
    },
    Unschedule(u8),
    PauseSchedule(u8, bool),
}

/// An operation, and the time in ms since the one before it.
#[derive(Clone)]
pub struct Step {
    pub wait: Millis,
    pub op: RandomOp,
}

/// The options of a queue and the steps that are applied to it.
#[derive(Clone)]
pub struct Plan {
    pub options: Changes,
    pub steps: Vec<Step>,
}

/// Prints one line for each step, so that a failing plan can be read.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "+{} {}", self.wait, said(&self.op))
    }
}

impl fmt::Debug for NewMessage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let NewMessage {
            size,
            id,
            replace,
            rerun,
            due,
            group,
            priority,
            choices,
            if_group,
            dedup,
            new_salt,
        } = self;
        let choices = said(choices);
        write!(
            f,
            "size {size} id {id:?} replace {replace} rerun {rerun} {due:?} group {group:?} \
             priority {priority} {choices} if group {if_group} dedup id {dedup:?} new salt {new_salt:?}"
        )
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{}", said(&self.options))?;
        self.steps
            .iter()
            .try_for_each(|step| writeln!(f, "{step:?}"))
    }
}

/// Formats a value without the fields that have their default value.
fn said(thing: &impl fmt::Debug) -> String {
    let text = format!("{thing:?}");
    let silent = [": None", ": false", ": []"];
    let fields = text.split(", ").filter_map(|field| {
        let (start, rest) = match field.rfind("{ ") {
            Some(at) => field.split_at(at + 1),
            None => ("", field),
        };
        let is_silent = silent
            .iter()
            .any(|end| rest.trim_end_matches([' ', '}']).ends_with(end));
        let said = if is_silent { start } else { field };
        (!said.is_empty()).then_some(said)
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// The time at which every test begins.
pub const START: Millis = 1000;
