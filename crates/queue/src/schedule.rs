//! Schedules: messages that the queue sends to itself.

use std::collections::BTreeMap;

use super::footprint::allocated;
use super::message::Choices;
use super::ordered::OrderedSet;
use super::recurrence::Recurrence;
use super::{Millis, Seq};

/// What becomes of fire times that passed while nothing could fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Nothing.
    Skip,
    /// The last of them fires.
    Once,
    /// Each of them fires.
    All,
}

/// Whether it fires while the message of the last time has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// It does.
    Queue,
    /// It does not.
    Skip,
}

/// What a schedule sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The payload.
    pub payload: Box<[u8]>,
    /// The group, if any.
    pub group: Option<Box<[u8]>>,
    /// Lower goes first.
    pub priority: i8,
    /// What else SEND would say.
    pub choices: Choices,
}

/// One schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// When it fires.
    pub rule: Recurrence,
    /// What it sends.
    pub template: Template,
    /// What becomes of missed times.
    pub missed: Missed,
    /// Whether it waits for its last message.
    pub overlap: Overlap,
    /// When it fires next; `None` if never again.
    pub next_at: Option<Millis>,
    /// When it fired last.
    pub last_at: Option<Millis>,
    /// How often it has fired.
    pub fired: u64,
    /// The message of the last time.
    pub last_seq: Option<Seq>,
    /// Order of creation: who fires first within one millisecond.
    pub number: u64,
}

/// The schedules of a queue.
#[derive(Debug, Clone, Default)]
pub struct Schedules {
    by_name: BTreeMap<Box<[u8]>, Schedule>,
    names: BTreeMap<u64, Box<[u8]>>,
    by_time: OrderedSet<(Millis, u64)>,
    next_number: u64,
}

impl Schedules {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The schedule of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Schedule> {
        self.by_name.get(name)
    }

    /// All, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Schedule)> + '_ {
        self.by_name.iter().map(|(name, s)| (&**name, s))
    }

    /// Puts one in, in the place of one of the same name. Gives it its number.
    pub fn insert(&mut self, name: &[u8], mut schedule: Schedule) {
        self.remove(name);
        schedule.number = self.next_number;
        self.restore(name, schedule);
    }

    /// Puts one of a snapshot in, with the number it has.
    pub fn restore(&mut self, name: &[u8], schedule: Schedule) {
        self.next_number = self.next_number.max(schedule.number.saturating_add(1));
        if let Some(at) = schedule.next_at {
            self.by_time.insert((at, schedule.number), ());
        }
        self.names.insert(schedule.number, name.into());
        self.by_name.insert(name.into(), schedule);
    }

    /// Takes one out; whether there was one.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(schedule) = self.by_name.remove(name) else {
            return false;
        };
        self.names.remove(&schedule.number);
        if let Some(at) = schedule.next_at {
            self.by_time.remove(&(at, schedule.number));
        }
        true
    }

    /// The one that fires next: when, and its name.
    pub fn next_fire(&self) -> Option<(Millis, &[u8])> {
        let ((at, number), ()) = self.by_time.first()?;
        Some((at, self.names.get(&number)?))
    }

    /// Changes one and keeps the order of time in step.
    pub fn change(&mut self, name: &[u8], change: impl FnOnce(&mut Schedule)) {
        let Some(schedule) = self.by_name.get_mut(name) else {
            return;
        };
        let before = schedule.next_at;
        change(schedule);
        let (after, number) = (schedule.next_at, schedule.number);
        if before != after {
            if let Some(at) = before {
                self.by_time.remove(&(at, number));
            }
            if let Some(at) = after {
                self.by_time.insert((at, number), ());
            }
        }
    }

    /// Bytes allocated, roughly.
    pub fn memory_bytes(&self) -> usize {
        // Maps that grow in order of their keys are little more than half full.
        let entries = size_of::<(Box<[u8]>, Schedule)>() + size_of::<(u64, Box<[u8]>)>();
        let texts = self.by_name.iter().map(|(name, schedule)| {
            2 * allocated(name.len()) + allocated(schedule.template.payload.len())
        });
        self.by_time.memory_bytes() + self.len() * entries * 7 / 4 + texts.sum::<usize>()
    }
}
