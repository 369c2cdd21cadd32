//! Messages that are held until their children have ended.
//!
//! The parent counts: how many have ended is with its options, and nothing but its entry in
//! the indexes of held messages is kept beside that. The children are known where they are
//! (`queue/ends/siblings.rs`), and what becomes of them comes here as an operation.

use crate::index::ready_line::Join;
use crate::message::kin::{Children, Wait};
use crate::message::state::{Reason, StoredState};
use crate::message::Message;
use crate::op::{Counted, CountedOne, Done};
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq, IS_SMALL};

/// Parents that die in one event.
const AT_ONCE: usize = if IS_SMALL { 2 } else { 64 };

impl Queue {
    /// Whether children hold a message.
    pub(super) fn is_held_by_children(&self, seq: Seq) -> bool {
        let message = self.state.store.get(seq);
        message.is_some_and(Message::is_held_by_children)
    }

    /// Holds a message, which is in no index yet, if its children have not ended. Returns
    /// whether they hold it.
    pub(in crate::queue) fn hold_by_children(&mut self, seq: Seq) -> bool {
        let children = self.state.store.get(seq).and_then(Message::children);
        let Some(children) = children.filter(|children| children.wait == Wait::Later) else {
            return false;
        };
        let holds = !children.have_ended();
        self.change_children(seq, |children| {
            children.wait = if holds { Wait::Now } else { Wait::Over };
        });
        if holds {
            if let Some(message) = self.state.store.get_mut(seq) {
                message.stored = StoredState::Held;
            }
            self.enter_children(seq);
        }
        holds
    }

    /// Adds a message that its children hold to the indexes.
    pub(in crate::queue) fn enter_children(&mut self, seq: Seq) {
        self.enter_held(seq);
        self.indexes.held.by_children += 1;
        self.note_dying(seq);
    }

    /// Notes that a held message is to die, if its children demand it.
    pub(in crate::queue) fn note_dying(&mut self, seq: Seq) {
        let children = self.state.store.get(seq).and_then(Message::children);
        if children.is_some_and(|children| children.dies) {
            self.indexes.held.dying.insert(seq, ());
            self.wake_by(0);
        }
    }

    /// Ends the counts of children at a message.
    pub(super) fn end_wait_for_children(&mut self, seq: Seq) {
        self.change_children(seq, |children| {
            children.wait = Wait::Over;
            children.dies = false;
        });
    }

    fn change_children(&mut self, seq: Seq, change: impl FnOnce(&mut Children)) {
        if self
            .state
            .store
            .get(seq)
            .and_then(Message::children)
            .is_none()
        {
            return;
        }
        self.state.store.with(seq, |message| {
            let choices = message.extension_mut().choices.as_mut();
            if let Some(children) = choices.and_then(|choices| choices.children_mut()) {
                change(children);
            }
        });
    }

    /// Counts the changes among children at their parents. Returns how many parents there
    /// are that count it. O(log n) for each.
    pub(in crate::queue) fn count_children(&mut self, counted: &Counted, now: Millis) -> Done {
        let mut count = 0;
        for one in &counted.of {
            count += u64::from(self.count_at_parent(&counted.from, one, now));
        }
        Done::Count(count)
    }

    /// Counts the changes of children at one parent. Returns whether there is one that
    /// counts: one that is held, and has not expired.
    fn count_at_parent(&mut self, from: &[u8], one: &CountedOne, now: Millis) -> bool {
        let found = self.find(&one.id);
        let Some((seq, message)) = found.and_then(|seq| Some((seq, self.state.store.get(seq)?)))
        else {
            return false;
        };
        let is_held =
            message.stored == StoredState::Held && self.expired_at(message, now).is_none();
        let children = message.children().filter(|_| is_held);
        if !children.is_some_and(|children| children.wait != Wait::Over) {
            return false;
        }
        let mut changed = false;
        self.change_children(seq, |children| {
            let before = children.counts;
            children.counts.add(&one.delta);
            children.dies |= one.delta.dies;
            changed = children.remember(from) || children.counts != before || one.delta.dies;
        });
        if !changed {
            return true;
        }
        self.changed();
        if one.delta.dies && !one.dies_later {
            self.die_of_children(seq, now);
        } else if one.delta.dies {
            self.note_dying(seq);
        } else {
            self.settle_children(seq, now);
        }
        true
    }

    /// Releases a message if its children hold it and have all ended.
    pub(in crate::queue) fn settle_children(&mut self, seq: Seq, now: Millis) {
        let message = self
            .state
            .store
            .get(seq)
            .filter(|m| m.is_held_by_children());
        let children = message.and_then(Message::children);
        if children.is_some_and(|children| children.have_ended() && !children.dies) {
            self.leave_held(seq);
            self.let_go_or_park(seq, now);
        }
    }

    /// Lets a held message die because a child of it died.
    fn die_of_children(&mut self, seq: Seq, at: Millis) {
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        self.leave_held(seq);
        self.die(seq, Reason::Children, at);
        self.refresh(group, self.state.last, Join::by_time(at));
    }

    /// Lets some of the messages die that are to die because of their children.
    pub(in crate::queue) fn end_dying(&mut self, at: Millis) {
        for _ in 0..AT_ONCE {
            let Some((seq, ())) = self.indexes.held.dying.first() else {
                return;
            };
            self.die_of_children(seq, at);
        }
    }

    /// Gives a message that was just sent the counts of the one that it replaces. Its
    /// children name it by its id, so they go on counting.
    pub(in crate::queue) fn take_over_children(&mut self, seq: Seq, old: Children, now: Millis) {
        let message = self.state.store.get(seq);
        let is_held = message.is_some_and(|message| message.stored == StoredState::Held);
        if !is_held || message.and_then(Message::children).is_none() {
            return;
        }
        self.change_children(seq, |children| {
            children.counts = old.counts;
            children.queues = old.queues;
        });
        self.settle_children(seq, now);
    }
}
