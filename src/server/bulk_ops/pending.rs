//! Bulk operations that would block the server for too long if they ran at once, and the clients
//! that wait for them.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::redis::blocking::Handle;
use dq_queue::queue::bulk::{Plan, Step};
use dq_queue::{Millis, Queue};

use super::slice_size::SliceSize;
use super::write_partial;
use crate::server::address::QueueAddress;

/// An operation that runs in slices.
struct BulkOp {
    plan: Plan,
    /// The number of messages that it has removed or revived so far.
    counted: Rc<Cell<u64>>,
    size: SliceSize,
    client: Handle,
}

thread_local! {
    /// The operations of each queue, in the order in which they came.
    static PENDING: RefCell<HashMap<QueueAddress, VecDeque<BulkOp>>> = RefCell::default();
}

/// The number of queues in `PENDING`, so that the map is not searched while there are none.
static QUEUES: AtomicUsize = AtomicUsize::new(0);

/// Adds an operation on a queue, for a client that is blocked.
pub fn add(db: i32, key: &[u8], plan: Plan, (client, counted): (Handle, Rc<Cell<u64>>)) {
    PENDING.with_borrow_mut(|all| {
        let of_queue = all.entry((db, key.into())).or_default();
        of_queue.push_back(BulkOp {
            plan,
            counted,
            size: SliceSize::default(),
            client,
        });
        QUEUES.store(all.len(), Relaxed);
    });
}

/// The next step of a queue's first bulk operation at `now`. Operations whose client is gone are
/// dropped.
pub fn next_step(db: i32, key: &[u8], queue: &Queue, now: Millis) -> Option<Step> {
    change(db, key, |of_queue| {
        of_queue.retain(|bulk_op| !bulk_op.client.is_over());
        let bulk_op = of_queue.front_mut()?;
        Some(bulk_op.plan.next(queue, bulk_op.size.most(), now))
    })
}

/// The result of a step.
pub struct Taken {
    /// How many messages the step has removed or revived.
    pub count: u64,
    /// Whether it was the last one.
    pub is_last: bool,
    /// How long the step took, in microseconds.
    pub took_us: u64,
    /// How long the step should take at most, in microseconds.
    pub aim_us: u64,
}

/// A step of a queue's first bulk operation was taken. Answers the client if it was the last.
pub fn step_taken(db: i32, key: &[u8], taken: Taken) {
    let ended = change(db, key, |of_queue| {
        let bulk_op = of_queue.front_mut()?;
        bulk_op.counted.set(bulk_op.counted.get() + taken.count);
        bulk_op.size.follow(taken.took_us, taken.aim_us);
        match taken.is_last {
            true => of_queue.pop_front(),
            false => None,
        }
    });
    // This runs callbacks at once, so no state may be borrowed.
    if let Some(BulkOp {
        counted, client, ..
    }) = ended
    {
        client.answer(|reply| reply.unsigned(counted.get()));
    }
}

/// Whether any queue has bulk operations.
pub fn any_at_all() -> bool {
    QUEUES.load(Relaxed) > 0
}

/// Changes the bulk operations of a queue, if it has any.
fn change<R>(
    db: i32,
    key: &[u8],
    change: impl FnOnce(&mut VecDeque<BulkOp>) -> Option<R>,
) -> Option<R> {
    if QUEUES.load(Relaxed) == 0 {
        return None;
    }
    let address: QueueAddress = (db, key.into());
    PENDING.with_borrow_mut(|all| {
        let of_queue = all.get_mut(&address)?;
        let result = change(of_queue);
        if of_queue.is_empty() {
            all.remove(&address);
        }
        QUEUES.store(all.len(), Relaxed);
        result
    })
}

/// Whether a queue has bulk operations.
pub fn any(db: i32, key: &[u8]) -> bool {
    QUEUES.load(Relaxed) > 0 && PENDING.with_borrow(|all| all.contains_key(&(db, key.into())))
}

/// Ends the operations on a queue before their time, because of `why`, a sentence that names it.
pub fn end(db: i32, key: &[u8], why: &str) {
    if QUEUES.load(Relaxed) == 0 {
        return;
    }
    let ended = PENDING.with_borrow_mut(|all| {
        let ended = all.remove(&(db, key.into()));
        QUEUES.store(all.len(), Relaxed);
        ended
    });
    // Answering runs callbacks at once, so no state may be borrowed.
    for BulkOp {
        counted, client, ..
    } in ended.into_iter().flatten()
    {
        client.answer(|reply| write_partial(reply, counted.get(), why));
    }
}

/// Ends the operations on all queues of a database, or of all databases (see [`end`]).
pub fn end_all(db: Option<i32>, why: &str) {
    if QUEUES.load(Relaxed) == 0 {
        return;
    }
    let addresses: Vec<QueueAddress> = PENDING.with_borrow(|all| {
        let of_db = all.keys().filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    for (db, key) in addresses {
        end(db, &key, why);
    }
}
