//! Slots on their way: in a cluster, the keys of a slot are moved to another node one by one.
//!
//! So a queue may be here, and a key that it names may not: its event stream, its queue of DEADTO, the
//! parent of a message. A change that writes there would make a second one, which is lost with the
//! slot, or is in the way of the first. So a command that would write to a key that is not here gets
//! TRYAGAIN, like one that names such a key, and all that no client has asked for waits.

use std::collections::BTreeSet;

use crate::redis::{Context, Failure, Name, OwnedName};
use dq_queue::{Moment, Op, Queue};

use super::clock;

/// The most keys that are looked at because of one queue. One of several more is taken to be missing.
const MOST_KEYS: usize = 256;

/// Something would write to a key that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotHere;

impl From<NotHere> for Failure {
    fn from(_: NotHere) -> Failure {
        "TRYAGAIN the slot is on its way, and this would write to a key of it that is not here"
            .into()
    }
}

/// The events that an operation can cause in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// The due events, and the operation.
    All,
    /// Only the operation: the due events wait.
    OnlyOperate,
}

/// The part of an operation that may happen in the queue of a key; without `op`, only due events are
/// asked for.
///
/// Error: it would write to a key that is not here.
#[inline]
pub fn check(ctx: &mut Context, key: Name<'_>, op: Option<&Op<'_>>) -> Result<May, NotHere> {
    match ctx.is_in_cluster() {
        false => Ok(May::All),
        true => check_in_cluster(ctx, key, op),
    }
}

/// Whether what is due in the queue of a key waits for other keys of its slot.
pub fn waits(ctx: &mut Context, key: Name<'_>) -> bool {
    check(ctx, key, None).is_err()
}

#[inline(never)]
fn check_in_cluster(ctx: &mut Context, key: Name<'_>, op: Option<&Op<'_>>) -> Result<May, NotHere> {
    let moment = clock::now();
    let needs = look(ctx, key, |queue| Needs::of(queue, op, moment)).flatten();
    let Some(Needs { first, own }) = needs.filter(|_| !ctx.must_obey()) else {
        return Ok(May::All);
    };
    // This is rare once all keys have been made.
    if first.is_some_and(|keys| are_plainly_here(ctx, &keys)) || !ctx.is_on_its_way(key) {
        return Ok(May::All);
    }
    let all = look(ctx, key, |queue| owned(queue.tied_keys()));
    if are_here(ctx, key, all.unwrap_or_default()) {
        return Ok(May::All);
    }
    match own.is_some_and(|own| are_here(ctx, key, own)) {
        true => Ok(May::OnlyOperate),
        false => Err(NotHere),
    }
}

/// Keys that a change of a queue may write to.
struct Needs {
    /// All of them, if that takes no search.
    first: Option<Vec<Box<[u8]>>>,
    /// Those of its operation, if there is one and nothing else comes first.
    own: Option<Vec<Box<[u8]>>>,
}

impl Needs {
    /// `None` if there are none.
    fn of(queue: &Queue, op: Option<&Op<'_>>, moment: Moment) -> Option<Needs> {
        if !queue.is_tied() {
            return None;
        }
        let now = queue.time(moment);
        let own = op.filter(|_| !queue.owes());
        let own = own.map(|op| owned(queue.keys_for(op, now)));
        let first = match queue.has_work(now) {
            false if own.is_some() => own.clone(),
            _ => (!queue.may_have_parents()).then(|| owned(queue.tied_keys())),
        };
        Some(Needs { first, own })
    }
}

/// Whether these keys are here, and changes of them write to no others.
fn are_plainly_here(ctx: &mut Context, keys: &[Box<[u8]>]) -> bool {
    keys.iter().all(|key| {
        let name = OwnedName::new(key);
        let is_tied = look(ctx, name.name(), Queue::is_tied);
        is_tied.map_or_else(|| ctx.is_used(name.name()), |is_tied| !is_tied)
    })
}

/// Whether these keys are here, and all that changes of the queues in them may write to in turn.
fn are_here(ctx: &mut Context, key: Name<'_>, mut left: Vec<Box<[u8]>>) -> bool {
    let mut seen = BTreeSet::from([Box::from(key.bytes())]);
    while let Some(key) = left.pop() {
        let name = OwnedName::new(&key);
        if !seen.insert(key) {
            continue;
        }
        let of_queue = look(ctx, name.name(), |queue| owned(queue.tied_keys()));
        let is_missing = of_queue.is_none() && !ctx.is_used(name.name());
        if is_missing || seen.len() > MOST_KEYS {
            return false;
        }
        left.extend(of_queue.unwrap_or_default());
    }
    true
}

/// Looks at the queue in a key, if there is one.
fn look<R>(ctx: &mut Context, key: Name<'_>, look: impl FnOnce(&Queue) -> R) -> Option<R> {
    let opened = ctx.open_read(key).ok()?;
    opened.get().map(look)
}

fn owned(keys: BTreeSet<&[u8]>) -> Vec<Box<[u8]>> {
    keys.into_iter().map(Into::into).collect()
}
