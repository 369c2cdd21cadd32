//! Read-only views of groups, for DQ.GROUPS.

use crate::groups::backlog::Pending;
use crate::groups::group::Group;
use crate::message::state::StoredState;
use crate::message::Message;
use crate::queue::Queue;
use crate::settings::OnRetry;
use crate::{Millis, Seq};

/// The state of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupState {
    /// The group's deliveries are paused.
    Paused,
    /// The group can give a message now.
    Ready,
    /// The group cannot give, and some of its messages are leased.
    Running,
    /// The group cannot give, and a message of it is due, or a failed or dead message
    /// holds it.
    Blocked,
    /// The group has no message that is due.
    Waiting,
}

impl GroupState {
    /// The state as it appears in a reply.
    pub fn name(self) -> &'static str {
        match self {
            GroupState::Paused => "paused",
            GroupState::Ready => "ready",
            GroupState::Running => "running",
            GroupState::Blocked => "blocked",
            GroupState::Waiting => "waiting",
        }
    }
}

/// The groups that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedGroups {
    /// Groups in this state.
    In(GroupState),
    /// Groups that have a message which is due or waits for its retry, and that give
    /// none, for whatever reason.
    Held,
}

/// All data of a group.
#[derive(Debug, Clone, Copy)]
pub struct GroupView<'a> {
    /// The group itself.
    pub group: &'a Group,
    /// The state of the group.
    pub state: GroupState,
    /// The message that it will give first.
    pub head: Option<(Seq, &'a Message)>,
    /// When the first of its leases ends (Unix ms).
    pub lease_until: Option<Millis>,
    /// Number of its pending messages.
    pub waiting: u64,
    /// Maximum number of its batches that may be leased at once.
    pub concurrency: u64,
    /// The state of its breaker.
    pub breaker: &'static str,
    /// When its breaker becomes half-open (Unix ms), if it is open.
    pub open_until: Option<Millis>,
}

impl Queue {
    /// Up to `count` groups from a cursor on, only the wanted ones. `None` wants all. Also
    /// returns the next cursor, 0 at the end.
    ///
    /// A call examines up to 10 x `count` groups, or up to 1,000 if that is more,
    /// so it may return fewer than `count`.
    pub fn groups(
        &self,
        cursor: u64,
        count: usize,
        wanted: Option<WantedGroups>,
        now: Millis,
    ) -> (u64, Vec<GroupView<'_>>) {
        let mut views = Vec::new();
        let most = count.saturating_mul(10).max(1000);
        for (looked, (ix, group)) in self.state.groups.starting_at(cursor).enumerate() {
            if views.len() == count || looked == most {
                return (ix.number(), views);
            }
            let Some(group) = group.filter(|group| group.is_listed()) else {
                continue;
            };
            let view = self.group_view(group, now);
            let is_wanted = match wanted {
                None => true,
                Some(WantedGroups::In(state)) => state == view.state,
                Some(WantedGroups::Held) => self.is_held(&view, now),
            };
            if is_wanted {
                views.push(view);
            }
        }
        (0, views)
    }

    /// Whether a group has a message that is due or waits for its retry, and delivers none.
    fn is_held(&self, view: &GroupView<'_>, now: Millis) -> bool {
        let Pending { fresh, failed } = view.group.pending();
        let waits = !failed.is_empty() || fresh.earliest().is_some_and(|due| due <= now);
        let waits_for_limit = || {
            let head = view.head.filter(|(_, message)| message.limited().is_some());
            head.is_some_and(|(seq, message)| {
                self.blocking_limit(seq, message.group, now).is_some()
            })
        };
        let gives =
            view.state == GroupState::Ready && self.allowance(now, false) > 0 && !waits_for_limit();
        waits && !gives
    }

    /// The view of a group.
    fn group_view<'a>(&'a self, group: &'a Group, now: Millis) -> GroupView<'a> {
        let pending = group.pending();
        let next = self.next_in_group(group, now);
        // Under ONRETRY SKIP a failed message does not hold its group.
        let held_by_failed = self.state.settings.on_retry != OnRetry::Skip
            && !pending.failed.is_empty()
            && next.is_none();
        let held = held_by_failed || self.is_held_by_dead(group);
        let state = if group.is_paused(now) {
            GroupState::Paused
        } else if self.group_head(group, now).is_some() {
            GroupState::Ready
        } else if group.running > 0 {
            GroupState::Running
        } else if pending.count_at(StoredState::Due) > 0 || held {
            GroupState::Blocked
        } else {
            GroupState::Waiting
        };
        let head = next
            .or_else(|| pending.failed.first())
            .or_else(|| pending.fresh.first())
            .map(|key| key.seq());
        GroupView {
            group,
            state,
            head: head.and_then(|seq| Some((seq, self.state.store.get(seq)?))),
            lease_until: self.first_lease_of(group).map(|(until, _)| until),
            waiting: pending.len() + group.ext().held,
            concurrency: self.concurrency(group),
            breaker: match group.breaker() {
                None => "closed",
                Some(circuit) => circuit.state(now),
            },
            open_until: group.breaker().and_then(|circuit| circuit.open_until(now)),
        }
    }

    /// When the first lease of a group to end does so (Unix ms), and its message.
    /// O(leases of the group).
    pub(in crate::queue) fn first_lease_of(&self, group: &Group) -> Option<(Millis, Seq)> {
        let leases = self.leased_of(group).map(|lease| (lease.until, lease.seq));
        leases.min()
    }
}
