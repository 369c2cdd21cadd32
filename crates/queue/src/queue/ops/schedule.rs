//! SCHEDULE, and PAUSE and RESUME of a schedule: messages that the queue sends to itself.

use crate::error::Error;
use crate::op::{Done, NewSchedule};
use crate::queue::Queue;
use crate::schedule::{Extras, Schedule, Template};
use crate::sums::Count;
use crate::Millis;

impl Queue {
    /// Creates a schedule, or replaces the one with this name.
    ///
    /// Errors: the rule never fires, or not before it ends; a limit never allows its cost.
    pub(in crate::queue) fn schedule(
        &mut self,
        new: &NewSchedule,
        now: Millis,
    ) -> Result<Done, Error> {
        let limits = new.limits.as_deref().copied().unwrap_or_default();
        let next = new.rule.first_at_or_after(now);
        let next = next.filter(|next| !limits.is_over_at(*next));
        let next = next.ok_or(Error::NeverFires)?;
        self.check_cost(&new.send.choices)?;
        let extras = Extras {
            limits,
            ..Extras::default()
        };
        let send = &new.send;
        let schedule = Schedule {
            rule: new.rule.clone(),
            template: Template {
                payload: send.payloads.first().copied().unwrap_or_default().into(),
                group: send.group.as_deref().map(Into::into),
                priority: send.priority,
                choices: send.choices.clone(),
                if_group: send.if_group,
            },
            missed: new.missed,
            overlap: new.overlap,
            next_at: Some(next),
            last_at: None,
            fired: Count::default(),
            last_seq: None,
            number: 0,
            extras: extras.boxed(),
        };
        self.state.seldom.schedules.insert(&new.name, schedule);
        self.wake_by(next);
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        Ok(Done::NextFire(next))
    }

    /// Pauses a schedule, or resumes it. Returns whether there is one.
    ///
    /// The times that it misses in a pause are skipped, whatever its MISSED says.
    pub(in crate::queue) fn pause_schedule(
        &mut self,
        name: &[u8],
        paused: bool,
        now: Millis,
    ) -> Done {
        let Some(schedule) = self.state.seldom.schedules.get(name) else {
            return Done::Flag(false);
        };
        let (held, next) = match (schedule.extras().paused, schedule.next_at) {
            (None, Some(next)) if paused => (Some(next), None),
            (Some(held), _) if !paused => {
                let limits = schedule.limits();
                let next = match held >= now {
                    true => Some(held),
                    false => schedule.rule.first_at_or_after(now),
                };
                (None, next.filter(|next| !limits.is_over_at(*next)))
            }
            _ => return Done::Flag(true),
        };
        self.state.seldom.schedules.change(name, |schedule| {
            schedule.next_at = next;
            schedule.change_extras(|extras| extras.paused = held);
        });
        self.end_schedule(name);
        if let Some(next) = next {
            self.wake_by(next);
        }
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        Done::Flag(true)
    }

    /// Removes a schedule if it has ended.
    pub(in crate::queue) fn end_schedule(&mut self, name: &[u8]) {
        if self
            .state
            .seldom
            .schedules
            .get(name)
            .is_some_and(Schedule::has_ended)
        {
            self.state.seldom.schedules.remove(name);
        }
    }

    /// All schedules by name.
    pub fn schedules(&self) -> impl ExactSizeIterator<Item = (&[u8], &Schedule)> + '_ {
        self.state.seldom.schedules.iter()
    }
}
