//! Queues by their keys: what a change of one queue means for the others.
//!
//! A queue knows nothing of other keys. What the ends of its messages owe to them, it hands out
//! ([`Owed`]): dead messages for the queue of DEADTO, and reports to parents. [`settle`] does all of
//! that, and what follows from it in turn, before anything else sees any of the queues. It is the
//! same on a server, in the simulation and in the explorer: they only say how a queue is opened and
//! how its change is recorded ([`Keyspace`], [`Opened`]).

use std::collections::{BTreeMap, VecDeque};

use crate::dead_letters::{Letter, Moved, Stays};
use crate::message::kin::News;
use crate::message::Choices;
use crate::op::{AckSend, Counted, CountedOne, Send, Sent};
use crate::queue::ends::{Letters, Owed};
use crate::{Done, Error, Moment, Op, Queue};

/// In a row of parents that are children of each other, the number of them that one change may let
/// die. The timer goes on with the others.
const MOST_DEATHS: usize = 8;

/// The queues of a server, by their keys.
pub trait Keyspace {
    /// Opens the key `key` for `change`, because of a change in the key `from`. Also returns what the
    /// queue owes after it.
    ///
    /// Errors: the key holds another type, or is in another slot than `from`.
    fn change<R>(
        &mut self,
        key: &[u8],
        from: &[u8],
        change: impl FnOnce(&mut dyn Opened) -> R,
    ) -> Result<(R, Option<Owed>), Stays>;
}

/// A key that is open for a change.
pub trait Opened {
    /// The queue in the key, if there is one, and the moment of the server, by the clock of the
    /// queue.
    fn queue(&mut self) -> Option<(&Queue, Moment)>;

    /// Applies an operation to the queue in the key and records it, as a log entry. An operation
    /// that sends makes the queue if there is none; any other one does nothing then.
    ///
    /// Errors: the queue refuses the operation.
    fn apply(&mut self, op: &Op, at: At) -> Result<Option<Done>, Error>;
}

/// The moment of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// That of the server, by the clock of the queue.
    Now,
    /// That of the last change of the queue.
    LastChange,
}

/// A change whose reports are still to be counted.
struct Told {
    from: Box<[u8]>,
    reports: Vec<News>,
    /// How many changes have led to each other before it.
    depth: usize,
}

/// Settles what the queue in the key `from` owes after a change, and what other queues owe because
/// of that. Dead messages go first, since no operation reaches a queue that still has some on their
/// way; reports are counted in their order, and those that follow from them after them.
pub fn settle(keys: &mut impl Keyspace, from: &[u8], owed: Owed) {
    let mut told = VecDeque::new();
    settle_one(keys, from, Some(owed), 0, &mut told);
    while let Some(next) = told.pop_front() {
        for (key, of) in by_queue(next.reports, next.depth) {
            let counted = Op::Children(Counted {
                from: (&*next.from).into(),
                of,
            });
            // The due events of the parent's queue are left to its timer: they may let messages of
            // that queue end, which are children of others. The operation is never refused.
            let changed = keys.change(&key, &next.from, |opened| {
                drop(opened.apply(&counted, At::Now));
                go_on_manually(opened);
            });
            // No parent can be reached in another slot, or in a key of another type.
            if let Ok(((), owed)) = changed {
                settle_one(keys, &key, owed, next.depth + 1, &mut told);
            }
        }
    }
}

/// Sends the dead messages on, and notes the reports for later.
fn settle_one(
    keys: &mut impl Keyspace,
    key: &[u8],
    owed: Option<Owed>,
    depth: usize,
    told: &mut VecDeque<Told>,
) {
    let mut owed = owed;
    while let Some(Owed { letters, reports }) = owed.take() {
        if !reports.is_empty() {
            told.push_back(Told {
                from: key.into(),
                reports,
                depth,
            });
        }
        if let Some(letters) = letters {
            owed = send_on(keys, key, letters, depth, told);
        }
    }
}

