//! The head of a group: the message that it delivers next, if it may deliver any.

use crate::groups::backlog::Pending;
use crate::groups::breaker::Lets;
use crate::groups::group::Group;
use crate::index::order_key::OrderKey;
use crate::limits::MAX_ALONE;
use crate::queue::moves::order_key;
use crate::queue::Queue;
use crate::settings::OnRetry;
use crate::{GroupIx, Millis};

impl Queue {
    /// The message that a group would give at `now`, if it can give any.
    pub(in crate::queue) fn group_head(&self, group: &Group, now: Millis) -> Option<OrderKey> {
        if group.is_paused(now)
            || group.lets(now) == Lets::None
            || self.is_held_by_dead(group)
            || self.is_busy(group)
            || group.allowance(now) == 0
        {
            return None;
        }
        self.next_in_group(group, now)
    }

    /// The message that comes next in the order of a group at `now`, regardless of
    /// pauses, holds and limits.
    pub(in crate::queue) fn next_in_group(&self, group: &Group, now: Millis) -> Option<OrderKey> {
        let Pending { fresh, failed } = group.pending();
        let fresh = || fresh.first_due(now);
        if failed.is_empty() {
            return fresh();
        }
        if self.waits_behind_failed(group) {
            let is_over = !self.waits_for_retry(group, now);
            return failed.first().filter(|_| is_over);
        }
        match (failed.first_due(now), fresh()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether any failed message of the group still waits for its backoff.
    pub(in crate::queue) fn waits_for_retry(&self, group: &Group, now: Millis) -> bool {
        let failed = group.pending().failed;
        !failed.ahead.is_empty() && failed.times().any(|due| due > now)
    }

    /// Maximum number of batches of a group that may be leased at once.
    pub(in crate::queue) fn concurrency(&self, group: &Group) -> u64 {
        match group.ext().settings.as_ref().map_or(0, |s| s.concurrency) {
            0 if group.is_hidden() => u64::MAX,
            0 => self.state.settings.group_concurrency,
            own => own,
        }
    }

    /// Whether as much of a group is leased as may be at once. With ONRETRY ALONE a failed
    /// message goes out all the same if it stands before those that are leased.
    pub(in crate::queue) fn is_busy(&self, group: &Group) -> bool {
        if group.batch_count() < self.concurrency(group) {
            return false;
        }
        match group.pending().failed.first() {
            Some(failed) => self.first_leased(group).is_none_or(|first| first < failed),
            None => true,
        }
    }

    /// With ONRETRY ALONE, the first of the leased messages of a group in its order, unless
    /// they are very many. O(leased messages).
    pub(in crate::queue) fn first_leased(&self, group: &Group) -> Option<OrderKey> {
        if self.state.settings.on_retry != OnRetry::Alone || group.batch_count() > MAX_ALONE {
            return None;
        }
        let leased = self.leased_of(group).map(|lease| lease.seq);
        let keys = leased.filter_map(|seq| Some(order_key(seq, self.state.store.get(seq)?)));
        keys.min()
    }

    /// Whether a failed message of a group holds up the others. It never does where they have no
    /// group of their own.
    pub(in crate::queue) fn waits_behind_failed(&self, group: &Group) -> bool {
        self.state.settings.on_retry != OnRetry::Skip && !group.is_hidden()
    }

    /// Whether a group can give a message at `now`.
    pub(in crate::queue) fn can_group_give(&self, ix: GroupIx, now: Millis) -> bool {
        let head = self.head_of(ix, now);
        head.is_some_and(|head| self.limits_let(head.seq(), ix, now))
    }

    /// The message that a group would give at `now`, regardless of limits with names.
    pub(in crate::queue) fn head_of(&self, ix: GroupIx, now: Millis) -> Option<OrderKey> {
        self.group_head(self.state.groups.get(ix)?, now)
    }
}
