//! Messages that are parked: they are held until a signal comes, or a time is over.
//!
//! A parked message has no state beyond itself and its entries in the indexes: its `due`
//! is the end of its limited wait, and `ended_at` of its extension is the time of parking.
//! Its own due time stays in the extension.
//!
//! A signal to a message that is not parked stays with it until it ends, and only the
//! newest. It goes to the next delivery, and keeps a delivery that has not got it from
//! parking the message.

use crate::index::ready_line::Join;
use crate::message::after::Park;
use crate::message::left::Signal;
use crate::message::Message;
use crate::op::Done;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{Millis, Receipt, Seq, NEVER};

impl Queue {
    /// Parks a message, which is in no index yet.
    pub(in crate::queue) fn park(&mut self, seq: Seq, park: Park, now: Millis) {
        let until = park.until(now);
        self.state.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.ended_at = now;
            if let Some(choices) = ext.choices.as_mut() {
                choices.change_rare(|rare| {
                    if let Some(batching) = &mut rare.batching {
                        batching.park = None;
                    }
                });
            }
            message.due = until;
            message.stored = crate::message::state::StoredState::Held;
        });
        self.enter_park(seq);
    }

    /// Enters a parked message in the indexes.
    pub(in crate::queue) fn enter_park(&mut self, seq: Seq) {
        if let Some(until) = self.state.store.get(seq).and_then(Message::parked_until) {
            self.indexes.held.ends_at(seq, until);
            self.wake_by(until);
        }
        self.enter_held(seq);
        self.indexes.held.parked += 1;
    }

    /// Removes a parked message from the indexes. Its due time is its own again.
    pub(super) fn leave_park(&mut self, seq: Seq) {
        if let Some(until) = self.state.store.get(seq).and_then(Message::parked_until) {
            self.indexes.held.forget_end(seq, until);
        }
        self.exit_held(seq);
        self.indexes.held.parked -= 1;
        self.state.store.with(seq, |message| {
            let ext = message.extension_mut();
            ext.ended_at = NEVER;
            message.due = ext.due_at;
        });
    }

    /// Whether a message is parked.
    pub(super) fn is_parked(&self, seq: Seq) -> bool {
        self.state.store.get(seq).is_some_and(Message::is_parked)
    }

    /// Sends a signal to the message with this id. Returns whether there is one that has
    /// not ended. O(log n).
    pub(in crate::queue) fn signal(&mut self, id: &[u8], text: &[u8], now: Millis) -> bool {
        let found = self.find_current(id, now);
        let message = found.and_then(|seq| Some((seq, self.state.store.get(seq)?)));
        let Some((seq, message)) = message.filter(|(_, m)| !m.stored.is_ended()) else {
            return false;
        };
        let (during, is_parked) = (message.receipt(), message.is_parked());
        let signal = Signal {
            text: text.into(),
            during,
        };
        self.state.store.with(seq, |message| {
            message.change_left(|more| more.signal = Some(signal));
        });
        self.changed();
        if is_parked {
            self.leave_park(seq);
            let join = match seeded(Bug::SignalJoinsEarly) {
                true => Join::by_time(now),
                false => self.join(now),
            };
            self.let_go(seq, join);
        }
        true
    }

    /// Signals one message, like [`Queue::signal`], as the result of an operation.
    pub(in crate::queue) fn signal_one(&mut self, id: &[u8], text: &[u8], now: Millis) -> Done {
        Done::Flag(self.signal(id, text, now))
    }

    /// Whether the delivery with this receipt may park its message: not if a signal came
    /// that it has not got. One that it has got is used up.
    pub(in crate::queue) fn may_park(&mut self, seq: Seq, receipt: Receipt) -> bool {
        let message = self.state.store.get(seq);
        let signal = message.and_then(|message| message.left()?.signal());
        match signal {
            None => true,
            Some(signal) if signal.during == receipt => false,
            Some(_) => {
                self.drop_signal(seq);
                true
            }
        }
    }

    /// Removes the signal to a message, if there is one.
    pub(in crate::queue) fn drop_signal(&mut self, seq: Seq) {
        self.state.store.with(seq, |message| {
            if message.signal().is_some() {
                message.change_left(|more| more.signal = None);
            }
        });
    }

    /// Releases the parked message whose time ends first, as of `at`.
    pub(in crate::queue) fn end_park(&mut self, at: Millis) {
        if let Some((_, seq)) = self.indexes.held.first_end() {
            self.leave_park(seq);
            self.let_go(seq, Join::by_time(at));
        }
    }
}
