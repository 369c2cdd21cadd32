//! Model of PARK and SIGNAL.

use super::Model;
use crate::message::after::Park;
use crate::message::state::StoredState;
use crate::{Millis, Receipt, Seq, NEVER};

impl Model {
    /// Parks a message, or leaves it due if a signal has come that was not part of its
    /// delivery.
    pub(super) fn park_after(&mut self, seq: Seq, receipt: Receipt, park: Park) -> bool {
        let m = self.msg_mut(seq);
        if m.signal
            .as_ref()
            .is_some_and(|(_, during)| *during == receipt)
        {
            return false;
        }
        m.signal = None;
        self.park(seq, park);
        true
    }

    pub(super) fn park(&mut self, seq: Seq, park: Park) {
        let now = self.now;
        let m = self.msg_mut(seq);
        m.stored = StoredState::Held;
        m.parked_at = Some(now);
        m.due = park.ms.map_or(NEVER, |ms| now + ms.get());
    }

    /// A parked message is due now, or at its own due time if that is later.
    pub(super) fn unpark(&mut self, seq: Seq) {
        let m = self.msg_mut(seq);
        m.parked_at = None;
        m.due = m.due_at;
        self.let_go(seq);
    }

    pub(super) fn let_go(&mut self, seq: Seq) {
        let now = self.now;
        let m = self.msg_mut(seq);
        m.is_point &= m.due >= now;
        m.due = m.due.max(now);
        m.due_at = m.due;
        m.ttl_base = m.due;
        m.stored = match (m.due > now, m.failures > 0 && !m.snoozed) {
            (false, _) => StoredState::Due,
            (true, true) => StoredState::Retry,
            (true, false) => StoredState::Delayed,
        };
    }

    pub(super) fn signal(&mut self, id: &[u8], text: &[u8]) -> bool {
        let Some(m) = self.find(id).filter(|m| m.is_live()) else {
            return false;
        };
        let (seq, receipt) = (m.seq, m.receipt);
        self.msg_mut(seq).signal = Some((text.to_vec(), receipt));
        if self.msg(seq).parked_at.is_some() {
            self.unpark(seq);
            self.line_up(self.ticket);
        }
        true
    }

    /// When the limited wait of a parked message ends.
    pub(super) fn park_end(&self, seq: Seq) -> Option<Millis> {
        let m = self.msg(seq);
        m.parked_at.and(Some(m.due)).filter(|at| *at != NEVER)
    }
}
