//! REPLACE RERUN: one more run, under the same id, when the present one has ended.
//!
//! The next message waits with the running one, and only the newest one is kept. If the
//! run ends in any way but a retry, the message leaves no record, as one that is
//! replaced, and what waits is sent at the end of the operation or the event. A retry
//! takes the new payload and options at once.

use crate::error::Error;
use crate::message::rerun::Rerun;
use crate::message::state::StoredState;
use crate::message::{Choices, Message};
use crate::op::Send;
use crate::queue::ops::id_use::IdUse;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq};

/// A message that is sent at the end of an operation or an event.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    id: Box<[u8]>,
    rerun: Rerun,
}

impl Queue {
    /// Checks that SENDS and MAXBYTES let this wait for the end of the run of a message.
    /// It takes the room of that message. `bytes` are those of all pending and running
    /// messages, which it may not take beyond `most`.
    pub(in crate::queue) fn check_rerun(
        &self,
        seq: Seq,
        send: &Send,
        [bytes, most]: [u64; 2],
    ) -> Result<(), Error> {
        let message = self.state.store.get(seq);
        let waits = message.and_then(Message::rerun).is_some();
        if self.state.settings.closed && !waits {
            return Err(Error::Closed);
        }
        let limit = self.state.settings.max_bytes;
        let before = message.map_or(0, Message::payload_len);
        let sizes = send.payloads.iter().map(|payload| payload.len() as u64);
        let after = sizes.fold(bytes.saturating_sub(before), u64::saturating_add);
        match limit > 0 && after > limit && after > most {
            true => Err(Error::FullBytes { limit }),
            false => Ok(()),
        }
    }

    /// Lets a message wait for the end of the run of the one with its id.
    pub(in crate::queue) fn wait_for_run(&mut self, seq: Seq, send: &Send, now: Millis) {
        let first_at = self.state.store.get(seq).and_then(Message::rerun);
        let first_at = first_at.map_or(now, |rerun| rerun.first_at);
        let rerun = Rerun {
            payload: send.payloads.first().copied().unwrap_or_default().into(),
            due: send.due,
            group: send.group.as_deref().map(Into::into),
            priority: send.priority,
            choices: send.choices.clone(),
            first_at,
        };
        self.indexes.has_reruns = true;
        self.state.store.with(seq, |message| {
            message.change_left(|more| more.rerun = Some(Box::new(rerun)));
        });
        self.changed();
    }

    /// Removes and returns the message that waits for the end of a run.
    fn take_rerun(&mut self, seq: Seq) -> Option<Rerun> {
        self.state.store.get(seq)?.rerun()?;
        let mut rerun = None;
        self.state.store.with(seq, |message| {
            message.change_left(|more| rerun = more.rerun.take());
        });
        rerun.map(|rerun| *rerun)
    }

    /// Removes a message that has ended, if anything waits for that. Returns whether it
    /// did.
    pub(super) fn end_for_rerun(&mut self, seq: Seq, stored: StoredState) -> bool {
        if self.state.store.get(seq).and_then(Message::rerun).is_none() {
            return false;
        }
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        if !self.part_with_rerun(seq) {
            return false;
        }
        if stored == StoredState::Dead {
            self.unhold(seq, group);
        }
        self.forget(seq);
        true
    }

    /// Prepares the message that waits for the end of a run, so that it is sent. The
    /// caller removes the message. Returns whether anything waits.
    pub(super) fn part_with_rerun(&mut self, seq: Seq) -> bool {
        let Some(rerun) = self.take_rerun(seq) else {
            return false;
        };
        if let Some(message) = self.state.store.get(seq) {
            let id = self.id_of(seq, message).to_box();
            self.unsettled_mut().reruns.push(Ended { id, rerun });
        }
        true
    }

    /// Gives a message that comes back for a retry the payload and the options of the
    /// message that waits for it, if there is one. Its group, priority, score, batch,
    /// limits and due time stay. Returns whether any did.
    pub(in crate::queue) fn retry_with_rerun(&mut self, seq: Seq) -> bool {
        let Some(rerun) = self.take_rerun(seq) else {
            return false;
        };
        let before = self.state.store.get(seq).map_or(0, Message::payload_len);
        self.state.store.set_payload(seq, &rerun.payload);
        self.indexes.bytes = self.indexes.bytes - before + rerun.payload.len() as u64;
        self.indexes.has_own_retain |= rerun.choices.retain().is_some();
        self.state.store.with(seq, |message| {
            let ext = message.extension_mut();
            let old = ext.choices.take().map(|old| *old).unwrap_or_default();
            let old_rare = old.rare.unwrap_or_default();
            let mut choices = Choices {
                score: old.score,
                ..rerun.choices
            };
            choices.change_rare(|rare| {
                rare.batching = old_rare.batching;
                rare.limited = old_rare.limited;
                rare.kin = old_rare.kin;
            });
            ext.choices = choices.stored();
        });
        true
    }

    /// Sends the messages that waited for the end of runs that have ended. It takes the
    /// places of the messages that have run, so no limit is checked.
    #[cold]
    pub(in crate::queue) fn send_reruns(&mut self, now: Millis) {
        let unsettled = self.state.seldom.unsettled_mut();
        let reruns = unsettled.map_or(Vec::new(), |all| std::mem::take(&mut all.reruns));
        for Ended { id, rerun } in reruns {
            let send = Send {
                id: Some((&*id).into()),
                replace: true,
                due: rerun.due,
                group: rerun.group.as_deref().map(Into::into),
                priority: rerun.priority,
                choices: rerun.choices,
                ..Send::plain(&rerun.payload)
            };
            // No message can have taken the id since the run has ended.
            self.put(&send, IdUse::Free, Some(rerun.first_at), now);
        }
        if !self.owes() {
            self.state.seldom.unsettled = None;
        }
    }
}
