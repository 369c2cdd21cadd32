//! The schedules of a queue: rules by which it sends messages to itself.

mod limits;
pub mod recurrence;

use std::collections::BTreeMap;

use crate::collections::footprint::{allocated, tree};
use crate::collections::ordered::OrderedSet;
use crate::message::Choices;
use crate::sums::Count;
use crate::{Millis, Seq};
pub use limits::{Extras, Limits};
use recurrence::Recurrence;

/// The treatment of fire times that passed while the server could not fire, such as
/// before a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// None of them fires.
    Skip,
    /// Only the last of them fires.
    Once,
    /// Each of them fires.
    All,
}

/// Whether a schedule fires while its last message has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// The schedule fires, and the messages queue up.
    Queue,
    /// The schedule skips the fire time.
    Skip,
}

/// The message that a schedule sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The payload.
    pub payload: Box<[u8]>,
    /// The group, if any.
    pub group: Option<Box<[u8]>>,
    /// The priority; lower goes first.
    pub priority: i8,
    /// All other options of the message.
    pub choices: Choices,
    /// Whether it is sent only if its group has a pending or running message.
    pub if_group: bool,
}

/// One schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// When it fires.
    pub rule: Recurrence,
    /// The message that it sends.
    pub template: Template,
    /// The treatment of fire times that were missed.
    pub missed: Missed,
    /// Whether it fires while its last message has not ended.
    pub overlap: Overlap,
    /// When it fires next, in Unix ms; `None` if it is paused or never fires again.
    pub next_at: Option<Millis>,
    /// When it fired last, in Unix ms.
    pub last_at: Option<Millis>,
    /// How often it has fired.
    pub fired: Count,
    /// The number of the message that it sent last.
    pub last_seq: Option<Seq>,
    /// The order of creation. Among schedules due in the same millisecond, the one with
    /// the lowest number fires first.
    pub number: u64,
    /// The limits, the pause and the count of skipped firings, which few schedules have.
    pub extras: Option<Box<Extras>>,
}

impl Schedule {
    /// When it ends, and how far its messages are spread.
    pub fn limits(&self) -> Limits {
        self.extras().limits
    }

    /// The limits, the pause and the count of skipped firings, which few schedules have.
    pub fn extras(&self) -> Extras {
        self.extras.as_deref().copied().unwrap_or_default()
    }

    /// Changes the options that few schedules have.
    pub fn change_extras(&mut self, change: impl FnOnce(&mut Extras)) {
        let mut extras = self.extras();
        change(&mut extras);
        self.extras = extras.boxed();
    }

    /// Changes the next fire time from before the pause.
    pub fn change_held(&mut self, change: impl FnOnce(Millis) -> Millis) {
        if let Some(paused) = self.extras.as_mut().and_then(|e| e.paused.as_mut()) {
            *paused = change(*paused);
        }
    }

    /// The first fire time of the schedule after a time.
    pub fn next_after(&self, at: Millis) -> Option<Millis> {
        let next = self.rule.next_after(at);
        next.filter(|next| !self.limits().is_over_at(*next))
    }

    /// Whether it has ended: by TIMES, or by UNTIL with no fire time left.
    pub fn has_ended(&self) -> bool {
        let Extras { limits, paused, .. } = self.extras();
        let has_next = self.next_at.is_some() || paused.is_some();
        limits.times == Some(0) || limits.until.is_some() && !has_next
    }
}

/// The schedules of a queue.
#[derive(Debug, Clone, Default)]
pub struct Schedules {
    // Boxed, because the nodes of a map have room for more than they hold.
    by_name: BTreeMap<Box<[u8]>, Box<Schedule>>,
    names: BTreeMap<u64, Box<[u8]>>,
    by_time: OrderedSet<(Millis, u64)>,
    next_number: u64,
}

impl Schedules {
    /// No schedules.
    pub const fn new() -> Schedules {
        Schedules {
            by_name: BTreeMap::new(),
            names: BTreeMap::new(),
            by_time: OrderedSet::new(),
            next_number: 0,
        }
    }

    /// The number of schedules.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The schedule with this name. O(log n).
    pub fn get(&self, name: &[u8]) -> Option<&Schedule> {
        self.by_name.get(name).map(|schedule| &**schedule)
    }

    /// All schedules, in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Schedule)> + '_ {
        self.by_name.iter().map(|(name, s)| (&**name, &**s))
    }

    /// Adds a schedule and gives it the next number. One with the same name is
    /// replaced. O(log n).
    pub fn insert(&mut self, name: &[u8], mut schedule: Schedule) {
        self.remove(name);
        schedule.number = self.next_number;
        self.restore(name, schedule);
    }

    /// Adds a schedule that was loaded and keeps its number. O(log n).
    pub fn restore(&mut self, name: &[u8], schedule: Schedule) {
        self.next_number = self.next_number.max(schedule.number.saturating_add(1));
        if let Some(at) = schedule.next_at {
            self.by_time.insert((at, schedule.number), ());
        }
        self.names.insert(schedule.number, name.into());
        self.by_name.insert(name.into(), Box::new(schedule));
    }

    /// Removes a schedule. Returns whether there was one. O(log n).
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

    /// The time at which the next schedule fires, in Unix ms, and the name of
    /// that schedule.
    pub fn next_fire(&self) -> Option<(Millis, &[u8])> {
        let ((at, number), ()) = self.by_time.first()?;
        Some((at, self.names.get(&number)?))
    }

    /// The time and the number of the schedule that fires next.
    pub fn first_by_time(&self) -> Option<(Millis, u64)> {
        self.by_time.first().map(|(key, ())| key)
    }

    /// Changes the schedule with this name and updates the order of fire times. Does
    /// nothing if there is none. O(log n).
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

    /// The bytes allocated, roughly. O(n).
    pub fn memory_bytes(&self) -> usize {
        let each = self.by_name.iter().map(|(name, schedule)| {
            let template = &schedule.template;
            let group = template.group.as_ref();
            allocated(size_of::<Schedule>())
                + 2 * allocated(name.len())
                + allocated(template.payload.len())
                + group.map_or(0, |name| allocated(name.len()))
                + template.choices.heap_bytes()
                + schedule.rule.heap_bytes()
                + schedule
                    .extras
                    .as_ref()
                    .map_or(0, |_| allocated(size_of::<Extras>()))
        });
        tree(size_of::<(Box<[u8]>, Box<Schedule>)>(), self.len())
            + tree(size_of::<(u64, Box<[u8]>)>(), self.names.len())
            + self.by_time.memory_bytes()
            + each.sum::<usize>()
    }
}
