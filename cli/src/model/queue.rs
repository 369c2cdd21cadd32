//! The figures of a queue, from DQ.INFO.

use redis::Value;

use super::record::Record;
use super::trouble::{self, Trouble};
use crate::failure::Failure;
use crate::time_text::Millis;

/// The nine states.
pub const STATES: [&str; 9] = [
    "delayed",
    "ready",
    "blocked",
    "retry",
    "running",
    "finished",
    "dead",
    "cancelled",
    "held",
];

/// Counters since the queue was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages accepted.
    pub sent: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Deliveries of messages that had been delivered before.
    pub redelivered: u64,
    /// Messages acked.
    pub acked: u64,
    /// Messages nacked.
    pub nacked: u64,
    /// Leases that ran out.
    pub timeouts: u64,
    /// Messages that died.
    pub deaths: u64,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        for (count, more) in [
            (&mut self.sent, other.sent),
            (&mut self.delivered, other.delivered),
            (&mut self.redelivered, other.redelivered),
            (&mut self.acked, other.acked),
            (&mut self.nacked, other.nacked),
            (&mut self.timeouts, other.timeouts),
            (&mut self.deaths, other.deaths),
        ] {
            *count = count.saturating_add(more);
        }
    }
}

/// A queue, or the sum of a family, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its key.
    pub name: Vec<u8>,
    /// Messages by state, in the order of `STATES`.
    pub counts: [u64; 9],
    /// Payload bytes of pending and running messages.
    pub bytes: u64,
    /// Groups with messages, settings or a hold.
    pub groups: u64,
    /// Consumers with a name.
    pub consumers: u64,
    /// Clients that wait in FETCH.
    pub blocked_clients: u64,
    /// Batches that are open.
    pub batches: u64,
    /// Breakers that are open.
    pub breakers_open: u64,
    /// Whether the whole queue is paused.
    pub paused: bool,
    /// Whether the queue takes no new messages (SENDS OFF).
    pub closed: bool,
    /// The queue's clock.
    pub now: Millis,
    /// Counters since the queue was created.
    pub totals: Totals,
    /// When the next delayed or retried message is due.
    pub next_due_at: Option<Millis>,
    /// How long the oldest ready message has waited.
    pub oldest_ready_age: Option<Millis>,
    /// How long the oldest message has been due that was not delivered, also if it is
    /// blocked, paused or waits for a retry. Unknown with an older module.
    pub oldest_due_age: Option<Millis>,
    /// The trouble that does not end by itself: that of DQ.INFO, and that which was found out.
    pub trouble: Vec<Trouble>,
    /// Time from ready to delivered in ms: median, 99th percentile and maximum.
    pub lateness: [Option<Millis>; 3],
}

impl Queue {
    /// Reads the map of DQ.INFO.
    pub fn of(name: &[u8], info: Value) -> Result<Queue, Failure> {
        let info = Record::of(info)?;
        Ok(Queue {
            name: name.to_vec(),
            counts: STATES.map(|state| info.count(state)),
            bytes: info.count("bytes"),
            groups: info.count("groups"),
            consumers: info.count("consumers"),
            blocked_clients: info.count("blocked-clients"),
            batches: info.count("batches"),
            breakers_open: info.count("breakers-open"),
            paused: info.flag("paused"),
            closed: info.text("sends") == "OFF",
            now: info.count("now"),
            totals: Totals {
                sent: info.count("sent"),
                delivered: info.count("delivered"),
                redelivered: info.count("redelivered"),
                acked: info.count("acked"),
                nacked: info.count("nacked"),
                timeouts: info.count("timeouts"),
                deaths: info.count("deaths"),
            },
            next_due_at: info.number("next-due-at"),
            oldest_ready_age: info.number("oldest-ready-age"),
            oldest_due_age: info.number("oldest-due-age"),
            trouble: trouble::of_info(&info),
            lateness: ["lateness-p50", "lateness-p99", "lateness-max"].map(|f| info.number(f)),
        })
    }

