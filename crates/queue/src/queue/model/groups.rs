//! Compares what GROUPS, INFO and EXPLAIN report of the queue with the model.

use super::compare::Compared;
use crate::message::state::State;
use crate::queue::inspect::explain::Code;
use crate::queue::inspect::groups::WantedGroups;

impl Compared<'_> {
    /// Compares the groups listed, and whether each message is the next to be
    /// delivered.
    pub(super) fn compare_groups(&self) {
        let (queue, model, now) = (self.queue, self.model, self.now);
        let (_, views) = queue.groups(0, 100, None, now);
        let mut seen: Vec<_> = views
            .iter()
            .map(|view| {
                let head = view.head.map(|(seq, _)| seq);
                let counts = (view.waiting, u64::from(view.group.running));
                (view.group.name.to_vec(), view.state, counts, head)
            })
            .collect();
        seen.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut expected = model.groups_listed();
        expected.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(queue.groups_listed(), expected.len(), "groups in INFO");
        assert_eq!(seen, expected, "what GROUPS tells");
        let (_, held) = queue.groups(0, 100, Some(WantedGroups::Held), now);
        let mut held: Vec<_> = held.iter().map(|view| &*view.group.name).collect();
        held.sort_unstable();
        let mut expected = model.held_groups();
        expected.sort_unstable();
        assert_eq!(held, expected, "which groups are held");
        for m in &model.msgs {
            let next = queue
                .explain(&m.id, now)
                .map(|told| told.code == Code::Next);
            let gives = model.state_of(m) == State::Ready
                && model.paused_until.is_none()
                && model.allowance(false) > 0
                && model.lets_out(m.group, false)
                && m.group.is_none_or(|number| {
                    model
                        .next_of_group(number)
                        .is_some_and(|head| head.seq == m.seq)
                });
            assert_eq!(next, Some(gives), "whether {} comes next", m.seq);
        }
    }
}
