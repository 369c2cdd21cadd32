//! Consumers, of one queue or of all, and the running messages that each of them holds.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::Value;
use serde_json::{json, Value as Json};

use super::keys;
use super::queue::Queue;
use super::record::Record;
use crate::failure::Failure;
use crate::json;
use crate::server::{verb, Server};
use crate::time_text::Millis;

/// Number of queues that are asked between two looks at the clock.
const CHUNK: usize = 100;

/// Maximum time for which queues are asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// Maximum number of running messages of a queue that are looked at. Their payloads come with
/// them.
const MOST: usize = 50;

/// A consumer, by its name. Those that give no name are one of an empty name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Worker {
    /// Its name, printable.
    pub name: String,
    /// The queues that know it.
    pub queues: Vec<Vec<u8>>,
    /// Number of its leases.
    pub running: u64,
    /// Number of messages that were delivered to it.
    pub delivered: u64,
    /// Number of messages that it has acked.
    pub acked: u64,
    /// Number of messages that it has nacked.
    pub nacked: u64,
    /// How long ago it ran its last command, in ms.
    pub idle: Option<Millis>,
    /// The running messages that it holds, as far as they were looked at, the longest first.
    pub held: Vec<Held>,
    /// Acks and nacks in a second, if they are known.
    pub per_second: Option<[f64; 2]>,
}

/// A running message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Its queue.
    pub queue: Vec<u8>,
    /// Its id.
    pub id: Vec<u8>,
    /// How long it has been running, in ms.
    pub age: Option<Millis>,
}

impl Worker {
    /// Returns it as JSON, with times in ms.
    pub fn json(&self) -> Json {
        let held = |held: &Held| {
            json!({
                "queue": json::name(&held.queue), "id": json::name(&held.id), "age": held.age,
            })
        };
        let queues = self.queues.iter().map(|queue| json::name(queue));
        json!({
            "worker": self.name,
            "queues": queues.collect::<Vec<_>>(),
            "running": self.running,
            "delivered": self.delivered,
            "acked": self.acked,
            "nacked": self.nacked,
            "idle": self.idle,
            "per-second": self.per_second.map(|[acked, nacked]| json!({ "acked": acked, "nacked": nacked })),
            "holds": self.held.iter().map(held).collect::<Vec<_>>(),
        })
    }

    /// Returns the name for people.
    pub fn shown(&self) -> &str {
        match self.name.as_str() {
            "" => "(without a name)",
            name => name,
        }
    }
}

/// The consumers of some queues at one moment.
#[derive(Debug, Clone)]
pub struct Workers {
    /// The consumers: first those that hold a message for the longest time.
    pub found: Vec<Worker>,
    /// The number of queues that were asked, and that have consumers or running messages.
    pub asked: (usize, usize),
    /// Whether some running messages were not looked at.
    pub more: bool,
    at: Instant,
}

impl Workers {
    /// Asks queues for their consumers, those with most running messages first, for a limited
    /// time. A user who may not see them sees none.
    pub fn fetch<'a>(
        server: &mut Server,
        queues: impl Iterator<Item = &'a Queue>,
    ) -> Result<Workers, Failure> {
        let at = Instant::now();
        let has_any = |queue: &&Queue| queue.consumers > 0 || queue.count("running") > 0;
        let mut queues: Vec<_> = queues.filter(has_any).collect();
        queues.sort_by_key(|queue| Reverse(queue.count("running")));
        let names: Vec<Vec<u8>> = queues.iter().map(|queue| queue.name.clone()).collect();
        let mut by_name = BTreeMap::new();
        let (mut asked, mut more) = (0, false);
        for chunk in names.chunks(CHUNK) {
            more |= look(server, chunk, &mut by_name)?;
            asked += chunk.len();
            if at.elapsed() > PATIENCE {
                break;
            }
        }
        let mut found: Vec<Worker> = by_name.into_values().collect();
        for worker in &mut found {
            worker.held.sort_by_key(|held| Reverse(held.age));
        }
        found.sort_by_key(|worker| Reverse(worker.held.first().map(|held| held.age)));
        Ok(Workers {
            found,
            asked: (asked, names.len()),
            more,
            at,
        })
    }

    /// Asks one queue. Returns also whether some running messages were not looked at.
    pub fn of_queue(server: &mut Server, name: &[u8]) -> Result<(Vec<Worker>, bool), Failure> {
        let mut found = BTreeMap::new();
        let more = look(server, &[name.to_vec()], &mut found)?;
        Ok((found.into_values().collect(), more))
    }

    /// Returns how old it is.
    pub fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// Computes the rates since an earlier moment.
    pub fn since(&mut self, before: &Workers) {
        let seconds = (self.at - before.at).as_secs_f64();
        let known: BTreeMap<&str, &Worker> = before
            .found
            .iter()
            .map(|worker| (worker.name.as_str(), worker))
            .collect();
        for worker in &mut self.found {
            let before = known.get(worker.name.as_str());
            // A queue that is known now and was not asked before would count as a burst.
            let before = before.filter(|before| before.queues == worker.queues);
            let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
            worker.per_second = before.filter(|_| seconds > 0.0).map(|before| {
                let acked = rate(worker.acked, before.acked);
                [acked, rate(worker.nacked, before.nacked)]
            });
        }
    }
}

