//! CANCEL: messages that are no longer wanted.

use crate::message::state::{State, StoredState};
use crate::op::{Done, Happened};
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{Millis, Seq};
use std::borrow::Cow;

impl Queue {
    /// Cancels messages. Returns the state in which each was before, or `None`
    /// where there is no such message.
    pub(in crate::queue) fn cancel(&mut self, ids: &[Cow<[u8]>], now: Millis) -> Done {
        let states = ids.iter().map(|id| {
            let seq = self.find(id)?;
            self.cancel_one(seq, now)
        });
        let states = states.collect();
        Done::States(states)
    }

    /// Cancels a message. Returns its state before, or `None` if there is no such
    /// message.
    pub(super) fn cancel_one(&mut self, seq: Seq, now: Millis) -> Option<State> {
        self.bring_up_to_date(seq, now)?;
        let message = self.state.store.get(seq)?;
        let state = self.state_of(message, now);
        let (group, size) = (message.group, message.payload_len());
        match state {
            State::Finished | State::Cancelled => return Some(state),
            State::Running => {
                self.unlease(seq);
                self.indexes.bytes -= size;
            }
            State::Dead => {
                self.leave_record(seq);
                if !seeded(Bug::CancelKeepsHold) {
                    self.unhold(seq, group);
                }
            }
            State::Delayed | State::Ready | State::Blocked | State::Retry | State::Held => {
                self.leave_pending(seq);
                if !seeded(Bug::CancelKeepsBytes) {
                    self.indexes.bytes -= size;
                }
            }
        }
        self.state.totals.cancellations += 1;
        self.changed();
        self.notes.effects.happened.add(Happened::CANCELLED);
        self.end(seq, StoredState::Cancelled, now);
        if !seeded(Bug::CancelKeepsPlace) {
            self.refresh(group, now, self.join(now));
        }
        Some(state)
    }
}
