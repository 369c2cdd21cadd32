//! The figures of a queue, from DQ.INFO.

use redis::Value;

use super::record::Record;
use crate::failure::Failure;
use crate::moment::Millis;

/// The eight states, in the order of DQ.INFO.
pub const STATES: [&str; 8] = [
    "delayed",
    "ready",
    "blocked",
    "retry",
    "running",
    "finished",
    "dead",
    "cancelled",
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

/// A queue at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its key.
    pub name: Vec<u8>,
    /// Messages by state, in the order of `STATES`.
    pub counts: [u64; 8],
    /// Payload bytes of pending and running messages.
    pub bytes: u64,
    /// Groups with messages, settings or a hold.
    pub groups: u64,
    /// Consumers known by name.
    pub consumers: u64,
    /// Clients that wait in FETCH.
    pub blocked_clients: u64,
    /// Whether the whole queue is paused.
    pub paused: bool,
    /// The queue's clock.
    pub now: Millis,
    /// Counters since the queue was created.
    pub totals: Totals,
    /// When the next delayed or retried message is due.
    pub next_due_at: Option<Millis>,
    /// How long the oldest ready message has waited.
    pub oldest_ready_age: Option<Millis>,
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
            paused: info.flag("paused"),
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
            lateness: ["lateness-p50", "lateness-p99", "lateness-max"].map(|f| info.number(f)),
        })
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
        assert!(queue.paused);
        assert_eq!(queue.totals.acked, 9);
        assert_eq!(
            (queue.next_due_at, queue.oldest_ready_age),
            (Some(1500), None)
        );
        assert_eq!(queue.lateness, [None, Some(4), None]);
        assert!(Queue::of(b"q", Value::Nil).is_err());
    }
}