    /// Adds the figures of another queue of the same family. The lateness of both is the
    /// higher one: percentiles cannot be added up.
    pub fn add(&mut self, other: &Queue) {
        let others = [
            (&mut self.bytes, other.bytes),
            (&mut self.groups, other.groups),
            (&mut self.consumers, other.consumers),
            (&mut self.blocked_clients, other.blocked_clients),
            (&mut self.batches, other.batches),
            (&mut self.breakers_open, other.breakers_open),
        ];
        for (count, more) in self.counts.iter_mut().zip(other.counts).chain(others) {
            *count = count.saturating_add(more);
        }
        self.paused &= other.paused;
        self.closed &= other.closed;
        self.now = self.now.max(other.now);
        self.totals.add(&other.totals);
        let due = self.next_due_at.into_iter().chain(other.next_due_at);
        self.next_due_at = due.min();
        self.oldest_ready_age = self.oldest_ready_age.max(other.oldest_ready_age);
        self.oldest_due_age = self.oldest_due_age.max(other.oldest_due_age);
        self.trouble.extend(other.trouble.iter().cloned());
        for (late, more) in self.lateness.iter_mut().zip(other.lateness) {
            *late = (*late).max(more);
        }
    }

    /// Returns how long the oldest message is overdue, if the server reports it.
    pub fn overdue(&self) -> Option<Millis> {
        self.oldest_due_age.max(self.oldest_ready_age)
    }

    /// Returns for how long something has needed somebody: work that is overdue, and trouble,
    /// which counts as a minute if its age is not known.
    pub fn needy(&self) -> Option<Millis> {
        let ages = self.trouble.iter().map(|one| one.age.unwrap_or(60_000));
        self.overdue().into_iter().chain(ages).max()
    }

    /// Returns the number of messages that have not ended and are not running.
    pub fn pending(&self) -> u64 {
        let states = ["ready", "delayed", "blocked", "retry", "held"];
        states.map(|state| self.count(state)).iter().sum()
    }

    /// Returns the number of messages in a state, and 0 for an unknown state.
    pub fn count(&self, state: &str) -> u64 {
        let place = STATES.iter().position(|known| *known == state);
        place.and_then(|i| self.counts.get(i)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_of_info_is_read() {
        let field = |name: &str, value| (Value::BulkString(name.as_bytes().to_vec()), value);
        let info = Value::Map(vec![
            field("delayed", Value::Int(3)),
            field("dead", Value::Int(2)),
            field("paused", Value::Boolean(true)),
            field("sends", Value::BulkString(b"OFF".to_vec())),
            field("now", Value::Int(1000)),
            field("acked", Value::Int(9)),
            field("next-due-at", Value::Int(1500)),
            field("oldest-ready-age", Value::Nil),
            field("lateness-p99", Value::Int(4)),
        ]);
        let queue = Queue::of(b"q", info).unwrap();
        assert_eq!(
            (
                queue.count("delayed"),
                queue.count("dead"),
                queue.count("ready")
            ),
            (3, 2, 0)
        );
        assert_eq!(queue.count("nonsense"), 0);
        assert!(queue.paused && queue.closed);
        assert_eq!(queue.totals.acked, 9);
        assert_eq!(
            (queue.next_due_at, queue.oldest_ready_age),
            (Some(1500), None)
        );
        assert_eq!(queue.lateness, [None, Some(4), None]);
        assert!(Queue::of(b"q", Value::Nil).is_err());
    }
    #[test]
    fn a_family_is_the_sum_of_its_queues() {
        let mut sum = Queue {
            paused: true,
            oldest_ready_age: Some(5),
            lateness: [Some(1), None, Some(9)],
            ..Queue::default()
        };
        sum.counts[1] = 2;
        let mut other = Queue {
            next_due_at: Some(70),
            lateness: [Some(3), Some(4), Some(8)],
            ..Queue::default()
        };
        other.counts[1] = 5;
        other.counts[8] = 1;
        other.totals.sent = 8;
        sum.add(&other);
        assert_eq!((sum.count("ready"), sum.count("held")), (7, 1));
        assert_eq!(sum.pending(), 8);
        assert!(!sum.paused, "one of them is not paused");
        assert_eq!((sum.totals.sent, sum.next_due_at), (8, Some(70)));
        assert_eq!(sum.oldest_ready_age, Some(5));
        assert_eq!(sum.lateness, [Some(3), Some(4), Some(9)]);
    }
}
