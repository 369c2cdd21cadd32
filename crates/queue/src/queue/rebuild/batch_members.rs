//! Named batches and held messages in a queue that is built from its parts.

use super::{Builder, Checked};
use crate::collections::ordered::OrderedSet;
#[cfg(any(test, feature = "validate"))]
use crate::index::batches::Batches;
use crate::index::batches::Released;
use crate::limits::{ensure, name, Invalid};
use crate::message::after::{Counts, OnFail};
use crate::message::state::StoredState;
use crate::message::Message;
use crate::queue::Queue;
use crate::{Millis, Seq};

/// Messages that are held no longer and have not been released yet, in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedPart {
    /// The number of the batch that held them.
    pub batch: Seq,
    /// When they were released, in Unix ms.
    pub at: Millis,
    /// Whether the messages die.
    pub dies: bool,
    /// The messages of the batch at that moment.
    pub counts: Counts,
    /// The messages that are held: their numbers, in order.
    pub held: Vec<Seq>,
}

impl ReleasedPart {
    /// The part in the form of a snapshot.
    pub fn of(released: &Released) -> ReleasedPart {
        ReleasedPart {
            batch: released.batch,
            at: released.at,
            dies: released.dies,
            counts: released.counts,
            held: released.all(),
        }
    }
}

fn exact(counts: &Counts) -> Checked {
    let Counts {
        pending,
        running,
        dead,
        finished,
        cancelled,
    } = *counts;
    let all = [pending, running, dead, finished, cancelled];
    all.into_iter().try_for_each(crate::limits::exact)
}

impl Builder {
    /// Adds a named batch with the number of the message that first joined it, and how
    /// many messages of it have finished and were cancelled since it was opened.
    /// Messages refer to it by the number of batches added before it.
    ///
    /// Errors: a batch has this name or number already.
    pub fn named_batch(
        &mut self,
        batch: &[u8],
        number: Seq,
        finished: u64,
        cancelled: u64,
    ) -> Checked {
        name(batch)?;
        let counts = Counts {
            finished,
            cancelled,
            ..Counts::default()
        };
        exact(&counts)?;
        ensure(
            (1..self.queue.state.next_seq).contains(&number),
            "a batch was opened by a message that was never sent",
        )?;
        let batches = self.queue.state.seldom.batches.get_or_insert_default();
        ensure(
            batches.find(batch).is_none() && batches.get(number).is_none(),
            "two batches have the same name or number",
        )?;
        batches.add(number, batch);
        if let Some(named) = batches.get_mut(number) {
            named.counts = counts;
        }
        self.named_batches.push(number);
        Ok(())
    }

    /// Adds messages that are held no longer and have not been released yet.
    pub fn released(&mut self, part: ReleasedPart) -> Checked {
        crate::limits::exact(part.at)?;
        exact(&part.counts)?;
        ensure(!part.held.is_empty(), "a release must have a message")?;
        self.released.push(part);
        Ok(())
    }

    /// Counts a message in its batch.
    ///
    /// Errors: there is no such batch.
    pub(super) fn enter_named_batch(&mut self, seq: Seq, message: &Message, batch: u64) -> Checked {
        let number = usize::try_from(batch).ok();
        let number = number.and_then(|number| self.named_batches.get(number).copied());
        let batches = self.queue.state.seldom.batches_mut();
        let found = batches.zip(number).and_then(|(batches, number)| {
            batches.members.insert(seq, number);
            batches.get_mut(number)
        });
        let named = found.ok_or(Invalid("a message names a batch that is missing"))?;
        named.members += 1;
        match message.stored {
            StoredState::Running => named.counts.running += 1,
            StoredState::Dead | StoredState::Leaving => named.counts.dead += 1,
            StoredState::Finished | StoredState::Cancelled => {}
            _ => named.counts.pending += 1,
        }
        Ok(())
    }
}

