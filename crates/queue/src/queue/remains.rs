//! Purged messages that still count in their groups.
//!
//! What groups have in retry or running holds them: when it is purged they may
//! be able to give, and join the line. For very many groups that takes its
//! time, and it can be seen. So it is done in steps, like all that time brings;
//! until its step a group is held by what is no longer there for anyone else.

use super::discard::{Discarded, Ghosts};
use super::moves::{member, order_key};
use super::Queue;
use crate::index::leases::Leases;
use crate::index::ready_line::Join;
use crate::message::state::StoredState;
use crate::message::Message;
use crate::{GroupIx, Millis, Seq, TimeIndex, IS_SMALL};

/// Up to so many leave their groups at once.
pub(super) const AT_ONCE: usize = if IS_SMALL { 2 } else { 256 };

/// Purged messages that still count in their groups.
#[derive(Debug, Clone, Default)]
pub(super) struct Remains {
    /// Those that failed, and maybe some that their groups have lost before.
    pub retry: TimeIndex,
    /// How many of those still count.
    pub failed: usize,
    /// Those that were leased, ungrouped ones among them.
    pub leases: Leases,
    /// When, and by which command, the last of them were purged.
    pub join: Join,
}

impl Remains {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.failed + self.leases.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes allocated, roughly; the messages themselves not included.
    pub fn memory_bytes(&self) -> usize {
        self.retry.memory_bytes() + self.leases.memory_bytes()
    }

    /// Whether a message in the store is one of them, or one that its group
    /// has lost before. O(log n).
    fn may_have(&self, seq: Seq, message: &Message) -> bool {
        match message.stored {
            StoredState::Retry => self.retry.contains(&(message.due, seq)),
            StoredState::Running => {
                let lease = self.leases.find(message.receipt());
                lease.is_some_and(|lease| lease.seq == seq)
            }
            _ => false,
        }
    }
}

impl Queue {
    /// Whether a message was purged but still counts in its group. O(log n).
    pub(super) fn is_remains(&self, seq: Seq, message: &Message) -> bool {
        if self.remains.is_empty() || !self.remains.may_have(seq, message) {
            return false;
        }
        let group = self.groups.get(message.group);
        message.stored == StoredState::Running
            || group.is_some_and(|group| {
                let failed = group.backlog.all().failed;
                failed.ahead.contains(&order_key(seq, message))
            })
    }

    /// Whether this message was purged but still counts in its group.
    pub(super) fn counts_purged(&self, seq: Seq) -> bool {
        let message = self.store.get(seq).filter(|_| !self.remains.is_empty());
        message.is_some_and(|message| self.is_remains(seq, message))
    }

