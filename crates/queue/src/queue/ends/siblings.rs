//! The children in this queue, and the reports about them to their parents.
//!
//! A child passes through one of these functions wherever that makes a difference to its
//! parent. The parent may be in another queue, so the queue owes it a report: the server counts at
//! the parent in the same replicated command.

use crate::index::siblings::{AllSiblings, Siblings};
use crate::message::after::OnFail;
use crate::message::kin::{Delta, News, Parent};
use crate::message::state::StoredState;
use crate::message::Choices;
use crate::queue::Queue;
use crate::{Seq, IS_SMALL};

/// Pages of numbers that one call of [`Queue::children_of`] goes through at most.
const PAGES: u64 = if IS_SMALL { 2 } else { 1024 };

impl Queue {
    /// All children in this queue, if there are any.
    pub fn siblings(&self) -> Option<&AllSiblings> {
        self.state.seldom.siblings.as_deref()
    }

    /// The parent of a message, if it has one.
    pub fn parent_of(&self, seq: Seq) -> Option<&Parent> {
        self.siblings()?.of(seq).map(|siblings| &siblings.parent)
    }

    /// Whether a message is a child of the one with this key and id.
    pub(in crate::queue) fn is_child_of(&self, seq: Seq, (key, id): (&[u8], &[u8])) -> bool {
        let parent = self.parent_of(seq);
        parent.is_some_and(|parent| *parent.key == *key && *parent.id == *id)
    }

    /// Whether there are children of the message with this key and id in this queue. O(log n).
    pub(in crate::queue) fn has_children_of(&self, (key, id): (&[u8], &[u8])) -> bool {
        let sets = self.siblings().map(|all| all.of_message(key, id).count());
        sets.is_some_and(|sets| sets > 0)
    }

    /// Makes a message that was just sent a child. The first of its set tells its parent
    /// that this queue has children of it.
    pub(in crate::queue) fn enter_siblings(&mut self, seq: Seq, parent: &Parent) {
        let all = self.state.seldom.siblings.get_or_insert_default();
        let found = all.find(parent);
        let number = found.unwrap_or(seq);
        if found.is_none() {
            all.add(number, parent);
        }
        all.members.insert(seq, number);
        if let Some(siblings) = all.get_mut(number) {
            siblings.members += 1;
            siblings.live += 1;
        }
        if found.is_none() {
            self.tell_parent(number, parent, |_| ());
        }
    }

    /// Reports a change to the parent with the set `number`. Reports are counted in their order: only
    /// those that take nothing back, and let nothing die, are one with the last about the set.
    fn tell_parent(&mut self, number: Seq, parent: &Parent, change: impl FnOnce(&mut Delta)) {
        let mut delta = Delta::default();
        change(&mut delta);
        let unsettled = self.unsettled_mut();
        let last = unsettled.last_reports.get(&number);
        let last = last.and_then(|at| unsettled.reports.get_mut(*at));
        match last.filter(|last| last.delta.only_adds() && delta.only_adds()) {
            Some(last) => last.delta.add(&delta),
            None => {
                let at = unsettled.reports.len();
                unsettled.last_reports.insert(number, at);
                self.owe_report(News {
                    key: parent.key.clone(),
                    id: parent.id.clone(),
                    delta,
                });
            }
        }
    }

    /// Changes the counts of the set of a message. Returns its number and its parent.
    fn change_siblings_of(
        &mut self,
        seq: Seq,
        change: impl FnOnce(&mut Siblings),
    ) -> Option<(Seq, Parent)> {
        let all = self.state.seldom.siblings_mut()?;
        let number = all.number_of(seq)?;
        let siblings = all.get_mut(number)?;
        change(siblings);
        Some((number, siblings.parent.clone()))
    }

    /// Notes that a child that is pending, or dead and cancelled, ends. It has ended from
    /// now on, even if it is removed next.
    pub(in crate::queue) fn child_ended(&mut self, seq: Seq, was_dead: bool, stored: StoredState) {
        if self.indexes.has_reruns && self.runs_again_for_parent(seq) {
            self.leave_siblings(seq, Some(StoredState::Running));
            return;
        }
        let changed = self.change_siblings_of(seq, |siblings| {
            match was_dead {
                true => siblings.dead -= 1,
                false => siblings.live -= 1,
            }
            if stored.is_dead() {
                siblings.dead += 1;
            }
        });
        let Some((number, parent)) = changed else {
            return;
        };
        self.tell_parent(number, &parent, |delta| {
            if was_dead {
                delta.die(parent.on_dead, -1);
            }
            match stored {
                StoredState::Finished => delta.finished += 1,
                StoredState::Cancelled => delta.cancelled += 1,
                _ => delta.die(parent.on_dead, 1),
            }
        });
        if let Some(message) = self.state.store.get_mut(seq) {
            message.stored = stored;
        }
    }