/// Sends dead messages to the other queue, and removes those that it has accepted. Returns what the
/// queue owes after that.
fn send_on(
    keys: &mut impl Keyspace,
    key: &[u8],
    letters: Letters,
    depth: usize,
    told: &mut VecDeque<Told>,
) -> Option<Owed> {
    let Letters { to, letters, stays } = letters;
    let mut moved = Moved {
        gone: Vec::new(),
        stays,
    };
    if *to == *key {
        moved.stays = Some(Stays::Itself);
    } else if !letters.is_empty() {
        // The due events of the other queue are left to its timer, too.
        match keys.change(&to, key, |opened| send(opened, &letters, &mut moved)) {
            Ok(((), owed)) => settle_one(keys, &to, owed, depth + 1, told),
            Err(stays) => moved.stays = Some(stays),
        }
    }
    let moved = Op::Moved(moved);
    let removed = keys.change(key, key, |opened| {
        drop(opened.apply(&moved, At::LastChange));
        go_on_manually(opened);
    });
    removed.ok().and_then(|((), owed)| owed)
}

/// Goes on with what a change has released in a queue with CLOCK MANUAL, which no timer does.
fn go_on_manually(opened: &mut dyn Opened) {
    if opened
        .queue()
        .is_some_and(|(queue, _)| queue.goes_on_manually())
    {
        drop(opened.apply(&Op::Tick, At::LastChange));
    }
}

/// The reports by the queues of the parents, each in their order.
fn by_queue(reports: Vec<News>, depth: usize) -> BTreeMap<Box<[u8]>, Vec<CountedOne<'static>>> {
    let mut queues: BTreeMap<Box<[u8]>, Vec<CountedOne<'static>>> = BTreeMap::new();
    for News { key, id, delta } in reports {
        let one = CountedOne {
            id: id.into_vec().into(),
            delta,
            dies_later: depth >= MOST_DEATHS,
        };
        queues.entry(key).or_default().push(one);
    }
    queues
}

/// Sends the messages to the queue in an open key, as many as that queue accepts.
fn send(opened: &mut dyn Opened, letters: &[Letter], moved: &mut Moved<'static>) {
    if send_together(opened, letters, moved).is_ok() {
        return;
    }
    for letter in letters.chunks(1) {
        if let Err(error) = send_together(opened, letter, moved) {
            moved.stays = Some(match error {
                Error::Closed => Stays::Closed,
                _ => Stays::Full,
            });
        }
    }
}

/// Sends all of these messages, or none.
///
/// Error: the queue refuses them.
fn send_together(
    opened: &mut dyn Opened,
    letters: &[Letter],
    moved: &mut Moved<'static>,
) -> Result<(), Error> {
    let there = opened.queue();
    let sends = letters.iter().map(|letter| {
        let is_taken =
            |(queue, moment): &(&Queue, Moment)| queue.is_taken(&letter.id, queue.now(*moment));
        send_of(letter, there.as_ref().is_some_and(is_taken))
    });
    let op = AckSend {
        signals: Vec::new(),
        receipt: None,
        result: None,
        sends: sends.collect(),
    };
    if let Some((queue, moment)) = there {
        queue.can_ack_send(&op, moment)?;
    }
    let done = opened.apply(&Op::AckSend(op), At::Now)?;
    let (Some(Done::AckSent(Some(sent))), Some((queue, _))) = (done, opened.queue()) else {
        return Ok(());
    };
    for (letter, sent) in letters.iter().zip(sent) {
        let Sent::Added(seq) = sent else {
            continue;
        };
        let message = queue.message(seq);
        let id = message.map(|message| queue.id_of(seq, message).to_box());
        let new_id = id.filter(|id| *id != letter.id);
        moved
            .gone
            .push((letter.seq, new_id.map(|id| id.into_vec().into())));
    }
    Ok(())
}

fn send_of(letter: &Letter, is_taken: bool) -> Send<'_> {
    Send {
        id: (!is_taken).then(|| (&*letter.id).into()),
        group: letter.group.as_deref().map(Into::into),
        choices: Choices {
            label: letter.label.clone(),
            headers: letter.headers.clone(),
            ..Choices::default()
        },
        ..Send::plain(&letter.payload)
    }
}
