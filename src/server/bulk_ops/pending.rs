//! Bulk operations that would block the server for too long if they ran at once, and the clients
//! that wait for them.
//!
//! The timer runs the steps that must come before each operation (its plan, in `queue/approach.rs`
//! of the library), and finally the operation itself.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::redis::blocking::Handle;
use dq_queue::op::Redrive;
use dq_queue::queue::approach::Approach;
use dq_queue::{Done, Millis, Op, Queue};

use super::slice_size::SliceSize;
use crate::server::QueueAddress;

/// An operation that runs in slices.
struct BulkOp {
    op: Op<'static>,
    /// The number of messages that it has removed or revived so far.
    counted: u64,
    size: SliceSize,
    client: Handle,
}

impl BulkOp {
    /// Its next slice, or `None` while other work of the queue must come first.
    fn next_slice(&self, queue: &mut Queue, now: Millis) -> Option<Slice> {
        let most = self.size.most();
        let (op, is_last) = match queue.approach(&self.op, now) {
            Approach::Later => return None,
            Approach::First(of) => (Op::PurgeSome { of, most }, false),
            Approach::Parts(left) => (Op::Redrive(Redrive::Oldest(most.min(left))), false),
            Approach::AtOnce => (self.op.clone(), true),
        };
        Some(Slice { op, is_last })
    }

    /// Counts the messages that a slice has removed or revived.
    fn count(&mut self, count: u64) {
        self.counted += count;
        if let Op::Redrive(Redrive::Oldest(most)) = &mut self.op {
            *most = most.saturating_sub(count);
        }
    }
}

thread_local! {
    /// The operations of each queue, in the order in which they came.
    static PENDING: RefCell<HashMap<QueueAddress, VecDeque<BulkOp>>> = RefCell::default();
}

/// The number of queues in `PENDING`, so that nothing is looked up while there are none.
static QUEUES: AtomicUsize = AtomicUsize::new(0);

/// One slice of a bulk operation.
#[derive(Debug, PartialEq)]
pub struct Slice {
    /// The operation that this slice applies to the queue.
    pub op: Op<'static>,
    /// Whether the bulk operation is complete after it.
    is_last: bool,
}

/// Adds an operation on a queue, and the blocked client that waits for it.
pub fn add(db: i32, key: &[u8], op: Op<'static>, client: Handle) {
    PENDING.with_borrow_mut(|all| {
        let of_queue = all.entry((db, key.into())).or_default();
        of_queue.push_back(BulkOp {
            op,
            counted: 0,
            size: SliceSize::default(),
            client,
        });
        QUEUES.store(all.len(), Relaxed);
    });
}

/// The next slice of a queue's bulk operations at `now`. Drops operations whose client is gone.
pub fn next_slice(db: i32, key: &[u8], queue: &mut Queue, now: Millis) -> Option<Slice> {
    if QUEUES.load(Relaxed) == 0 {
        return None;
    }
    let address: QueueAddress = (db, key.into());
    PENDING.with_borrow_mut(|all| {
        let of_queue = all.get_mut(&address)?;
        of_queue.retain(|bulk_op| !bulk_op.client.is_over());
        let slice = of_queue
            .front()
            .and_then(|bulk_op| bulk_op.next_slice(queue, now));
        if of_queue.is_empty() {
            all.remove(&address);
        }
        QUEUES.store(all.len(), Relaxed);
        slice
    })
}

/// A slice is done. It took `took_us` microseconds, and should take at most `aim_us`. Answers the
/// client if it was the last slice.
pub fn slice_done(db: i32, key: &[u8], slice: &Slice, done: &Done, took_us: u64, aim_us: u64) {
    let address: QueueAddress = (db, key.into());
    let count = match done {
        Done::Count(count) => *count,
        _ => 0,
    };
    let ended = PENDING.with_borrow_mut(|all| {
        let of_queue = all.get_mut(&address)?;
        let bulk_op = of_queue.front_mut()?;
        bulk_op.count(count);
        bulk_op.size.follow(took_us, aim_us);
        let ended = match slice.is_last {
            true => of_queue.pop_front(),
            false => None,
        };
        if of_queue.is_empty() {
            all.remove(&address);
        }
        QUEUES.store(all.len(), Relaxed);
        ended
    });
    answer(ended);
}

/// Whether a queue has bulk operations.
pub fn any(db: i32, key: &[u8]) -> bool {
    QUEUES.load(Relaxed) > 0 && PENDING.with_borrow(|all| all.contains_key(&(db, key.into())))
}

/// Answers the clients of operations on a queue that is gone, because nothing is left to do.
pub fn answer_gone(db: i32, key: &[u8]) {
    if QUEUES.load(Relaxed) == 0 {
        return;
    }
    let ended = PENDING.with_borrow_mut(|all| {
        let ended = all.remove(&(db, key.into()));
        QUEUES.store(all.len(), Relaxed);
        ended
    });
    answer(ended.into_iter().flatten());
}

/// Answers the clients of operations on all queues of a database, or of all databases (see
/// [`answer_gone`]).
pub fn answer_flushed(db: Option<i32>) {
    let addresses: Vec<QueueAddress> = PENDING.with_borrow(|all| {
        let of_db = all.keys().filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    for (db, key) in addresses {
        answer_gone(db, &key);
    }
}

/// Answers the clients of operations that have ended. This runs callbacks at once, so nothing may
/// be borrowed.
fn answer(ended: impl IntoIterator<Item = BulkOp>) {
    for BulkOp {
        counted, client, ..
    } in ended
    {
        client.answer(|reply| reply.unsigned(counted));
    }
}
