//! Drives one queue as the server does: first due events, then the operation, then its log entry.

use smallvec::smallvec;

use dq_queue::codec::log_entry::LogEntry;
use dq_queue::op::{DueTime, Fetch, Op, Receipts, Send};
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Queue, Receipt};

/// The time of the first operation, in Unix milliseconds.
pub const START: Millis = 1_700_000_000_000;
/// The payload of each message. It is as long as in the benchmarks of the server.
pub const PAYLOAD: [u8; 100] = [b'x'; 100];
/// The maximum number of steps of a slice, as for a command of the module.
const STEPS: u64 = 512;

/// A queue, its clock, and a buffer for log entries.
pub struct Driver {
    /// The queue itself.
    pub queue: Queue,
    us: u64,
    entry: Vec<u8>,
}

impl Driver {
    /// A new queue with default options.
    pub fn new() -> Driver {
        Driver {
            queue: Queue::new(Settings::default(), Clock::Server, 7),
            us: START * 1000,
            entry: Vec::new(),
        }
    }

    /// Moves the clock forward by `ms` milliseconds. This processes no due events.
    pub fn pass(&mut self, ms: Millis) {
        self.us += ms * 1000;
    }

    /// Applies an operation one microsecond after the last one, and writes its log entry. Panics if
    /// the queue refuses the operation.
    pub fn apply(&mut self, op: &Op) -> Done {
        self.us += 1;
        let moment = Moment {
            us: self.us,
            receipt: self.us,
        };
        let done = self.queue.apply(op, moment);
        if self.queue.take_effects().changed {
            self.entry.clear();
            LogEntry::of(moment, 0, None, op).encode_into(&mut self.entry);
        }
        done.expect("the operation is a good one")
    }

    /// Processes all due events, in slices.
    pub fn advance(&mut self) {
        let now = self.us / 1000;
        while self.queue.has_work(now) {
            self.queue.advance(now, STEPS);
        }
    }

    /// Sends a message that is due in `delay` milliseconds.
    pub fn send(&mut self, delay: Millis, group: Option<&[u8]>) {
        let mut send = Send::plain(&PAYLOAD);
        if delay > 0 {
            send.due = DueTime::After(delay);
        }
        send.group = group.map(Into::into);
        self.apply(&Op::Send(send));
    }

    /// Fetches at most `count` messages and acks the messages of `acks`. Returns the receipts.
    pub fn fetch(&mut self, count: u64, acks: Receipts) -> Receipts {
        let fetch = Fetch {
            count,
            acks,
            ..Fetch::one()
        };
        match self.apply(&Op::fetch(fetch)) {
            Done::Fetched(given) => given.iter().map(|one| one.receipt).collect(),
            _ => Receipts::new(),
        }
    }

    /// Acks the message with this receipt.
    pub fn ack(&mut self, receipt: Receipt) {
        self.apply(&Op::Ack {
            receipts: smallvec![receipt],
            result: None,
        });
    }
}

impl Default for Driver {
    fn default() -> Driver {
        Driver::new()
    }
}
