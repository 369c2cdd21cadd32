//! The events of the last day, in steps of five minutes: of all queues together, and of a
//! bounded number of them.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{json, Value};

use super::queue::{Queue, Totals};
use crate::bounds;
use crate::text::{hex, unhex};
use crate::time_text::Millis;

/// The time of a step.
pub const STEP: Millis = 5 * 60 * 1000;

/// Number of steps that are kept: a day.
pub const KEPT: usize = 288;

/// Maximum number of queues with a day of their own. Each takes some six kilobytes.
const QUEUES: usize = 500;

/// The events of one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Messages sent.
    pub sent: u32,
    /// Messages acked.
    pub acked: u32,
    /// Messages that died.
    pub deaths: u32,
    /// Messages that were pending, at the end of the step.
    pub waiting: u32,
    /// How long the oldest message was overdue, at most, in ms.
    pub late: u32,
}

/// A day, the newest step last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    /// The number of the newest step since the Unix epoch.
    newest: u64,
    steps: VecDeque<Step>,
}

impl Day {
    /// Creates a day of these steps, of which the last one has this number.
    pub fn of(newest: u64, steps: impl Iterator<Item = Step>) -> Day {
        let steps = steps.collect();
        Day { newest, steps }
    }

    /// Returns the steps, the newest last.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> + ExactSizeIterator {
        self.steps.iter()
    }

    /// Returns the steps with their numbers since the Unix epoch, the newest last.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Step)> {
        let first = self.newest + 1 - (self.steps.len() as u64).min(self.newest + 1);
        (first..).zip(&self.steps)
    }

    /// Returns the step of this number for a change. Adds empty steps for those between.
    fn step(&mut self, number: u64) -> Option<&mut Step> {
        if self.steps.is_empty() || number > self.newest + KEPT as u64 {
            self.steps.clear();
            self.steps.push_back(Step::default());
            self.newest = number;
        }
        while self.newest < number {
            self.newest += 1;
            self.steps.push_back(Step::default());
            if self.steps.len() > KEPT {
                self.steps.pop_front();
            }
        }
        // A clock that was set back adds to the newest step.
        self.steps.back_mut()
    }

    fn add(&mut self, number: u64, more: &Step) {
        if let Some(step) = self.step(number) {
            step.sent = step.sent.saturating_add(more.sent);
            step.acked = step.acked.saturating_add(more.acked);
            step.deaths = step.deaths.saturating_add(more.deaths);
            step.waiting = more.waiting;
            step.late = step.late.max(more.late);
        }
    }
}

/// The days of all queues.
#[derive(Debug, Default)]
pub struct Days {
    /// All queues together.
    all: Day,
    queues: BTreeMap<Vec<u8>, Day>,
    /// The last counters of each queue.
    totals: BTreeMap<Vec<u8>, Totals>,
}

impl Days {
    /// Adds new figures of queues. `waiting` and `late` are those of all queues.
    pub fn take(&mut self, at: Millis, fresh: &[Queue], waiting: u64, late: Millis) {
        let number = at / STEP;
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let mut all = Step {
            waiting: small(waiting),
            late: small(late),
            ..Step::default()
        };
        for queue in fresh {
            let before = self.totals.get(&queue.name).copied();
            // It is unknown what happened before the program looked, or in an earlier queue of this
            // name.
            let before = before.filter(|before| before.sent <= queue.totals.sent);
            let since = |count: fn(&Totals) -> u64| match &before {
                Some(before) => small(count(&queue.totals).saturating_sub(count(before))),
                None => 0,
            };
            let step = Step {
                sent: since(|totals| totals.sent),
                acked: since(|totals| totals.acked),
                deaths: since(|totals| totals.deaths),
                waiting: small(queue.pending()),
                late: small(queue.overdue().unwrap_or(0)),
            };
            all.sent = all.sent.saturating_add(step.sent);
            all.acked = all.acked.saturating_add(step.acked);
            all.deaths = all.deaths.saturating_add(step.deaths);
            match self.totals.get_mut(&queue.name) {
                Some(totals) => *totals = queue.totals,
                None => {
                    self.totals.insert(queue.name.clone(), queue.totals);
                }
            }
            if let Some(day) = self.queues.get_mut(&queue.name) {
                day.add(number, &step);
            } else if self.queues.len() < QUEUES && step != Step::default() {
                let day = self.queues.entry(queue.name.clone()).or_default();
                day.add(number, &step);
            }
        }
        self.all.add(number, &all);
    }

