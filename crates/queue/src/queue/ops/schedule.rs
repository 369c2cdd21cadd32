//! SCHEDULE: messages that the queue sends to itself.

use crate::error::Error;
use crate::op::{Done, NewSchedule};
use crate::queue::Queue;
use crate::schedule::{Schedule, Template};
use crate::Millis;

impl Queue {
    /// Creates a schedule, or replaces the one with this name.
    ///
    /// Errors: the rule never fires.
    pub(in crate::queue) fn schedule(
        &mut self,
        new: &NewSchedule,
        now: Millis,
    ) -> Result<Done, Error> {
        let next = new.rule.first_at_or_after(now).ok_or(Error::NeverFires)?;
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
            fired: 0,
            last_seq: None,
            number: 0,
        };
        self.schedules.insert(&new.name, schedule);
        self.wake_by(next);
        self.effects.changed = true;
        self.effects.visible = true;
        Ok(Done::NextFire(next))
    }

    /// All schedules by name.
    pub fn schedules(&self) -> impl ExactSizeIterator<Item = (&[u8], &Schedule)> + '_ {
        self.schedules.iter()
    }
}
