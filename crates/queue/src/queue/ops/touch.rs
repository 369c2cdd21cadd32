//! TOUCH: moves the ends of leases.

use crate::index::leases::Lease;
use crate::message::state::State;
use crate::op::{Done, Happened};
use crate::queue::delivery::give_back::distinct;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::transition::Kind;
use crate::{Millis, Receipt, Seq, MAX_EXACT};

impl Queue {
    /// Sets the end of leases to `ms` from now, and the note of their messages if
    /// one is given. Returns how many receipts were current.
    pub(in crate::queue) fn touch(
        &mut self,
        ms: Millis,
        receipts: &[Receipt],
        note: Option<&[u8]>,
        now: Millis,
    ) -> Done {
        let until = now.saturating_add(ms).min(MAX_EXACT);
        let mut touched = 0;
        for receipt in distinct(receipts) {
            let Some(lease) = self.current(receipt, now) else {
                continue;
            };
            self.move_lease_end(lease, until);
            self.take_old_end(receipt);
            if !seeded(Bug::TouchWakesLate) {
                self.wake_by(until);
            }
            if let Some(note) = note {
                self.leave_note(lease.seq, note);
            }
            self.notes.effects.changed = true;
            self.notes.effects.visible = true;
            touched += 1;
        }
        Done::Count(touched)
    }

    /// Moves the end of a lease (Unix ms). O(log n).
    pub(in crate::queue) fn move_lease_end(&mut self, lease: Lease, until: Millis) {
        let place = (lease.until, lease.receipt);
        self.notes
            .pages
            .note(&[State::Running], place, self.state.last);
        self.state.leases.move_end(lease, until);
    }

    /// Sets the note of a message; an empty one removes it.
    pub(in crate::queue) fn leave_note(&mut self, seq: Seq, note: &[u8]) {
        self.state.store.with(seq, |message| message.set_note(note));
        self.notes.effects.happened.add(Happened::NOTED);
        self.note(seq, Kind::Noted);
    }
}
