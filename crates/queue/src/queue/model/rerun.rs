//! Model of REPLACE RERUN.

use super::Model;
use crate::message::state::StoredState;
use crate::op::{Done, Send, Sent};
use crate::{Error, Millis, Seq};

/// A message that waits for the end of a run.
#[derive(Debug, Clone)]
pub struct Rerun {
    pub send: Send<'static>,
    /// When the first of the sends that replaced each other meanwhile was done.
    pub first_at: Millis,
}

/// An owned copy of a send. The tests have a few payloads of one byte value.
fn owned(send: &Send) -> Send<'static> {
    const BYTES: [u8; 64] = [b'x'; 64];
    let payloads = send.payloads.iter();
    Send {
        payloads: payloads.map(|payload| &BYTES[..payload.len()]).collect(),
        id: send.id.as_ref().map(|id| id.to_vec().into()),
        group: send.group.as_ref().map(|group| group.to_vec().into()),
        choices: send.choices.clone(),
        // It counts from the send on.
        dedup: None,
        ..*send
    }
}

impl Model {
    /// The running message that has the id of a SEND with RERUN.
    pub(super) fn run_to_wait_for(&self, send: &Send) -> Option<Seq> {
        let m = self.find(send.id.as_deref().filter(|_| send.rerun)?)?;
        (m.stored == StoredState::Running).then_some(m.seq)
    }

    pub(super) fn wait_for_run(
        &mut self,
        seq: Seq,
        send: &Send,
        before: (u64, u64),
    ) -> Result<Done, Error> {
        let (now, (_, bytes)) = (self.now, self.live());
        let m = self.msg(seq);
        let bytes = bytes - m.payload.len() as u64 + send.payloads[0].len() as u64;
        if self.settings.closed && m.rerun.is_none() {
            return Err(Error::Closed);
        }
        let limit = self.settings.max_bytes;
        if limit > 0 && bytes > limit && bytes > before.1 {
            return Err(Error::FullBytes { limit });
        }
        self.check_ring(&send.choices, None)?;
        let m = self.msg_mut(seq);
        let first_at = m.rerun.as_ref().map_or(now, |rerun| rerun.first_at);
        m.rerun = Some(Rerun {
            send: owned(send),
            first_at,
        });
        Ok(Done::Sent([Sent::Waits(seq)].into_iter().collect()))
    }

    /// Removes a message that has ended, if something waits for that.
    pub(super) fn end_for_rerun(&mut self, seq: Seq) -> bool {
        let Some(rerun) = self.msg_mut(seq).rerun.take() else {
            return false;
        };
        self.unhold(seq);
        self.msgs.retain(|m| m.seq != seq);
        self.reruns.push(rerun);
        true
    }

    /// A message that comes back takes the content of the message that waits for it.
    pub(super) fn retry_with_rerun(&mut self, seq: Seq) {
        let m = self.msg_mut(seq);
        let Some(Rerun { send, .. }) = m.rerun.take() else {
            return;
        };
        m.payload = send.payloads[0].to_vec();
        let (score, batching) = (m.choices.score, m.choices.batching().cloned());
        m.choices = send.choices;
        m.choices.score = score;
        m.choices
            .change_rare(|rare| rare.batching = batching.map(Box::new));
    }

    pub(super) fn send_reruns(&mut self, ticket: u64) {
        for Rerun { send, first_at } in std::mem::take(&mut self.reruns) {
            self.put(&send, first_at);
            self.line_up(ticket);
        }
    }
}
