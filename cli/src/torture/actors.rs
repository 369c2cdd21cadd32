//! The actors of a round: producers that send again until they are answered, and consumers that are slow, fail and forget.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use redis::Value;

use super::history::{Answer, Delivery, Journal, Kind, Ms, Send, Verdict};
use super::link::{Link, Outcome, Place};
use crate::model::record::{bytes, Record};
use crate::server::verb;

/// The queue of every round.
pub const QUEUE: &[u8] = b"torture";
/// The RETRIES of the queue.
pub const RETRIES: u64 = 3;
/// The lease of each delivery.
const LEASE: Ms = 1000.0;
/// No message comes for this time in a queue that is drained: the last lease and the last backoff are over.
const QUIET: Duration = Duration::from_millis(3000);
/// A consumer gives up a call that is not answered for this time.
const INSISTS: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(5);
/// How many groups each producer has for itself, so that the order of a group is that of its numbers.
const GROUPS: u64 = 4;

/// Returns the payload that a message must have.
fn payload(id: &str) -> String {
    format!("{id} ").repeat(1 + id.len() % 5)
}

/// Sends messages until the queue is healed.
pub fn produce(place: &Place, journal: &Journal, name: &str, mut rng: Rng) {
    let mut link = Link::to(place);
    let mut number = 0;
    while !place.healed.load(Ordering::Relaxed) && !place.over.load(Ordering::Relaxed) {
        number += 1;
        let group = rng.bool().then(|| format!("{name}-g{}", rng.u64(..GROUPS)));
        let delay = match group {
            None if rng.bool() => rng.u32(1..250),
            _ => 0,
        };
        let send = Send {
            id: format!("{name}-{number}"),
            group,
            number,
            delay: delay.into(),
            begin: journal.now(),
            end: Ms::INFINITY,
            answer: Answer::None,
            tries: 0,
            sure: false,
        };
        send_until_answered(&mut link, place, journal, send);
        thread::sleep(Duration::from_micros(rng.u64(..8000)));
    }
}

fn send_until_answered(link: &mut Link, place: &Place, journal: &Journal, send: Send) {
    let mut cmd = verb("DQ.SEND", QUEUE);
    cmd.arg(payload(&send.id)).arg("ID").arg(&send.id);
    if send.delay > 0.0 {
        cmd.arg("DELAY").arg(send.delay as u64);
    }
    if let Some(group) = &send.group {
        cmd.arg("GROUP").arg(group);
    }
    let at = {
        let mut history = journal.open();
        history.sends.push(send);
        history.sends.len() - 1
    };
    let begin = Instant::now();
    let mut unknown = false;
    while begin.elapsed() < INSISTS && !place.over.load(Ordering::Relaxed) {
        let outcome = link.call(&cmd, true);
        let now = journal.now();
        let mut history = journal.open();
        let Some(event) = history.sends.get_mut(at) else {
            return;
        };
        event.tries += 1;
        match outcome {
            Outcome::Done(_, sure) => {
                (event.answer, event.end, event.sure) = (Answer::Done, now, sure);
                return;
            }
            // An earlier try may have been done, so this answer says nothing about the message.
            Outcome::Refused if !unknown => {
                (event.answer, event.end) = (Answer::Refused, now);
                return;
            }
            Outcome::Refused => {}
            Outcome::Unknown => unknown = true,
        }
        drop(history);
        thread::sleep(PAUSE);
    }
}

/// Works until the queue is healed and nothing comes any more.
pub fn consume(place: &Place, journal: &Journal, name: &str, mut rng: Rng) {
    let mut consumer = Consumer {
        link: Link::to(place),
        place,
        journal,
        name,
        token: 0,
    };
    let mut quiet = Instant::now();
    while !place.over.load(Ordering::Relaxed) {
        let chaos = !place.healed.load(Ordering::Relaxed);
        let found = consumer.fetch(&mut rng);
        if chaos || found.as_ref().is_none_or(|found| !found.is_empty()) {
            quiet = Instant::now();
        } else if quiet.elapsed() > QUIET {
            return;
        }
        for delivery in found.unwrap_or_default() {
            consumer.handle(&delivery, chaos, &mut rng);
        }
    }
}

struct Consumer<'a> {
    link: Link<'a>,
    place: &'a Place,
    journal: &'a Journal,
    name: &'a str,
    token: u64,
}

