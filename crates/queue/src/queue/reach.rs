//! The other keys that a change of the queue may write to: its event stream, its queue of DEADTO,
//! and the queues of the parents of its messages.
//!
//! In a cluster the keys of a slot may be on their way to another node, so the server asks which of
//! them an operation needs. A key too many only makes an operation wait that need not.

use std::collections::BTreeSet;

use crate::message::kin::Parent;
use crate::message::{Choices, Message};
use crate::op::{Fetch, NackKind, Op, Send};
use crate::queue::Queue;
use crate::{Millis, Receipt, Seq};

/// The keys of other values, each once.
type Keys<'q> = BTreeSet<&'q [u8]>;

/// The reach of an operation among messages, as far as other keys learn of it.
enum Reach {
    /// Nothing.
    Nothing,
    /// No message that was there before ends.
    Events,
    /// These messages end or become pending again, and no other.
    Ends(Vec<Seq>),
    /// Any message may end, or die.
    Anything,
}

impl Queue {
    /// Whether changes of the queue may write to other keys. O(1).
    #[inline]
    pub fn is_tied(&self) -> bool {
        let names = &self.state.settings;
        names.events.is_some() || names.dead_to.is_some() || self.may_have_parents()
    }

    /// Whether messages may have parents. O(1).
    #[inline]
    pub fn may_have_parents(&self) -> bool {
        self.state.seldom.has_siblings() || self.indexes.has_reruns
    }

    /// All other keys that changes of the queue may write to. O(sets of siblings), and O(messages)
    /// where messages wait for the end of a run.
    pub fn tied_keys(&self) -> BTreeSet<&[u8]> {
        let mut keys = self.event_keys();
        keys.extend(self.state.settings.dead_to.iter().map(|to| &*to.key));
        let parents = self
            .state
            .seldom
            .siblings
            .iter()
            .flat_map(|all| all.parents());
        keys.extend(parents.map(|parent| &*parent.key));
        if self.indexes.has_reruns {
            let messages = self.state.store.iter().map(|(_, message)| message);
            keys.extend(messages.filter_map(rerun_parent).map(|parent| &*parent.key));
        }
        keys
    }