    /// Drops queues that are gone.
    pub fn forget(&mut self, names: &[Vec<u8>]) {
        for name in names {
            self.totals.remove(name);
            self.queues.remove(name);
        }
    }

    /// Returns the day of all queues together.
    pub fn all(&self) -> &Day {
        &self.all
    }

    /// Returns the day of a queue, if it has one.
    pub fn of(&self, name: &[u8]) -> Option<&Day> {
        self.queues.get(name)
    }

    /// Returns the number of the newest step.
    pub fn newest(&self) -> u64 {
        self.all.newest
    }

    /// Returns lines of JSON from which `read` reads the days.
    pub fn write(&self) -> String {
        let mut text = line(None, &self.all);
        for (name, day) in &self.queues {
            text.push_str(&line(Some(name), day));
        }
        text
    }

    /// Parses the text that `write` has written. Lines that make no sense are passed over.
    pub fn read(text: &str) -> Days {
        let mut days = Days::default();
        for line in text.lines() {
            let Some((name, day)) = parse(line) else {
                continue;
            };
            match name {
                None => days.all = day,
                Some(name) if days.queues.len() < QUEUES => {
                    days.queues.insert(name, day);
                }
                Some(_) => {}
            }
        }
        days
    }
}

fn line(name: Option<&[u8]>, day: &Day) -> String {
    let steps: Vec<[u32; 5]> = day
        .steps
        .iter()
        .map(|step| [step.sent, step.acked, step.deaths, step.waiting, step.late])
        .collect();
    let line = json!({ "queue": name.map(hex), "newest": day.newest, "steps": steps });
    format!("{line}\n")
}

fn parse(line: &str) -> Option<(Option<Vec<u8>>, Day)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let name = match line.get("queue")? {
        Value::Null => None,
        name => Some(unhex(name.as_str()?)?),
    };
    let mut day = Day {
        newest: u64::try_from(bounds::NEWEST.json(line.get("newest")?)?).ok()?,
        steps: VecDeque::new(),
    };
    let steps = line.get("steps")?.as_array()?;
    for step in steps.iter().rev().take(KEPT).rev() {
        let number = |i: usize| u32::try_from(step.get(i)?.as_u64()?).ok();
        day.steps.push_back(Step {
            sent: number(0)?,
            acked: number(1)?,
            deaths: number(2)?,
            waiting: number(3)?,
            late: number(4)?,
        });
    }
    Some((name, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, sent: u64) -> Queue {
        let mut queue = Queue {
            name: name.as_bytes().to_vec(),
            oldest_ready_age: Some(7),
            ..Queue::default()
        };
        queue.totals.sent = sent;
        queue.counts[1] = 3;
        queue
    }

    #[test]
    fn a_day_has_what_happened_since_it_was_watched() {
        let mut days = Days::default();
        days.take(0, &[queue("a", 100), queue("b", 5)], 6, 7);
        days.take(STEP / 2, &[queue("a", 110)], 6, 9);
        days.take(STEP * 3, &[queue("a", 111), queue("b", 6)], 5, 0);
        let sent = |day: &Day| day.steps().map(|step| step.sent).collect::<Vec<_>>();
        assert_eq!(sent(days.of(b"a").unwrap()), [10, 0, 0, 1]);
        assert_eq!(sent(days.all()), [10, 0, 0, 2]);
        assert_eq!(days.all().steps().next().unwrap().late, 9);
        // A new queue of the same name begins anew.
        days.take(STEP * 3, &[queue("a", 2)], 5, 0);
        assert_eq!(sent(days.of(b"a").unwrap()), [10, 0, 0, 1]);
        days.forget(&[b"a".to_vec()]);
        assert!(days.of(b"a").is_none());
    }

    #[test]
    fn what_is_kept_is_bounded_and_survives_a_file() {
        let mut days = Days::default();
        for step in 0..1000 {
            days.take(step * STEP, &[queue("a\u{ff}", step * 2)], 1, 2);
        }
        assert_eq!(days.all().steps().len(), KEPT);
        for n in 0..2000 {
            days.take(1000 * STEP, &[queue(&format!("q{n}"), 1)], 1, 2);
        }
        assert_eq!(days.queues.len(), QUEUES);
        let read = Days::read(&days.write());
        assert_eq!((&read.all, &read.queues), (&days.all, &days.queues));
        let damaged = days.write().replace("newest", "nonsense") + "{\n\x00";
        assert_eq!(Days::read(&damaged).queues.len(), 0);
        // A long time without samples.
        days.take(5000 * STEP, &[queue("a\u{ff}", 5000)], 1, 2);
        assert_eq!(days.all().steps().len(), 1);
    }
}
