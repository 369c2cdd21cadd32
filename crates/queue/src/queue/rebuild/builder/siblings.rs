//! The children in a queue that is built from its parts.

use super::Builder;
use crate::limits::{ensure, parent, Invalid};
use crate::message::kin::Parent;
use crate::message::state::StoredState;
use crate::queue::rebuild::Checked;
use crate::{Queue, Seq};

impl Builder {
    /// Adds a set of siblings with the number of the message that was its first. Messages
    /// refer to it by the number of sets added before it.
    ///
    /// Errors: a set has this parent or number already.
    pub fn siblings(&mut self, number: Seq, of: &Parent) -> Checked {
        parent(of)?;
        ensure(
            (1..self.queue.state.next_seq).contains(&number),
            "the first child of a parent was never sent",
        )?;
        let all = self.queue.state.seldom.siblings.get_or_insert_default();
        ensure(
            all.find(of).is_none() && all.get(number).is_none(),
            "two sets of siblings have the same parent or number",
        )?;
        all.add(number, of);
        self.siblings.push(number);
        Ok(())
    }

    /// Counts a message in its set.
    ///
    /// Errors: there is no such set.
    pub(super) fn enter_set(&mut self, seq: Seq, stored: StoredState, set: u64) -> Checked {
        let number = usize::try_from(set).ok();
        let number = number.and_then(|number| self.siblings.get(number).copied());
        let all = self.queue.state.seldom.siblings_mut();
        let found = all.zip(number).and_then(|(all, number)| {
            all.members.insert(seq, number);
            all.get_mut(number)
        });
        let siblings = found.ok_or(Invalid("a message names a parent that is missing"))?;
        siblings.members += 1;
        match stored {
            StoredState::Finished | StoredState::Cancelled => {}
            StoredState::Dead | StoredState::Leaving => siblings.dead += 1,
            _ => siblings.live += 1,
        }
        Ok(())
    }
}

/// Checks that each set has a message.
pub(super) fn check_all(queue: &Queue) -> Checked {
    let mut all = queue.siblings().into_iter().flat_map(|all| all.iter());
    ensure(
        all.all(|(_, siblings)| siblings.members > 0),
        "a set of siblings has no message",
    )
}
