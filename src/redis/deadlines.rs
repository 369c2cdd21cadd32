//! The timeouts of blocked clients, by the monotonic clock.
//!
//! The server computes the timeouts of blocked clients by the wall clock, so a step of the wall
//! clock ends them early or late. The module therefore blocks its clients without a timeout as far
//! as the server knows, and ends their waits itself.

use super::clock;
use super::wait::Wait;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A time of the monotonic clock in microseconds, and a number that distinguishes deadlines of the
/// same time.
pub(super) type Deadline = (u64, u64);

/// A blocked client, as far as its timeout is concerned.
pub(super) trait Blocked: 'static {
    /// Ends the wait with the reply that it has for a timeout. Does nothing if the wait is over.
    fn time_out(self: Rc<Self>, wait: &dyn Wait);
}

/// A client that waits until its deadline, and the condition that it waits for.
type Waiting = (Rc<dyn Blocked>, Rc<dyn Wait>);

#[derive(Default)]
struct Deadlines {
    by_time: BTreeMap<Deadline, Waiting>,
    last_number: u64,
}

thread_local! {
    static DEADLINES: RefCell<Deadlines> = RefCell::default();
}

/// Adds a deadline in `timeout_ms` milliseconds, at which the wait times out. O(log n).
pub(super) fn add(timeout_ms: u64, client: Rc<dyn Blocked>, wait: Rc<dyn Wait>) -> Deadline {
    let at = clock::monotonic_us().saturating_add(timeout_ms.saturating_mul(1000));
    DEADLINES.with_borrow_mut(|deadlines| {
        deadlines.last_number += 1;
        let deadline = (at, deadlines.last_number);
        deadlines.by_time.insert(deadline, (client, wait));
        deadline
    })
}

/// Removes a deadline whose wait has ended before. O(log n).
pub(super) fn remove(deadline: Deadline) {
    let ended = DEADLINES.with_borrow_mut(|deadlines| deadlines.by_time.remove(&deadline));
    // Dropping may run code that uses the deadlines, so nothing may be borrowed here.
    drop(ended);
}

/// The number of milliseconds until the next deadline, rounded up. `None` if no wait has a timeout.
pub fn next_in_ms() -> Option<u64> {
    DEADLINES.with_borrow(|deadlines| {
        let ((at, _), _) = deadlines.by_time.first_key_value()?;
        Some(at.saturating_sub(clock::monotonic_us()).div_ceil(1000))
    })
}

/// Ends all waits whose deadline has passed, and answers their clients. O(log n) for each client.
pub fn end_overdue() {
    while let Some((client, wait)) = pop_overdue() {
        client.time_out(&*wait);
    }
}

fn pop_overdue() -> Option<Waiting> {
    DEADLINES.with_borrow_mut(|deadlines| {
        let first = deadlines.by_time.first_entry()?;
        let (at, _) = *first.key();
        (at <= clock::monotonic_us()).then(|| first.remove())
    })
}
