//! The children of a message, in all queues that have reported children.

use crate::redis::{Context, Name, OwnedName};
use crate::server::{clock, rights};
use dq_queue::args::children::Cursor;
use dq_queue::family::slot_of_key;
use dq_queue::message::kin::Children;
use dq_queue::message::state::State;
use dq_queue::queue::inspect::view::View;
use dq_queue::{Queue, Seq};

/// The greatest number of queues that one call goes through.
const QUEUES: usize = 16;
/// The greatest number of children among which one that has not ended is searched.
const LOOKED_AT: usize = 1000;
/// The number of children that are looked at in one step of that search.
const AT_ONCE: usize = 32;

/// A child, as a client sees it.
pub struct Child {
    /// The key of its queue.
    pub key: Box<[u8]>,
    /// Its id.
    pub id: Box<[u8]>,
    /// Its state.
    pub state: State,
    /// The text of its result, if it has finished with one.
    pub result: Option<Box<[u8]>>,
    /// The text of its last error, if it has one.
    pub error: Option<Box<[u8]>>,
}

impl Child {
    fn of(key: &[u8], view: &View<'_>) -> Child {
        let texts = view.message.texts();
        Child {
            key: key.into(),
            id: view.id.as_bytes().into(),
            state: view.state,
            result: texts.and_then(|texts| texts.result.clone()),
            error: texts.and_then(|texts| texts.error.clone()),
        }
    }
}

/// Up to `most` children of the message with the id `id` in the queue `parent`, from a cursor on, in
/// these queues, for a command that looks for them. Also returns the next cursor, unless that is the
/// end. A queue that is gone, of another type, or that the user may not read by one command has none.
/// A call looks through a bounded part of them, so it may return fewer.
pub fn list(
    ctx: &mut Context,
    command: &str,
    (parent, id): (Name<'_>, &[u8]),
    queues: &[Box<[u8]>],
    mut cursor: Cursor,
    most: usize,
) -> (Option<Cursor>, Vec<Child>) {
    let mut children = Vec::new();
    let last = cursor.queue.saturating_add(QUEUES);
    while let Some(key) = queues.get(cursor.queue) {
        let left = most - children.len();
        if left == 0 || cursor.queue == last {
            return (Some(cursor), children);
        }
        let (next, more) = list_in(ctx, command, (parent, id), key, cursor.behind, left);
        let is_over = next.is_none();
        children.extend(more);
        cursor = match next {
            Some(behind) => Cursor { behind, ..cursor },
            None => Cursor {
                queue: cursor.queue + 1,
                behind: 0,
            },
        };
        if !is_over {
            return (Some(cursor), children);
        }
    }
    (None, children)
}

/// The keys of the queues that have reported children to the message with this id.
pub fn queues_of_children(queue: &Queue, id: &[u8]) -> Vec<Box<[u8]>> {
    let children = children_of(queue, id);
    children.map_or(Vec::new(), |children| children.queues.clone())
}

/// Whether the message with this id waits for a dead child, or is about to die of one.
pub fn waits_for_dead(queue: &Queue, id: &[u8]) -> bool {
    children_of(queue, id).is_some_and(|children| children.counts.kept > 0 || children.dies)
}

fn children_of<'q>(queue: &'q Queue, id: &[u8]) -> Option<&'q Children> {
    let message = queue.find(id).and_then(|seq| queue.message(seq))?;
    message.children()
}

/// The id of a child that has not ended: a dead one if the message waits for one, or else the first.
/// It looks through a bounded part of them, and no further than to the first that will do: a child
/// costs as much as reading a message.
pub fn first_open(
    ctx: &mut Context,
    command: &str,
    parent: (Name<'_>, &[u8]),
    queues: &[Box<[u8]>],
    dead_first: bool,
) -> Option<Box<[u8]>> {
    let mut open = None;
    let mut from = Cursor::default();
    for _ in 0..LOOKED_AT.div_ceil(AT_ONCE) {
        let (next, children) = list(ctx, command, parent, queues, from, AT_ONCE);
        for child in children {
            match child.state {
                State::Dead if dead_first => return Some(child.id),
                State::Dead | State::Finished | State::Cancelled => {}
                _ if dead_first => open = open.or(Some(child.id)),
                _ => return Some(child.id),
            }
        }
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    open
}

/// Children in one queue, and the place at which to continue in it.
fn list_in(
    ctx: &mut Context,
    command: &str,
    (parent, id): (Name<'_>, &[u8]),
    key: &[u8],
    behind: Seq,
    most: usize,
) -> (Option<Seq>, Vec<Child>) {
    let name = OwnedName::new(key);
    let is_own = key == parent.bytes();
    let is_elsewhere = ctx.is_in_cluster() && slot_of_key(key) != slot_of_key(parent.bytes());
    let may_see = |ctx: &Context| {
        let id = OwnedName::new(id);
        rights::may_see(ctx, command, name.name(), id.name())
    };
    if is_elsewhere || !is_own && !may_see(ctx) {
        return (None, Vec::new());
    }
    let moment = clock::now();
    let Ok(opened) = ctx.open_read(name.name()) else {
        return (None, Vec::new());
    };
    let Some(queue) = opened.get() else {
        return (None, Vec::new());
    };
    let now = queue.time(moment);
    let (next, seqs) = queue.children_of(parent.bytes(), id, behind, most);
    let views = seqs.into_iter().filter_map(|seq| queue.view(seq, now));
    (next, views.map(|view| Child::of(key, &view)).collect())
}
