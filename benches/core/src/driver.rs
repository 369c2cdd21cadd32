//! Drives one queue as the server does: time advances first, then the operation is
//! applied, then its log entry is written.

use smallvec::smallvec;

use dq_queue::codec::log_entry::LogEntry;
use dq_queue::op::{Fetch, Op, Receipts, Send};
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Queue, Receipt};

/// When the first operation is done, in Unix milliseconds.
pub const START: Millis = 1_700_000_000_000;
/// The payload of every message, as long as in the benchmarks of the server.
pub const PAYLOAD: [u8; 100] = [b'x'; 100];

/// A queue, its clock, and a buffer for log entries.
pub struct Driver {
    /// The queue itself.
    pub queue: Queue,
    us: u64,
    record: Vec<u8>,
}

impl Driver {
    /// Creates a queue with default options.
    pub fn new() -> Driver {
        Driver {
            queue: Queue::new(Settings::default(), Clock::Server, 7),
            us: START * 1000,
            record: Vec::new(),
        }
    }

    /// Applies an operation one microsecond after the last one, and writes its log
    /// entry.
    ///
    /// # Panics
    /// The queue refuses the operation.
    pub fn apply(&mut self, op: &Op) -> Done {
        self.us += 1;
        let moment = Moment {
            us: self.us,
            receipt: self.us,
        };
        let done = self.queue.apply(op, moment);
        if self.queue.take_effects().changed {
            self.record.clear();
            LogEntry::of(moment, 0, None, op).encode_into(&mut self.record);
        }
        done.expect("the queue accepts the operation")
    }

    /// Sends a message that is due now.
    pub fn send(&mut self, group: Option<&[u8]>) {
        let mut send = Send::plain(&PAYLOAD);
        send.group = group.map(Into::into);
        self.apply(&Op::Send(send));
    }

    /// Fetches up to `count` messages and acks others. Returns the receipts of the
    /// messages.
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

    /// Acks one message.
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
