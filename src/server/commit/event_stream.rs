//! Adds the transitions of messages to the event stream of their queue (EVENTS).
//!
//! Each server that applies a change does so itself, a replica and the replay of a log included, in
//! the order in which it applies changes. Ids follow from the times of the transitions and from what
//! is in the stream, so all servers have the same entries.

use crate::redis::stream::{Stream, Value};
use crate::redis::{Context, Name, OwnedName};
use dq_queue::family::slot_of_key;
use dq_queue::transition::{Transition, DEFAULT_EVENTS_LEN};
use dq_queue::Queue;
use smallvec::SmallVec;

/// Transitions for the event stream of a queue.
pub struct Entries {
    stream: Box<[u8]>,
    most: u64,
    transitions: Vec<Transition>,
}

/// The changes of a stream.
pub struct Appended {
    pub stream: OwnedName,
    pub added: usize,
    pub trimmed: bool,
}

impl Entries {
    /// The transitions that the last change of a queue has noted, if the queue has an event stream.
    pub fn of(queue: &Queue, transitions: Vec<Transition>) -> Option<Entries> {
        let settings = queue.settings();
        match transitions.is_empty() {
            true => None,
            false => Some(Entries {
                stream: settings.events.clone()?,
                most: settings.events_len,
                transitions,
            }),
        }
    }

    /// Adds the entries that were noted later in the same change.
    pub fn extend(&mut self, later: Entries) {
        self.transitions.extend(later.transitions);
        self.stream = later.stream;
        self.most = later.most;
    }

    /// Adds the transitions to the stream, and removes the oldest entries. Does nothing where
    /// that is not possible: the queue goes on without.
    pub fn append(self, ctx: &mut Context, key: Name<'_>) -> Option<Appended> {
        if error_of_name(ctx, key.bytes(), &self.stream).is_some() {
            return None;
        }
        let name = OwnedName::new(&self.stream);
        let mut stream = ctx.open_stream(name.name()).ok()?;
        let added = self.transitions.iter().filter(|one| add(&mut stream, one));
        let added = added.count();
        let len = stream.len();
        let trimmed = len > self.most && stream.trim(left_by_trim(self.most, len)) > 0;
        drop(stream);
        ctx.signal_modified(name.name());
        Some(Appended {
            stream: name,
            added,
            trimmed,
        })
    }
}

/// How many of `len` entries a trim leaves of a stream that may have `most`. A trim costs more than
/// all else that an event does, whether it removes one entry or some. So a stream that is as long as
/// by default, or longer, is trimmed several entries at a time, and a shorter one exactly.
fn left_by_trim(most: u64, len: u64) -> u64 {
    match most {
        DEFAULT_EVENTS_LEN.. => most.min(len - 32),
        _ => most,
    }
}

/// The reason why nothing can be added to the event stream of a queue, if there is one.
pub fn error(ctx: &mut Context, key: &[u8], stream: &[u8]) -> Option<&'static str> {
    let of_type = |ctx: &mut Context| match ctx.can_be_stream(OwnedName::new(stream).name()) {
        true => None,
        false => Some("the key of EVENTS holds another type"),
    };
    error_of_name(ctx, key, stream).or_else(|| of_type(ctx))
}

fn error_of_name(ctx: &Context, key: &[u8], stream: &[u8]) -> Option<&'static str> {
    if stream == key {
        return Some("EVENTS names the queue itself");
    }
    let is_elsewhere = ctx.is_in_cluster() && slot_of_key(stream) != slot_of_key(key);
    is_elsewhere.then_some("the key of EVENTS is in another slot")
}

/// Adds one transition as an entry. Returns whether it could be added.
fn add(stream: &mut Stream<'_>, one: &Transition) -> bool {
    let id = (!one.id.is_empty()).then_some(Value::Bytes(&one.id));
    let attempt = (one.attempt > 0).then_some(Value::Number(one.attempt.into()));
    let fields = [
        ("event", Some(Value::Known(one.kind.name()))),
        ("id", id),
        ("at", Some(Value::Number(one.at))),
        ("group", one.group.as_deref().map(Value::Bytes)),
        ("type", one.label.as_deref().map(Value::Bytes)),
        ("attempt", attempt),
        ("consumer", one.consumer.as_deref().map(Value::Bytes)),
        (
            "reason",
            one.reason.map(|reason| Value::Known(reason.name())),
        ),
        ("delay", one.delay.map(Value::Number)),
    ];
    let given = fields.into_iter();
    let given: SmallVec<[_; 9]> = given
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    stream.add(one.at, &given)
}
