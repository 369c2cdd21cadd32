//! Model of named batches: all counts are made anew for every call.

use super::Model;
use crate::message::after::{After, Counts, OnFail};
use crate::message::state::{Reason, StoredState};
use crate::message::Choices;
use crate::{Error, Seq};

/// A message that is held no longer, and its next state.
#[derive(Debug, Clone)]
pub struct Going {
    pub seq: Seq,
    pub dies: bool,
    pub counts: Counts,
}

/// A batch as BATCHES lists it.
pub type ListedBatch = (Vec<u8>, Counts, u64);

pub fn after_of(choices: &Choices) -> Option<&After> {
    choices.batching()?.after.as_ref()
}

pub fn batch_of(choices: &Choices) -> Option<&[u8]> {
    choices.batching()?.batch.as_deref()
}

impl Model {
    /// The messages of a batch, counted.
    pub fn counts(&self, batch: &[u8]) -> Counts {
        let ended = self.ended_of_batches.iter().find(|(name, _)| name == batch);
        let mut counts = ended.map_or(Counts::default(), |(_, counts)| *counts);
        counts.pending += u64::from(self.kept_open.as_deref() == Some(batch));
        for m in self.msgs.iter().filter(|m| m.in_batch(batch)) {
            match m.stored {
                StoredState::Running => counts.running += 1,
                StoredState::Dead => counts.dead += 1,
                StoredState::Finished | StoredState::Cancelled => {}
                _ => counts.pending += 1,
            }
        }
        counts
    }

    /// The messages that a batch holds, in send order.
    fn held_by(&self, batch: &[u8]) -> Vec<(Seq, OnFail)> {
        let held = self.msgs.iter().filter_map(|m| {
            let after = after_of(&m.choices)?;
            let is_held = m.stored == StoredState::Held && m.parked_at.is_none();
            let is_held = is_held && *after.batch == *batch;
            let goes = self.going.iter().any(|going| going.seq == m.seq);
            (is_held && !goes).then_some((m.seq, after.on_fail))
        });
        held.collect()
    }

    /// All names of batches of existing messages.
    fn batch_names(&self) -> Vec<Vec<u8>> {
        let own = self.msgs.iter().filter_map(|m| batch_of(&m.choices));
        let waited_for = self.msgs.iter().filter_map(|m| after_of(&m.choices));
        let waited_for = waited_for.map(|after| &*after.batch);
        let mut names: Vec<Vec<u8>> = own.chain(waited_for).map(<[u8]>::to_vec).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The open batches.
    pub fn batches_listed(&self) -> Vec<ListedBatch> {
        let listed = self.batch_names().into_iter().filter_map(|name| {
            let (counts, held) = (self.counts(&name), self.held_by(&name).len() as u64);
            (counts.unended() + held > 0).then_some((name, counts, held))
        });
        listed.collect()
    }

    /// Sets whether a message that was just sent is held.
    /// Otherwise it dies anyway, if `dies_with_batch` is false.
    pub(super) fn hold_if_after(&mut self, seq: Seq, dies_with_batch: bool) {
        let Some(after) = after_of(&self.msg(seq).choices).cloned() else {
            return;
        };
        let counts = self.counts(&after.batch);
        if counts.unended() + self.held_by(&after.batch).len() as u64 == 0 {
            return;
        }
        let dies = after.on_fail == OnFail::Die && counts.dead > 0;
        let holding = match after.on_fail {
            OnFail::Go => counts.pending + counts.running,
            _ => counts.unended(),
        };
        if dies || holding > 0 {
            self.msg_mut(seq).stored = StoredState::Held;
        } else {
            self.msg_mut(seq).after_counts = counts;
        }
        if dies && dies_with_batch {
            self.msg_mut(seq).after_counts = counts;
            self.die(seq, Reason::Batch);
        }
    }

    /// Whether two batches would wait for each other.
    ///
    /// Errors: they would.
    pub(super) fn check_ring(&self, choices: &Choices, replaced: Option<Seq>) -> Result<(), Error> {
        let (Some(own), Some(after)) = (batch_of(choices), after_of(choices)) else {
            return Ok(());
        };
        let counts = self.counts(&after.batch);
        let holding = match after.on_fail {
            OnFail::Go => counts.live(),
            OnFail::Die if counts.dead > 0 => 0,
            _ => counts.unended(),
        };
        if holding == 0 {
            return Ok(());
        }
        let mut reached = vec![after.batch.to_vec()];
        let mut at = 0;
        while at < reached.len() {
            for m in self.msgs.iter().filter(|m| Some(m.seq) != replaced) {
                let next = after_of(&m.choices).map(|after| after.batch.to_vec());
                let is_edge = m.stored == StoredState::Held
                    && m.parked_at.is_none()
                    && m.in_batch(&reached[at]);
                if let Some(next) = next.filter(|next| is_edge && !reached.contains(next)) {
                    reached.push(next);
                }
            }
            at += 1;
        }
        match reached.iter().any(|name| name == own) {
            true => Err(Error::Ring),
            false => Ok(()),
        }
    }

    /// Counts that a message of a batch has ended. If it died, what dies with it goes.
    pub(super) fn member_ended(&mut self, seq: Seq, stored: StoredState) {
        let Some(batch) = batch_of(&self.msg(seq).choices).map(<[u8]>::to_vec) else {
            return;
        };
        let ended = &mut self.ended_of_batches;
        if !ended.iter().any(|(name, _)| *name == batch) {
            ended.push((batch.clone(), Counts::default()));
        }
        let ended = ended.iter_mut().find(|(name, _)| *name == batch).unwrap();
        match stored {
            StoredState::Finished => ended.1.finished += 1,
            StoredState::Cancelled => ended.1.cancelled += 1,
            _ => {
                let counts = self.counts(&batch);
                for (seq, on_fail) in self.held_by(&batch) {
                    if on_fail == OnFail::Die {
                        let dies = true;
                        self.going.push_back(Going { seq, dies, counts });
                    }
                }
            }
        }
    }

    /// Releases the messages that are held no longer, and closes batches.
    pub(super) fn settle_batches(&mut self) {
        loop {
            for name in self.batch_names() {
                let counts = self.counts(&name);
                for (seq, on_fail) in self.held_by(&name) {
                    let holding = match on_fail {
                        OnFail::Go => counts.live(),
                        _ => counts.unended(),
                    };
                    if holding == 0 {
                        let dies = false;
                        self.going.push_back(Going { seq, dies, counts });
                    }
                }
            }
            let open = self.batches_listed();
            let is_open = |name: &[u8]| open.iter().any(|(open, ..)| open == name);
            self.ended_of_batches.retain(|(name, _)| is_open(name));
            let Some(Going { seq, dies, counts }) = self.going.pop_front() else {
                return;
            };
            let of_seq = self.msgs.iter_mut().find(|m| m.seq == seq);
            let is_held =
                |m: &&mut super::Msg| m.stored == StoredState::Held && m.parked_at.is_none();
            let Some(m) = of_seq.filter(is_held) else {
                continue;
            };
            m.after_counts = counts;
            let park = m.choices.park().filter(|_| m.signal.is_none());
            match park {
                _ if dies => self.die(seq, Reason::Batch),
                Some(park) => self.park(seq, park),
                None => self.let_go(seq),
            }
            self.line_up(0);
        }
    }
}