impl Consumer<'_> {
    /// Fetches messages, with the same token until an answer comes: then a lost reply costs nothing. Returns nothing if
    /// the server did not answer.
    fn fetch(&mut self, rng: &mut Rng) -> Option<Vec<Delivery>> {
        self.token += 1;
        let mut cmd = verb("DQ.FETCH", QUEUE);
        cmd.arg("COUNT").arg(rng.u32(1..5));
        cmd.arg("LEASE").arg(LEASE as u64);
        cmd.arg("BLOCK").arg(rng.u32(20..400));
        cmd.arg("CONSUMER").arg(self.name).arg("WITHMETA");
        cmd.arg("TOKEN")
            .arg(format!("{}-{}", self.name, self.token));
        let (begin, started) = (self.journal.now(), Instant::now());
        let mut tries = 0;
        let mut found = None;
        while started.elapsed() < INSISTS && !self.place.over.load(Ordering::Relaxed) {
            tries += 1;
            match self.link.call(&cmd, true) {
                Outcome::Done(Value::Array(items), sure) => {
                    let end = self.journal.now();
                    let read = |item| delivery(item, begin, end, sure);
                    found = Some(items.into_iter().filter_map(read).collect::<Vec<_>>());
                    break;
                }
                Outcome::Done(..) => {
                    found = Some(Vec::new());
                    break;
                }
                Outcome::Refused if tries == 1 => {
                    thread::sleep(PAUSE);
                    return None;
                }
                Outcome::Refused | Outcome::Unknown => thread::sleep(PAUSE),
            }
        }
        let mut history = self.journal.open();
        let end = self.journal.now();
        if tries > 1 && end - begin > LEASE / 2.0 {
            history.slow.push((begin, end));
        }
        history.deliveries.extend(found.iter().flatten().cloned());
        found
    }

    fn handle(&mut self, delivery: &Delivery, chaos: bool, rng: &mut Rng) {
        let fate = rng.u32(..100);
        // Some messages fail until they are dead.
        let poisoned = delivery.id.ends_with("13");
        match fate {
            _ if !chaos => self.settle(Kind::Ack, delivery),
            // The lease runs out, for nobody settles the delivery or somebody does too late.
            0 => {}
            1 => {
                thread::sleep(Duration::from_millis(LEASE as u64 * 13 / 10));
                self.settle(Kind::Ack, delivery);
            }
            2..10 => self.settle(Kind::Nack, delivery),
            _ if poisoned => self.settle(Kind::Nack, delivery),
            _ => {
                thread::sleep(Duration::from_micros(rng.u64(..5000)));
                self.settle(Kind::Ack, delivery);
            }
        }
    }

    fn settle(&mut self, kind: Kind, delivery: &Delivery) {
        let name = match kind {
            Kind::Ack => "DQ.ACK",
            Kind::Nack => "DQ.NACK",
        };
        let mut cmd = verb(name, QUEUE);
        cmd.arg(delivery.receipt);
        let at = {
            let mut history = self.journal.open();
            history.verdicts.push(Verdict {
                kind,
                id: delivery.id.clone(),
                receipt: delivery.receipt,
                begin: self.journal.now(),
                end: Ms::INFINITY,
                count: None,
                sure: false,
            });
            history.verdicts.len() - 1
        };
        let outcome = self.link.call(&cmd, true);
        let now = self.journal.now();
        let mut history = self.journal.open();
        let Some(verdict) = history.verdicts.get_mut(at) else {
            return;
        };
        match outcome {
            Outcome::Done(Value::Int(count), sure) => {
                (verdict.count, verdict.end, verdict.sure) = (u64::try_from(count).ok(), now, sure);
            }
            Outcome::Refused => (verdict.count, verdict.end) = (Some(0), now),
            Outcome::Done(..) | Outcome::Unknown => {}
        }
    }
}

/// Reads a message of a reply: id, receipt, attempt, payload, and what WITHMETA adds.
fn delivery(item: Value, begin: Ms, end: Ms, sure: bool) -> Option<Delivery> {
    let Value::Array(parts) = item else {
        return None;
    };
    let [id, Value::Int(receipt), Value::Int(attempt), body, meta] =
        <[Value; 5]>::try_from(parts).ok()?
    else {
        return None;
    };
    let meta = Record::of(meta).ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let id = text(bytes(&id)?);
    let unix = |field| meta.number(field).and_then(|ms| i64::try_from(ms).ok());
    Some(Delivery {
        intact: bytes(&body) == Some(payload(&id).as_bytes()),
        id,
        group: meta
            .bytes("group")
            .filter(|group| !group.is_empty())
            .map(text),
        receipt,
        attempt,
        begin,
        end,
        lease: LEASE,
        at: unix("lease-until")? - LEASE as i64,
        due: unix("due-at")?,
        sure,
    })
}