/// Asks some queues. Returns whether there are running messages that were not looked at.
fn look(
    server: &mut Server,
    names: &[Vec<u8>],
    found: &mut BTreeMap<String, Worker>,
) -> Result<bool, Failure> {
    let mut ask = |cmd: fn(&[u8]) -> redis::Cmd| keys::each(server, names, Duration::MAX, cmd);
    let infos = ask(|name| verb("DQ.INFO", name))?;
    let consumers = ask(|name| verb("DQ.CONSUMERS", name))?;
    let running = ask(|name| {
        let mut cmd = verb("DQ.LIST", name);
        cmd.arg("running").arg("COUNT").arg(MOST);
        cmd
    })?;
    let mut more = false;
    let replies = infos.into_iter().zip(consumers).zip(running);
    for (name, ((info, consumers), running)) in names.iter().zip(replies) {
        // The queue may be gone by now.
        let Ok(info) = info else { continue };
        let queue = Queue::of(name, info)?;
        let reply = consumers.unwrap_or(Value::Array(Vec::new()));
        for consumer in Record::all(reply)? {
            add_consumer(found, &queue, &consumer);
        }
        let (next, messages) = match running {
            Ok(reply) => Record::page(reply)?,
            Err(_) => continue,
        };
        more |= next.is_some();
        for message in messages {
            add_message(found, &queue, &message);
        }
    }
    Ok(more)
}

fn worker<'a>(
    found: &'a mut BTreeMap<String, Worker>,
    name: String,
    queue: &Queue,
) -> &'a mut Worker {
    let worker = found.entry(name).or_insert_with_key(|name| Worker {
        name: name.clone(),
        ..Worker::default()
    });
    if worker.queues.last() != Some(&queue.name) {
        worker.queues.push(queue.name.clone());
    }
    worker
}

fn add_consumer(found: &mut BTreeMap<String, Worker>, queue: &Queue, record: &Record) {
    let worker = worker(found, record.text("name"), queue);
    worker.running = worker.running.saturating_add(record.count("running"));
    worker.delivered = worker.delivered.saturating_add(record.count("delivered"));
    worker.acked = worker.acked.saturating_add(record.count("acked"));
    worker.nacked = worker.nacked.saturating_add(record.count("nacked"));
    let seen = record.number("last-seen");
    // The consumers were asked for a moment later than the queue's clock.
    let idle = seen.map(|at| queue.now.saturating_sub(at));
    worker.idle = worker.idle.into_iter().chain(idle).min();
}

fn add_message(found: &mut BTreeMap<String, Worker>, queue: &Queue, message: &Record) {
    let worker = worker(found, message.text("consumer"), queue);
    let began = message.number("started-at");
    worker.running += u64::from(worker.name.is_empty());
    worker.held.push(Held {
        queue: queue.name.clone(),
        id: message.bytes("id").unwrap_or_default().to_vec(),
        age: began.map(|at| queue.now.saturating_sub(at)),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn a_worker_of_several_queues_is_one() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let mut found = BTreeMap::new();
        for (queue, now, acked, seen) in [("a", 1000, 5, 900), ("b", 50_000, 7, 49_990)] {
            let queue = Queue {
                name: queue.as_bytes().to_vec(),
                now,
                ..Queue::default()
            };
            let consumer = [
                ("name", text("w\x1b")),
                ("running", Value::Int(1)),
                ("acked", Value::Int(acked)),
                ("last-seen", Value::Int(seen)),
            ];
            add_consumer(&mut found, &queue, &record(&consumer));
            for name in ["w\x1b", ""] {
                let began = Value::Int(i64::try_from(now / 2).unwrap());
                let fields = [
                    ("consumer", text(name)),
                    ("started-at", began),
                    ("id", text("m")),
                ];
                add_message(&mut found, &queue, &record(&fields));
            }
        }
        let worker = &found["w\\x1b"];
        assert_eq!(worker.queues, [b"a", b"b"]);
        assert_eq!(
            (worker.running, worker.acked, worker.idle),
            (2, 12, Some(10))
        );
        assert_eq!(worker.held[1].age, Some(25_000));
        assert_eq!(found[""].running, 2, "those without a name");
        let of = |acked: u64, queues: usize, seconds: u64| Workers {
            found: vec![Worker {
                acked,
                queues: vec![Vec::new(); queues],
                ..Worker::default()
            }],
            asked: (1, 1),
            more: false,
            at: Instant::now() + Duration::from_secs(seconds),
        };
        let rate = |mut now: Workers, before: &Workers| {
            now.since(before);
            now.found[0].per_second
        };
        assert_eq!(
            rate(of(30, 1, 10), &of(10, 1, 0)).map(|rates| rates[0].round()),
            Some(2.0)
        );
        assert_eq!(rate(of(30, 2, 10), &of(10, 1, 0)), None);
    }
}