    /// Whether the message that waits for the end of a run is a child of the same parent.
    /// Then the child has not ended: it is sent anew.
    fn runs_again_for_parent(&self, seq: Seq) -> bool {
        let rerun = self
            .state
            .store
            .get(seq)
            .and_then(|message| message.rerun());
        rerun.is_some_and(|rerun| self.is_same_child(seq, &rerun.choices))
    }

    /// Whether a message is a child, and a message with these options would be a child of
    /// the same parent.
    fn is_same_child(&self, seq: Seq, choices: &Choices) -> bool {
        let parents = self.parent_of(seq).zip(choices.parent());
        parents.is_some_and(|(old, new)| old.is_same_message(new))
    }

    /// Removes a message that was in this state from its set, and updates the counts of the
    /// set.
    fn leave_siblings(&mut self, seq: Seq, stored: Option<StoredState>) -> Option<(Seq, Parent)> {
        self.change_siblings_of(seq, |siblings| match stored {
            Some(StoredState::Finished | StoredState::Cancelled) | None => {}
            Some(StoredState::Dead | StoredState::Leaving) => siblings.dead -= 1,
            Some(_) => siblings.live -= 1,
        });
        let all = self.state.seldom.siblings_mut()?;
        let left = all.leave(seq);
        if all.is_empty() {
            self.state.seldom.siblings = None;
        }
        left
    }

    /// A dead child is pending again.
    pub(in crate::queue) fn child_redriven(&mut self, seq: Seq) {
        let changed = self.change_siblings_of(seq, |siblings| {
            siblings.dead -= 1;
            siblings.live += 1;
        });
        if let Some((number, parent)) = changed {
            self.tell_parent(number, &parent, |delta| delta.die(parent.on_dead, -1));
        }
    }

    /// A child is removed. If it had not ended, it has now. A dead one holds its parent no
    /// longer.
    pub(in crate::queue) fn child_gone(&mut self, seq: Seq) {
        let stored = self.state.store.get(seq).map(|message| message.stored);
        let Some((number, parent)) = self.leave_siblings(seq, stored) else {
            return;
        };
        match stored {
            Some(StoredState::Finished | StoredState::Cancelled) | None => {}
            Some(stored) if stored.is_dead() && parent.on_dead == OnFail::Hold => {
                self.tell_parent(number, &parent, |delta| delta.kept -= 1);
            }
            Some(StoredState::Dead | StoredState::Leaving) => {}
            Some(_) => self.tell_parent(number, &parent, |delta| delta.removed += 1),
        }
    }

    /// A message is about to be replaced by one with these options. If that is a child of
    /// the same parent, it takes the place of this one, which then counts no more.
    pub(in crate::queue) fn replace_child(&mut self, seq: Seq, choices: &Choices) {
        if !self.is_same_child(seq, choices) {
            return;
        }
        let stored = self.state.store.get(seq).map(|message| message.stored);
        let Some((number, parent)) = self.leave_siblings(seq, stored) else {
            return;
        };
        match stored {
            Some(StoredState::Dead) => {
                self.tell_parent(number, &parent, |delta| delta.die(parent.on_dead, -1));
            }
            Some(StoredState::Cancelled) => {
                self.tell_parent(number, &parent, |delta| delta.cancelled -= 1);
            }
            _ => {}
        }
    }

    /// Notes that all messages are removed. O(sets).
    pub(in crate::queue) fn all_children_gone(&mut self) {
        let Some(all) = self
            .state
            .seldom
            .used_mut()
            .and_then(|seldom| seldom.siblings.take())
        else {
            return;
        };
        for (number, siblings) in all.iter() {
            let (live, dead) = (siblings.live as i64, siblings.dead as i64);
            let kept = match siblings.parent.on_dead {
                OnFail::Hold => dead,
                _ => 0,
            };
            if live + kept > 0 {
                self.tell_parent(number, &siblings.parent, |delta| {
                    delta.removed += live;
                    delta.kept -= kept;
                });
            }
        }
        self.discard_siblings(*all);
    }

    /// Up to `most` children of the message with this key and id that are in this queue,
    /// behind the number `behind` in send order. Also returns where to go on, unless that
    /// is the end. It looks through a bounded part of the numbers, so it may return fewer.
    pub fn children_of(
        &self,
        key: &[u8],
        id: &[u8],
        behind: Seq,
        most: usize,
    ) -> (Option<Seq>, Vec<Seq>) {
        let Some(all) = self.siblings() else {
            return (None, Vec::new());
        };
        let mut sets: Vec<Seq> = all.of_message(key, id).collect();
        sets.sort_unstable();
        let Some(first) = sets.first() else {
            return (None, Vec::new());
        };
        let from = (behind + 1).max(*first);
        all.members
            .range_of(&sets, from, self.state.next_seq, PAGES, most)
    }
}
