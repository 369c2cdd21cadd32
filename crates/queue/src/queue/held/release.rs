//! Releasing held messages: the only way for all of them.

use crate::index::ready_line::Join;
use crate::message::after::Counts;
use crate::message::state::{Reason, State};
use crate::message::{Choices, Message};
use crate::queue::Queue;
use crate::transition::Kind;
use crate::{GroupIx, Millis, Seq};

impl Queue {
    /// Makes a message that was held due as of the time of `join`, or at its own due time if
    /// that is later. It is in no index. Its group joins the ready line as `join` says.
    pub(in crate::queue) fn let_go(&mut self, seq: Seq, join: Join) {
        let at = join.time;
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        self.changed();
        self.state.store.with(seq, |message| {
            let due = message.due.max(at);
            message.set_due_at_point(message.is_due_at_point() && due == message.due);
            let ext = message.extension_mut();
            ext.due_at = due;
            ext.ttl_base = due;
            message.due = due;
        });
        let due = self.state.store.get(seq).map_or(at, |message| message.due);
        self.note_until(seq, Kind::Released, self.state.last, due);
        self.enter_pending(seq, self.state.last);
        self.refresh(group, self.state.last, join);
    }

    /// Ends the wait of a message for its batch, as of `at`. It falls due, is parked, or
    /// dies. It is in no index.
    pub(in crate::queue) fn let_go_of_batch(
        &mut self,
        seq: Seq,
        at: Millis,
        dies: bool,
        counts: Counts,
    ) {
        self.keep_counts(seq, counts);
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        if dies {
            self.changed();
            self.end_wait_for_children(seq);
            self.die(seq, Reason::Batch, at);
            self.refresh(group, self.state.last, Join::by_time(at));
        } else if self.hold_by_children(seq) {
            self.changed();
            self.refresh(group, self.state.last, Join::by_time(at));
        } else {
            self.let_go_or_park(seq, at);
        }
    }

    /// Parks a message that neither a batch nor children hold any longer, if it was sent
    /// with PARK and no signal has come. Otherwise lets it go. It is in no index.
    pub(in crate::queue) fn let_go_or_park(&mut self, seq: Seq, at: Millis) {
        let message = self.state.store.get(seq);
        let group = message.map_or(GroupIx::NONE, |m| m.group);
        let is_signalled = message.is_some_and(|message| message.signal().is_some());
        let park = message.and_then(Message::choices).and_then(Choices::park);
        match park {
            Some(park) if !is_signalled => {
                let since = message.map_or(at, Message::held_since);
                self.changed();
                self.notes
                    .pages
                    .note(&[State::Held], (since, seq), self.state.last);
                self.park(seq, park, at);
                self.refresh(group, self.state.last, Join::by_time(at));
            }
            _ => self.let_go(seq, Join::by_time(at)),
        }
    }
}
