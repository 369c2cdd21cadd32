//! RESCHEDULE: another due time for a pending message.

use crate::message::history::History;
use crate::message::state::{State, StoredState};
use crate::op::{Done, DueTime};
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::transition::Kind;
use crate::Millis;

/// The states that are in the order of due times.
const WAITING: [State; 4] = [State::Delayed, State::Ready, State::Blocked, State::Retry];

impl Queue {
    /// Sets the due time of a pending message. Returns whether there was such a
    /// message.
    pub(in crate::queue) fn reschedule(&mut self, id: &[u8], due: DueTime, now: Millis) -> Done {
        let Some((seq, group)) = self.find_pending(id, now) else {
            return Done::Flag(false);
        };
        let is_point = due == DueTime::At(due.from(now));
        let due = due.from(now);
        if self.is_at(seq, StoredState::Held) {
            self.reschedule_held(seq, due, is_point);
            self.note_until(seq, Kind::Rescheduled, now, due);
            self.changed();
            return Done::Flag(true);
        }
        let place = (
            self.state.store.get(seq).map_or(0, |message| message.due),
            seq,
        );
        self.notes.pages.note(&WAITING, place, now);
        self.leave_pending(seq);
        if let Some(message) = self.state.store.get_mut(seq) {
            message.due = due;
            message.set_due_at_point(is_point);
            if let History::Full(ext) = &mut message.history {
                ext.due_at = due;
                ext.score_base = due;
                ext.ttl_base = due;
            }
        }
        self.note_until(seq, Kind::Rescheduled, now, due);
        self.enter_pending(seq, now);
        if !seeded(Bug::RescheduleKeepsPlace) {
            self.refresh(group, now, self.join(now));
        }
        self.changed();
        Done::Flag(true)
    }
}
