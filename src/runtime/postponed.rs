//! Operations that would hold the server if they were done at once, and the
//! clients that wait for them meanwhile.
//!
//! The timer does what is to come before each (`core/queue/approach.rs`), and
//! at last the operation itself.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::ffi::blocking::Handle;
use dq_queue::op::Redrive;
use dq_queue::queue::approach::Approach;
use dq_queue::{Done, Millis, Op, Queue};

use super::index::Place;
use super::pace::Pace;

/// An operation that counts what it does, and what was counted so far.
struct Postponed {
    op: Op<'static>,
    counted: u64,
    /// Of its slices, and of those of what comes before it.
    pace: Pace,
    client: Handle,
}

impl Postponed {
    /// What is to be done for it now, if it need not wait.
    fn next_step(&self, queue: &mut Queue, now: Millis) -> Option<Step> {
        let most = self.pace.most();
        let (op, is_last) = match queue.approach(&self.op, now) {
            Approach::Later => return None,
            Approach::First(of) => (Op::PurgeSome { of, most }, false),
            Approach::Parts(left) => (Op::Redrive(Redrive::Oldest(most.min(left))), false),
            Approach::AtOnce => (self.op.clone(), true),
        };
        Some(Step { op, is_last })
    }

    /// So many were counted by a step.
    fn count(&mut self, count: u64) {
        self.counted += count;
        if let Op::Redrive(Redrive::Oldest(most)) = &mut self.op {
            *most = most.saturating_sub(count);
        }
    }
}

thread_local! {
    /// By queue, in the order in which they came.
    static POSTPONED: RefCell<HashMap<Place, VecDeque<Postponed>>> = RefCell::default();
}

/// Queues that have any, so that nothing is looked up while there are none.
static QUEUES: AtomicUsize = AtomicUsize::new(0);

/// A step towards an operation that was postponed.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// What is to be done now.
    pub op: Op<'static>,
    /// Whether the whole is done with that.
    is_last: bool,
}

/// Postpones an operation on a queue for a client that waits.
pub fn add(db: i32, key: &[u8], op: Op<'static>, client: Handle) {
    POSTPONED.with_borrow_mut(|all| {
        let of_queue = all.entry((db, key.into())).or_default();
        of_queue.push_back(Postponed {
            op,
            counted: 0,
            pace: Pace::default(),
            client,
        });
        QUEUES.store(all.len(), Relaxed);
    });
}

/// The next step for a queue, if any is to be made at `now`. Those whose client
/// is gone are forgotten.
pub fn next_step(db: i32, key: &[u8], queue: &mut Queue, now: Millis) -> Option<Step> {
    if QUEUES.load(Relaxed) == 0 {
        return None;
    }
    let place: Place = (db, key.into());
    POSTPONED.with_borrow_mut(|all| {
        let of_queue = all.get_mut(&place)?;
        of_queue.retain(|postponed| !postponed.client.is_over());
        let step = of_queue
            .front()
            .and_then(|postponed| postponed.next_step(queue, now));
        if of_queue.is_empty() {
            all.remove(&place);
        }
        QUEUES.store(all.len(), Relaxed);
        step
    })
}

/// A step was made in so many microseconds, and was to take `aim_us` at most;
/// answers the client if it was the last.
pub fn made(db: i32, key: &[u8], step: &Step, done: &Done, took_us: u64, aim_us: u64) {
    let place: Place = (db, key.into());
    let count = match done {
        Done::Count(count) => *count,
        _ => 0,
    };
    let ended = POSTPONED.with_borrow_mut(|all| {
        let of_queue = all.get_mut(&place)?;
        let postponed = of_queue.front_mut()?;
        postponed.count(count);
        postponed.pace.follow(took_us, aim_us);
        let ended = match step.is_last {
            true => of_queue.pop_front(),
            false => None,
        };
        if of_queue.is_empty() {
            all.remove(&place);
        }
        QUEUES.store(all.len(), Relaxed);
        ended
    });
    answer(ended);
}

/// Whether anything is postponed on a queue.
pub fn any(db: i32, key: &[u8]) -> bool {
    QUEUES.load(Relaxed) > 0 && POSTPONED.with_borrow(|all| all.contains_key(&(db, key.into())))
}

/// Answers those who wait for operations on a queue that is gone: there is
/// nothing left for them to do.
pub fn tell_gone(db: i32, key: &[u8]) {
    if QUEUES.load(Relaxed) == 0 {
        return;
    }
    let ended = POSTPONED.with_borrow_mut(|all| {
        let ended = all.remove(&(db, key.into()));
        QUEUES.store(all.len(), Relaxed);
        ended
    });
    answer(ended.into_iter().flatten());
}

/// The same for all queues of a database, or of all.
pub fn tell_flushed(db: Option<i32>) {
    let places: Vec<Place> = POSTPONED.with_borrow(|all| {
        let of_db = all.keys().filter(|(of, _)| db.is_none_or(|db| db == *of));
        of_db.cloned().collect()
    });
    for (db, key) in places {
        tell_gone(db, &key);
    }
}

/// Answering runs callbacks at once: nothing may be borrowed.
fn answer(ended: impl IntoIterator<Item = Postponed>) {
    for Postponed {
        counted, client, ..
    } in ended
    {
        client.answer(|reply| reply.unsigned(counted));
    }
}
