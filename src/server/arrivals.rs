//! The lines of the log about queues that have arrived with a clock that is ahead of this
//! server's.
//!
//! One arrival gives one line. So does the load of many queues at once.

use std::cell::RefCell;

use super::wakeups;
use crate::redis::{warn, Name};
use dq_queue::quote::quote;
use dq_queue::Millis;

/// A lead in ms from which on a line is logged, although the lead shrinks. The clocks of two
/// machines always differ a little.
const LEAST: Millis = 1000;

/// The queues that have arrived since the last line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arrived {
    /// The number of queues whose lead was cut.
    cut: u64,
    /// The number of queues whose clocks go at half speed.
    slowed: u64,
    /// The largest lead of all these queues, in ms.
    lead: Millis,
    /// The first of the queues.
    first: Vec<u8>,
}

thread_local! {
    static ARRIVED: RefCell<Arrived> = RefCell::default();
}

/// A queue has arrived, and is ahead by `lead` ms after that.
pub fn arrived(key: Name<'_>, lead: Millis) {
    if lead >= LEAST {
        note(key, lead, |arrived| arrived.slowed += 1);
    }
}

/// The lead of a queue was cut, which was `lead` ms.
pub fn lead_was_cut(key: Name<'_>, lead: Millis) {
    note(key, lead, |arrived| arrived.cut += 1);
}

fn note(key: Name<'_>, lead: Millis, count: impl FnOnce(&mut Arrived)) {
    ARRIVED.with_borrow_mut(|arrived| {
        if arrived.cut + arrived.slowed == 0 {
            arrived.first = key.bytes().to_vec();
        }
        arrived.lead = arrived.lead.max(lead);
        count(arrived);
    });
}

/// Writes the line, once all arrived queues were checked. Called by the server's cron.
pub fn write_line() {
    if ARRIVED.with_borrow(|arrived| arrived.lead == 0) || wakeups::has_arrivals() {
        return;
    }
    let arrived = ARRIVED.take();
    warn(&arrived.line());
}

impl Arrived {
    fn line(&self) -> String {
        let first = quote(&self.first);
        let seconds = self.lead as f64 / 1000.0;
        let what = match (self.cut, self.slowed) {
            (_, 0) => "its lead was cut",
            (0, _) => "it goes at half speed until the server has caught up",
            _ => "large leads were cut",
        };
        match self.cut + self.slowed {
            1 => format!(
                "the clock of the queue {first} was {seconds:.1} s ahead of this server's: {what}"
            ),
            queues => format!(
                "the clocks of {queues} queues, {first} first, were up to {seconds:.1} s ahead of \
                 this server's: the leads of {} were cut, {} go at half speed until the server has \
                 caught up",
                self.cut, self.slowed
            ),
        }
    }
}
