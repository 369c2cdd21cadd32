//! Adds the transitions of messages to the event stream of their queue (EVENTS).
//!
//! Each server that applies a change does so itself, a replica and the replay of a log included, in
//! the order in which it applies changes. Ids follow from the times of the transitions and from
//! what is in the stream, so all servers have the same entries.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::redis::stream::{Id, Stream, Value};
use crate::redis::{Context, Name, OwnedName};
use dq_queue::family::slot_of_key;
use dq_queue::transition::{is_transition, Transition, DEFAULT_EVENTS_LEN};
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

    /// Adds the transitions to the stream, and removes the oldest entries, unless others have added
    /// to it. Does nothing where that is not possible: the queue goes on without.
    pub fn append(self, ctx: &mut Context, key: Name<'_>) -> Option<Appended> {
        if error_of_name(ctx, key.bytes(), &self.stream).is_some() {
            return None;
        }
        let db = ctx.db();
        let name = OwnedName::new(&self.stream);
        let mut stream = ctx.open_stream(name.name()).ok()?;
        let known = Known::of(db, &self.stream, &stream);
        let added = self.transitions.iter().filter(|one| add(&mut stream, one));
        let added = added.count();
        let len = stream.len();
        let may_trim = known.update(&stream, len > self.most);
        let trimmed = may_trim && stream.trim(left_by_trim(self.most, len)) > 0;
        drop(stream);
        ctx.signal_modified(name.name());
        Some(Appended {
            stream: name,
            added,
            trimmed,
        })
    }
}

/// The entries of streams, by the keys of the streams.
type Entry = HashMap<Box<[u8]>, Id>;

thread_local! {
    /// For each database and stream, the entry up to which all are transitions, as last seen. It
    /// only saves looking at them again, so each server may have its own.
    static OURS: RefCell<HashMap<i32, Entry>> = RefCell::default();
}

/// The most streams of a database that are remembered.
const MOST_STREAMS: usize = 100_000;

/// The state of a stream before entries are added to it.
struct Known<'s> {
    stream: (i32, &'s [u8]),
    /// The last entry up to which all are transitions. `None`: not known.
    ours: Option<Id>,
    /// Whether that is the last one of all.
    is_all: bool,
}

impl<'s> Known<'s> {
    fn of(db: i32, name: &'s [u8], stream: &Stream<'_>) -> Known<'s> {
        let is_empty = stream.len() == 0;
        let ours = OURS.with_borrow(|ours| ours.get(&db)?.get(name).copied());
        Known {
            stream: (db, name),
            ours,
            is_all: is_empty || ours == Some(stream.last()),
        }
    }

    /// Remembers the stream to which transitions were added. Returns whether it may be trimmed, if
    /// it `is_long`: all its entries are transitions. O(entries that were not seen before), where
    /// it is long; else O(1).
    fn update(self, stream: &Stream<'_>, is_long: bool) -> bool {
        let (ours, is_all) = match (self.is_all, is_long) {
            (true, _) => (stream.last(), true),
            (false, true) => stream.all_ours(self.ours, is_transition),
            (false, false) => return false,
        };
        let (db, name) = self.stream;
        OURS.with_borrow_mut(|of| {
            let of = of.entry(db).or_default();
            match of.get_mut(name) {
                Some(known) => *known = ours,
                None => {
                    if of.len() >= MOST_STREAMS {
                        of.clear();
                    }
                    of.insert(name.into(), ours);
                }
            }
        });
        is_all && is_long
    }
}

/// How many of `len` entries a trim leaves of a stream that may have `most`. A trim costs more than
/// all else that an event does, whether it removes one entry or some. So a stream that is as long
/// as by default, or longer, is trimmed several entries at a time, and a shorter one exactly.
fn left_by_trim(most: u64, len: u64) -> u64 {
    match most {
        DEFAULT_EVENTS_LEN.. => most.min(len - 32),
        _ => most,
    }
}

/// The reason why nothing can be added to the event stream of a queue, if there is one.
pub fn error(ctx: &mut Context, key: &[u8], stream: &[u8]) -> Option<&'static str> {
    let of_content = |ctx: &mut Context| match ctx.look_at_stream(OwnedName::new(stream).name()) {
        Ok(stream) => stream
            .ends()
            .then_some("the stream of EVENTS has given its greatest id, and takes no more entries"),
        Err(_) => Some("the key of EVENTS holds another type"),
    };
    error_of_name(ctx, key, stream).or_else(|| of_content(ctx))
}

/// Whether a stream is one of other programs: its newest entry is no transition.
pub fn is_of_others(ctx: &mut Context, stream: &[u8]) -> bool {
    let name = OwnedName::new(stream);
    let stream = ctx.look_at_stream(name.name());
    stream.is_ok_and(|stream| !stream.is_last_ours(is_transition))
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
