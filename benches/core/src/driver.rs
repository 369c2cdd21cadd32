//! One queue, driven as the server drives it: time first, then the operation,
//! then its record.

use smallvec::smallvec;

use dq_queue::codec::log_entry::LogEntry;
use dq_queue::op::{DueTime, Fetch, Op, Receipts, Send};
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Queue, Receipt};

/// When the first operation is done, in Unix ms.
pub const START: Millis = 1_700_000_000_000;
/// What is sent: as long as in the benchmarks of the server.
pub const PAYLOAD: [u8; 100] = [b'x'; 100];
/// The steps of a slice, as the timer of the module takes them.
const STEPS: u64 = 512;

/// A queue, its clock, and room for records.
pub struct Driver {
    /// The queue itself.
    pub queue: Queue,
    us: u64,
    record: Vec<u8>,
}

impl Driver {
    /// A new queue with default options.
    pub fn new() -> Driver {
        Driver {
            queue: Queue::new(Settings::default(), Clock::Server, 7),
            us: START * 1000,
            record: Vec::new(),
        }
    }

    /// Lets time pass, without doing what falls due.
    pub fn pass(&mut self, ms: Millis) {
        self.us += ms * 1000;
    }

    /// Does an operation, a microsecond after the last one, and writes its
    /// record.
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
        done.expect("the operation is a good one")
    }

    /// Does what has fallen due, a slice at a time.
    pub fn advance(&mut self) {
        let now = self.us / 1000;
        while self.queue.has_work(now) {
            self.queue.advance(now, STEPS);
        }
    }

    /// Sends a message, due so many ms from now.
    pub fn send(&mut self, delay: Millis, group: Option<&[u8]>) {
        let mut send = Send::plain(&PAYLOAD);
        if delay > 0 {
            send.due = DueTime::After(delay);
        }
        send.group = group.map(Into::into);
        self.apply(&Op::Send(send));
    }

    /// Fetches so many messages and acks those of the fetch before.
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
