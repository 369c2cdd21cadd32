//! When blocked clients have waited long enough, by a clock that nobody sets.
//!
//! The server reckons the timeouts of blocked clients by the wall clock, so that
//! a step of that ends them early or late. Ours are blocked without end as far as
//! the server knows, and end here.

use super::blocking::{Handle, Wait};
use super::clock;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A time of the monotonic clock in microseconds, and a number that tells
/// deadlines of one time apart.
pub(super) type Deadline = (u64, u64);

#[derive(Default)]
struct Deadlines {
    by_time: BTreeMap<Deadline, (Handle, Rc<dyn Wait>)>,
    last_number: u64,
}

thread_local! {
    static DEADLINES: RefCell<Deadlines> = RefCell::default();
}

/// Notes that a wait ends in so many milliseconds. O(log n).
pub(super) fn add(timeout_ms: u64, client: Handle, wait: Rc<dyn Wait>) -> Deadline {
    let at = clock::monotonic_us().saturating_add(timeout_ms.saturating_mul(1000));
    DEADLINES.with_borrow_mut(|deadlines| {
        deadlines.last_number += 1;
        let deadline = (at, deadlines.last_number);
        deadlines.by_time.insert(deadline, (client, wait));
        deadline
    })
}

/// A wait has ended otherwise. O(log n).
pub(super) fn remove(deadline: Deadline) {
    let ended = DEADLINES.with_borrow_mut(|deadlines| deadlines.by_time.remove(&deadline));
    // What it held may be freed now, while nothing is borrowed.
    drop(ended);
}

/// In how many milliseconds the next wait ends, rounded up; `None` where nobody
/// waits for a limited time.
pub fn next_in_ms() -> Option<u64> {
    DEADLINES.with_borrow(|deadlines| {
        let ((at, _), _) = deadlines.by_time.first_key_value()?;
        Some(at.saturating_sub(clock::monotonic_us()).div_ceil(1000))
    })
}

/// Answers those who have waited long enough. O(log n) for each of them.
pub fn end_overdue() {
    while let Some((client, wait)) = pop_overdue() {
        client.answer(|reply| wait.timed_out(reply));
    }
}

fn pop_overdue() -> Option<(Handle, Rc<dyn Wait>)> {
    DEADLINES.with_borrow_mut(|deadlines| {
        let first = deadlines.by_time.first_entry()?;
        let (at, _) = *first.key();
        (at <= clock::monotonic_us()).then(|| first.remove())
    })
}
