//! Clients that are blocked in WAIT: they wait for the end of a message.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::redis::blocking::{self, Handle};
use crate::redis::wait::Wait;
use crate::redis::{event_loop, Context, Name, OwnedName, Reply};
use dq_queue::op::Ending;

use super::address::QueueAddress;
use super::rights::{self, Call};
use super::{message_reply, wakeups};

/// The clients that wait for messages of one queue, by the id of the message.
type ByMessage = HashMap<Box<[u8]>, Vec<Waiting>>;

/// A client that waits, and its user.
type Waiting = (Handle, Rc<[u8]>);

thread_local! {
    static BLOCKED: RefCell<HashMap<QueueAddress, ByMessage>> = RefCell::default();
    /// The queues that may have been replaced since clients began to wait.
    static MAYBE_REPLACED: RefCell<HashSet<QueueAddress>> = RefCell::default();
}

/// Whether there are any in `MAYBE_REPLACED`, so that checking costs nothing.
static ANY_MAYBE_REPLACED: AtomicBool = AtomicBool::new(false);

/// Blocks the client of this call until the message has ended, for at most `ms` milliseconds
/// (0: no timeout). The queue must watch the message ([`dq_queue::Queue::watch`]).
pub fn block(ctx: &mut Context, key: Name<'_>, id: &[u8], ms: u64) {
    match blocking::block(ctx, &[key], ms, Rc::new(BlockedClient)) {
        Some(handle) => {
            add(ctx.db(), key.bytes(), id, (handle, ctx.user_name()));
            wakeups::ensure_deadlines(ctx);
        }
        None => ctx.reply().null(),
    }
}

/// A client that waits for the end of a message. [`answer`] answers it.
struct BlockedClient;

impl Wait for BlockedClient {
    fn timed_out(&self, reply: Reply<'_>) {
        reply.null();
    }
}

fn add(db: i32, key: &[u8], id: &[u8], waiting: Waiting) {
    BLOCKED.with_borrow_mut(|all| {
        let by_message = all.entry((db, key.into())).or_default();
        let of_message = by_message.entry(id.into()).or_default();
        of_message.retain(|(handle, _)| !handle.is_over());
        of_message.push(waiting);
    });
}

/// The ids of the messages of a queue that clients wait for.
fn watched(db: i32, key: &[u8]) -> Vec<Box<[u8]>> {
    BLOCKED.with_borrow(|all| {
        let by_message = all.get(&(db, key.into()));
        by_message.map_or(Vec::new(), |by_message| {
            by_message.keys().cloned().collect()
        })
    })
}

/// Answers the clients that wait for this message, or with an error if they have lost their rights.
pub fn answer(ctx: &Context, key: Name<'_>, ending: Ending) {
    let address: QueueAddress = (ctx.db(), key.bytes().into());
    let waiting = BLOCKED.with_borrow_mut(|all| {
        let by_message = all.get_mut(&address)?;
        let waiting = by_message.remove(&ending.id);
        if by_message.is_empty() {
            all.remove(&address);
        }
        waiting
    });
    rights::commands_may_have_run();
    // Answering runs callbacks at once, so no state may be borrowed here.
    for (handle, user) in waiting.into_iter().flatten() {
        let may = rights::is_enabled(ctx, &user) && rights::may_wait(&user, Call::Wait, key);
        handle.answer(|reply| match &ending.end {
            _ if !may => reply.error(rights::WITHDRAWN),
            Some((state, text)) => message_reply::ending(reply, *state, text.as_deref()),
            None => reply.null(),
        });
    }
}

/// Marks the queue at this address as removed or replaced. The running command may still put
/// another queue there, so the messages are looked up only before the server sleeps.
pub fn check_later(db: i32, key: &[u8]) {
    let of_this = |all: &HashMap<QueueAddress, ByMessage>| {
        let address: Option<QueueAddress> = (!all.is_empty()).then(|| (db, key.into()));
        address.filter(|address| all.contains_key(address))
    };
    if let Some(address) = BLOCKED.with_borrow(of_this) {
        add_maybe_replaced([address]);
    }
}

/// Marks all queues of a database, or of all databases, as [`check_later`] does for one.
pub fn check_all_later(db: Option<i32>) {
    let addresses: Vec<QueueAddress> = BLOCKED.with_borrow(|all| {
        let of_db = all.keys().filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    add_maybe_replaced(addresses);
}

fn add_maybe_replaced(addresses: impl IntoIterator<Item = QueueAddress>) {
    let any = MAYBE_REPLACED.with_borrow_mut(|maybe_replaced| {
        maybe_replaced.extend(addresses);
        !maybe_replaced.is_empty()
    });
    ANY_MAYBE_REPLACED.store(any, Relaxed);
    if any {
        event_loop::turn_again();
    }
}

/// Checks the messages of queues that may have been replaced. A client goes on waiting if its
/// message is in the queue that is there now, which may be the same queue loaded anew or another
/// one. A client whose message has ended or is gone is answered.
pub fn before_sleep(ctx: &mut Context) {
    if !ANY_MAYBE_REPLACED.swap(false, Relaxed) {
        return;
    }
    for (db, key) in MAYBE_REPLACED.take() {
        if !ctx.select_db(db) {
            continue;
        }
        let name = OwnedName::new(&key);
        let mut opened = ctx.open_write(name.name()).ok();
        let mut queue = opened.as_mut().and_then(|opened| opened.get_mut());
        let ids = watched(db, &key).into_iter();
        let endings: Vec<Ending> = ids
            .filter_map(|id| match &mut queue {
                Some(queue) => queue.watch_again(id),
                None => Some(Ending { id, end: None }),
            })
            .collect();
        drop(opened);
        for ending in endings {
            answer(ctx, name.name(), ending);
        }
    }
}