    /// The other keys that an operation may write to at `now`, if no event that is due is processed
    /// before it. O(messages that it names), else like [`Queue::tied_keys`].
    pub fn keys_for<'q>(&'q self, op: &'q Op<'_>, now: Millis) -> BTreeSet<&'q [u8]> {
        let mut keys = self.keys_of(self.reach_of(op, now), now);
        let sends = match op {
            Op::Send(send) => std::slice::from_ref(send),
            Op::AckSend(op) => &op.sends,
            _ => &[],
        };
        let parents = sends.iter().filter_map(|send| send.choices.parent());
        keys.extend(parents.map(|parent| &*parent.key));
        keys
    }

    fn keys_of(&self, reach: Reach, now: Millis) -> BTreeSet<&[u8]> {
        match reach {
            // An operation cannot see past the end of a lease, or of a wait for a signal.
            Reach::Nothing if !self.has_work(now) => Keys::new(),
            _ if self
                .indexes
                .held
                .first_end()
                .is_some_and(|(at, _)| at <= now) =>
            {
                self.tied_keys()
            }
            Reach::Nothing | Reach::Events => self.event_keys(),
            Reach::Ends(seqs) if !self.state.seldom.has_batches() => {
                let messages = seqs.iter().filter_map(|seq| self.state.store.get(*seq));
                let parents = seqs.iter().filter_map(|seq| self.parent_of(*seq));
                let parents = parents.chain(messages.filter_map(rerun_parent));
                let mut keys = self.event_keys();
                keys.extend(parents.map(|parent| &*parent.key));
                keys
            }
            Reach::Ends(_) | Reach::Anything => self.tied_keys(),
        }
    }

    fn event_keys(&self) -> BTreeSet<&[u8]> {
        self.state.settings.events.as_deref().into_iter().collect()
    }

    fn reach_of(&self, op: &Op<'_>, now: Millis) -> Reach {
        match op {
            Op::Tick
            | Op::Alter(_)
            | Op::Duplicate
            | Op::Touch { note: None, .. }
            | Op::Grace { .. }
            | Op::Update { .. }
            | Op::Pause { .. }
            | Op::Resume { .. }
            | Op::GroupSet { .. }
            | Op::Limit { .. }
            | Op::Schedule(_)
            | Op::Unschedule { .. }
            | Op::PauseSchedule { .. }
            | Op::Detach(_)
            | Op::Applied(_) => Reach::Nothing,
            Op::Touch { .. } | Op::Signal { .. } | Op::Reschedule { .. } => Reach::Events,
            Op::Send(send) => self.reach_of_sends([send], &[]),
            Op::AckSend(op) => self.reach_of_sends(&op.sends, op.receipt.as_slice()),
            Op::Fetch(fetch) => self.reach_of_fetch(fetch, now),
            Op::Ack { receipts, .. }
            | Op::AckCost { receipts, .. }
            | Op::AckEach { receipts, .. } => Reach::Ends(self.seqs_of(receipts)),
            Op::Nack { receipts, kind, .. } => {
                let seqs = self.seqs_of(receipts);
                match seqs.iter().any(|seq| self.may_die_by(*seq, *kind)) {
                    true => Reach::Anything,
                    false => Reach::Events,
                }
            }
            Op::Cancel { ids } => self.reach_of_named(ids.iter().filter_map(|id| self.find(id))),
            Op::FindDo { seqs, .. } => self.reach_of_named(seqs.iter().copied()),
            Op::Redrive(_)
            | Op::Purge { .. }
            | Op::Remove(_)
            | Op::EndLeases { .. }
            | Op::Advance { .. }
            | Op::CatchUp { .. }
            | Op::Moved(_)
            | Op::Children(_) => Reach::Anything,
        }
    }

    /// The messages with these ids may be replaced.
    fn reach_of_sends<'s, 'a: 's>(
        &self,
        sends: impl IntoIterator<Item = &'s Send<'a>>,
        receipts: &[Receipt],
    ) -> Reach {
        let mut seqs = self.seqs_of(receipts);
        for send in sends {
            if send.choices.batching().is_some() {
                return Reach::Anything;
            }
            seqs.extend(send.id.as_deref().and_then(|id| self.find(id)));
        }
        Reach::Ends(seqs)
    }

    fn reach_of_fetch(&self, fetch: &Fetch<'_>, now: Millis) -> Reach {
        let acked = self.seqs_of(&fetch.acks);
        match (acked.is_empty(), self.can_serve(fetch, now)) {
            (true, false) => Reach::Nothing,
            (_, true) if self.has_overdue_expiry(now) => Reach::Anything,
            _ => Reach::Ends(acked),
        }
    }

    /// One that has expired dies first.
    fn reach_of_named(&self, seqs: impl Iterator<Item = Seq>) -> Reach {
        let seqs: Vec<Seq> = seqs.collect();
        match seqs.iter().any(|seq| self.may_expire(*seq)) {
            true => Reach::Anything,
            false => Reach::Ends(seqs),
        }
    }

    fn seqs_of(&self, receipts: &[Receipt]) -> Vec<Seq> {
        let leases = receipts
            .iter()
            .filter_map(|receipt| self.state.leases.find(*receipt));
        leases.map(|lease| lease.seq).collect()
    }

    /// Whether a nack of this kind may let a running message die.
    fn may_die_by(&self, seq: Seq, kind: NackKind) -> bool {
        let dies = |message: &Message| self.dies_by(message, kind) || message.rerun().is_some();
        self.may_expire(seq) || self.state.store.get(seq).is_some_and(dies)
    }

    fn may_expire(&self, seq: Seq) -> bool {
        let message = self.state.store.get(seq);
        message.is_some_and(|message| self.expiry(message).is_some())
    }
}

/// The parent of what waits for the end of a run.
fn rerun_parent(message: &Message) -> Option<&Parent> {
    message
        .rerun()
        .and_then(|rerun| Choices::parent(&rerun.choices))
}
