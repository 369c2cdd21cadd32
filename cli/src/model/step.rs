//! The steps of which a past consists, and their form in a file.

use serde_json::{json, Value};

use super::series::{Past, Series, GRAINS};
use crate::bounds;
use crate::text::hex;

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

impl Step {
    /// Adds what happened later in the same step.
    pub fn add(&mut self, more: &Step) {
        self.sent = self.sent.saturating_add(more.sent);
        self.acked = self.acked.saturating_add(more.acked);
        self.deaths = self.deaths.saturating_add(more.deaths);
        self.waiting = more.waiting;
        self.late = self.late.max(more.late);
    }
}

/// The run times of the messages of a type that ended within a step, as far as they were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStep {
    /// Number of messages.
    pub count: u32,
    /// The sum of their run times, in ms.
    pub sum: u32,
    /// The longest run time, in ms.
    pub longest: u32,
}

impl RunStep {
    /// Returns the run time of a message on the average, in ms.
    pub fn mean(&self) -> u32 {
        self.sum / self.count.max(1)
    }
}

/// A step as the numbers of which a file has it.
pub trait Numbers: Copy + Default + PartialEq {
    /// Returns its numbers, in the order of the file.
    fn numbers(&self) -> Vec<u32>;
    /// Creates it from the numbers of a file, if none is missing.
    fn of(number: &dyn Fn(usize) -> Option<u32>) -> Option<Self>;
}

impl Numbers for Step {
    fn numbers(&self) -> Vec<u32> {
        vec![self.sent, self.acked, self.deaths, self.waiting, self.late]
    }

    fn of(number: &dyn Fn(usize) -> Option<u32>) -> Option<Step> {
        Some(Step {
            sent: number(0)?,
            acked: number(1)?,
            deaths: number(2)?,
            waiting: number(3)?,
            late: number(4)?,
        })
    }
}

impl Numbers for RunStep {
    fn numbers(&self) -> Vec<u32> {
        vec![self.count, self.sum, self.longest]
    }

    fn of(number: &dyn Fn(usize) -> Option<u32>) -> Option<RunStep> {
        Some(RunStep {
            count: number(0)?,
            sum: number(1)?,
            longest: number(2)?,
        })
    }
}

/// Returns a line of a file. A step in which nothing happened is a zero.
pub fn line<T: Numbers>(queue: Option<&[u8]>, kind: Option<&[u8]>, past: &Past<T>) -> String {
    let grains = past.0.iter().map(|series| {
        let steps = series.steps().map(|step| match *step == T::default() {
            true => json!(0),
            false => json!(step.numbers()),
        });
        json!({ "newest": series.newest(), "steps": steps.collect::<Vec<_>>() })
    });
    let grains: Vec<Value> = grains.collect();
    let line = json!({ "queue": queue.map(hex), "type": kind.map(hex), "grains": grains });
    format!("{line}\n")
}

/// Reads a past from a line of a file.
pub fn past<T: Numbers>(line: &Value) -> Option<Past<T>> {
    let grains = line.get("grains")?.as_array()?;
    let mut past = Past::default();
    for ((series, grain), kept) in past.0.iter_mut().zip(grains).zip(GRAINS) {
        let newest = u64::try_from(bounds::NEWEST.json(grain.get("newest")?)?).ok()?;
        let steps = grain.get("steps")?.as_array()?;
        let last = steps.get(steps.len().saturating_sub(kept.kept)..)?;
        let step = |step: &Value| match step {
            Value::Array(numbers) => T::of(&|i| u32::try_from(numbers.get(i)?.as_u64()?).ok()),
            zero => (zero.as_u64() == Some(0)).then(T::default),
        };
        let last: Option<Vec<T>> = last.iter().map(step).collect();
        *series = Series::of(newest, last?.into_iter());
    }
    Some(past)
}