    /// Removes all that groups have in retry; how many messages. O(1), but for
    /// those that were purged so a moment ago.
    pub(super) fn purge_retry(&mut self, now: Millis) -> u64 {
        let there = self.waiting.grouped.count(StoredState::Retry);
        let count = there.saturating_sub(self.ghosts_at(StoredState::Retry));
        if count == 0 {
            return 0;
        }
        let ghosts = self.ghosts.get_mut(StoredState::Retry as usize);
        let ghosts = ghosts.map_or(Ghosts::default(), std::mem::take);
        let (indexes, bytes) = self.waiting.grouped.detach(StoredState::Retry);
        let bytes = bytes.saturating_sub(ghosts.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        for index in indexes {
            let (mut more, fewer) = match index.len() > self.remains.retry.len() {
                true => (index, std::mem::take(&mut self.remains.retry)),
                false => (std::mem::take(&mut self.remains.retry), index),
            };
            for (key, ()) in fewer.iter() {
                more.insert(key, ());
            }
            self.remains.retry = more;
        }
        self.remains.failed += count;
        self.let_go(now);
        count as u64
    }

    /// Ends all leases and removes their messages; how many. O(1), but for
    /// those that were purged so a moment ago.
    pub(super) fn purge_running(&mut self, now: Millis) -> u64 {
        let leases = std::mem::take(&mut self.leases);
        let count = leases.len() as u64;
        if count == 0 {
            return 0;
        }
        let bytes = std::mem::take(&mut self.running_bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.consumers.release_all();
        self.withdraw_plain();
        if std::mem::take(&mut self.grouped_running) == 0 {
            self.discarded.push(Discarded::Leases(Box::new(leases)));
        } else {
            self.remains.leases.append(leases);
            self.let_go(now);
        }
        count
    }

    /// Lets what was purged now leave its groups: at once where it is little.
    fn let_go(&mut self, now: Millis) {
        self.remains.join = self.join(now);
        match self.remains.len() <= AT_ONCE {
            true => self.drop_all_remains(),
            false => {
                self.wake_by(0);
                self.finish_manually();
            }
        }
    }

    /// Lets all that was purged leave its groups.
    pub(super) fn drop_all_remains(&mut self) {
        while !self.remains.is_empty() {
            self.drop_next_remains();
        }
        self.forget_remains();
    }

    /// Lets the next one leave its group, which may be able to give then.
    pub(super) fn drop_next_remains(&mut self) {
        while let Some(((_, seq), ())) = self.remains.retry.first() {
            if self.counts_purged(seq) {
                return self.drop_remains(seq);
            }
            self.remains.retry.pop_first();
        }
        let first = self.remains.leases.first_end();
        if let Some(lease) = first.and_then(|(_, receipt)| self.remains.leases.find(receipt)) {
            self.drop_remains(lease.seq);
        }
    }

    /// Lets one leave its group, which joins the line as of the purge if it can
    /// give.
    pub(super) fn drop_remains(&mut self, seq: Seq) {
        let join = self.remains.join;
        if let Some(group) = self.remove_remains(seq) {
            self.refresh(group, self.last, join);
        }
        self.forget_remains();
    }

    /// Lets all of a group that have failed leave it; the caller refreshes it.
    pub(super) fn drop_failed_of(&mut self, ix: GroupIx) {
        let Some(group) = self.groups.get(ix).filter(|_| self.remains.failed > 0) else {
            return;
        };
        let failed = group.backlog.all().failed.ahead.iter();
        let seqs = failed.map(|(key, _)| key.seq());
        let purged: Vec<Seq> = seqs.filter(|seq| self.counts_purged(*seq)).collect();
        for seq in purged {
            self.remove_remains(seq);
        }
        self.forget_remains();
    }

    /// Takes one out of its group and frees it; the group it was of.
    fn remove_remains(&mut self, seq: Seq) -> Option<GroupIx> {
        let message = self.store.get(seq)?;
        let ix = message.group;
        if message.stored == StoredState::Running {
            let lease = self.remains.leases.take(message.receipt())?;
            if ix.is_some() {
                self.withdraw(seq, ix);
                self.heed_purges(ix);
                let over = self.remains.leases.leave_batch(lease.receipt);
                if let Some(group) = self.groups.get_mut(ix) {
                    group.running -= 1;
                    if let Some(batch) = over {
                        group.close_batch(batch.first);
                    }
                }
            }
        } else {
            let (due, member) = (message.due, member(seq, message));
            if let Some(at) = self.expiry(message) {
                self.expiring.remove(&(at, seq));
            }
            self.remains.retry.remove(&(due, seq));
            self.remains.failed -= 1;
            self.heed_purges(ix);
            self.groups
                .with(ix, |group| group.backlog.remove(StoredState::Retry, member));
        }
        self.forget(seq);
        self.changed();
        Some(ix)
    }

    /// Where none is left, frees what stood among them without being one.
    fn forget_remains(&mut self) {
        if self.remains.is_empty() && !self.remains.retry.is_empty() {
            let retry = std::mem::take(&mut self.remains.retry);
            self.discarded.push(Discarded::Index(retry));
        }
    }
}