/// Enters the held messages in the indexes, after all messages are in the store.
///
/// Errors: a message is held though nothing holds it, or a batch has no message.
pub(super) fn enter_held(queue: &mut Queue, held: Vec<Seq>, parts: Vec<ReleasedPart>) -> Checked {
    let mut left = OrderedSet::from_sorted(held.into_iter().map(|seq| (seq, ())));
    for part in parts {
        let mut released = Released {
            batch: part.batch,
            at: part.at,
            dies: part.dies,
            counts: part.counts,
            held: Default::default(),
        };
        for seq in part.held {
            ensure(
                left.remove(&seq).is_some(),
                "a released message must be held",
            )?;
            let on_fail = on_fail_of(queue, seq)? as usize;
            if let Some(of_kind) = released.held.get_mut(on_fail) {
                of_kind.insert(seq, ());
            }
            queue.state.seldom.batches.get_or_insert_default();
            queue.enter_held_by(seq, part.batch);
            queue.note_dying(seq);
        }
        if let Some(batches) = queue.state.seldom.batches_mut() {
            batches.released.push_back(released);
        }
    }
    for (seq, ()) in left.iter() {
        if queue.state.store.get(seq).is_some_and(Message::is_parked) {
            queue.enter_park(seq);
            continue;
        }
        if queue
            .state
            .store
            .get(seq)
            .is_some_and(Message::is_held_by_children)
        {
            queue.enter_children(seq);
            continue;
        }
        let on_fail = on_fail_of(queue, seq)?;
        let message = queue.state.store.get(seq);
        let after = message.and_then(Message::after);
        let batches = queue.state.seldom.batches.as_ref();
        let holder = batches
            .zip(after)
            .and_then(|(batches, after)| batches.find(&after.batch));
        let holder = holder.ok_or(Invalid("a held message waits for a batch that is missing"))?;
        let named = batches.and_then(|batches| batches.get(holder));
        ensure(
            named.is_some_and(|named| named.holds(on_fail) && !on_fail.dies_of(&named.counts)),
            "a held message waits for a batch that has ended",
        )?;
        queue.hold_by(seq, holder);
        queue.note_dying(seq);
    }
    let Some(batches) = queue.state.seldom.batches_mut() else {
        return Ok(());
    };
    let numbers: Vec<Seq> = batches.iter().map(|(number, _)| number).collect();
    for number in numbers {
        let named = batches.get(number);
        ensure(
            named.is_some_and(|named| {
                let Counts {
                    finished,
                    cancelled,
                    ..
                } = named.counts;
                named.members > 0 && (named.is_open() || finished + cancelled == 0)
            }),
            "a batch has no messages, or has ended and still counts them",
        )?;
        batches.settle(number);
    }
    Ok(())
}

fn on_fail_of(queue: &Queue, seq: Seq) -> Result<OnFail, Invalid> {
    let after = queue.state.store.get(seq).and_then(Message::after);
    let after = after.ok_or(Invalid("a held message must have AFTER"))?;
    Ok(after.on_fail)
}

/// The state of all batches, as text that is equal for equal queues.
#[cfg(any(test, feature = "validate"))]
pub(super) fn told(batches: Option<&Batches>) -> String {
    let Some(batches) = batches else {
        return String::new();
    };
    let all = batches.iter().map(|(number, named)| {
        let held = named
            .held
            .each_ref()
            .map(|held| held.iter().collect::<Vec<_>>());
        (
            (number, &named.name, named.members, named.counts),
            (held, &named.waits_for, batches.find(&named.name)),
        )
    });
    let released = batches.released.iter().map(|released| {
        let Released {
            batch,
            at,
            dies,
            counts,
            ..
        } = *released;
        (batch, at, dies, counts, released.all())
    });
    format!(
        "{:?}",
        (
            all.collect::<Vec<_>>(),
            batches.open.iter().collect::<Vec<_>>(),
            batches.members.all(),
            &batches.touched,
            released.collect::<Vec<_>>(),
        )
    )
}
