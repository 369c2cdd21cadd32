//! The rules of named batches: their counts are those of their messages, they hold
//! exactly the right messages, and they release each once.

use std::collections::{BTreeMap, HashSet};

use super::before::is_live;
use super::step::Step;
use dq_queue::message::after::{Batching, Counts, OnFail};
use dq_queue::message::state::{Reason, State, StoredState};
use dq_queue::{Op, Queue, Seq};

/// The messages that wait for a batch, and those that have waited.
#[derive(Default)]
pub struct HeldMessages {
    /// The held messages, each with the batch and the ONFAIL that its sender named.
    held: BTreeMap<Seq, (Box<[u8]>, OnFail)>,
    released: HashSet<Seq>,
}

impl HeldMessages {
    /// Forgets all messages.
    pub fn forget(&mut self) {
        *self = HeldMessages::default();
    }

    /// Checks that messages are in the batches that their senders named, are held as long
    /// as these are open, and are released once.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        self.check_held(step)?;
        // An earlier message of the same command may have ended the messages that this one waits
        // for.
        let is_single = matches!(step.op, Op::Send(send) if send.payloads.len() == 1);
        for (send, seq, before) in step.added() {
            let Some(batching) = send.choices.batching() else {
                continue;
            };
            check_names(step.queue, seq, batching)?;
            let Some(after) = &batching.after else {
                continue;
            };
            // The message that is replaced may have been the last one of its batch.
            let has_replaced = before.has_record || send.replace && before.has_id.is_some();
            if let Some(counts) = before.of_batch.filter(|_| is_single && !has_replaced) {
                check_begin(step, seq, after.on_fail, &counts)?;
            }
            if state(step, seq) == Some(State::Held) {
                self.held.insert(seq, (after.batch.clone(), after.on_fail));
            }
        }
        let queue = step.queue;
        self.released.retain(|seq| queue.message(*seq).is_some());
        match self
            .released
            .iter()
            .find(|seq| state(step, **seq) == Some(State::Held))
        {
            Some(seq) => Err(format!("{seq} is held again")),
            None => Ok(()),
        }
    }

    /// Checks that each held message must be held, and that each released one need not be.
    fn check_held(&mut self, step: &Step<'_>) -> Result<(), String> {
        let mut gone = Vec::new();
        for (seq, (batch, on_fail)) in &self.held {
            match state(step, *seq) {
                Some(State::Held) if is_settled(step) => {
                    let named = step
                        .queue
                        .batches()
                        .and_then(|batches| batches.named(batch));
                    let counts = named.map_or(Counts::default(), |named| named.counts);
                    if !must_hold(*on_fail, &counts) {
                        return Err(format!("{seq} is held by a batch that holds no longer"));
                    }
                }
                Some(State::Held) => {}
                Some(state) => {
                    gone.push(*seq);
                    check_release(step, *seq, *on_fail, state)?;
                }
                None => gone.push(*seq),
            }
        }
        for seq in gone {
            self.held.remove(&seq);
            if state(step, seq).is_some() {
                self.released.insert(seq);
            }
        }
        Ok(())
    }
}

/// The state of a message. One that is parked, or that its children hold, waits for its batch
/// no longer.
fn state(step: &Step<'_>, seq: Seq) -> Option<State> {
    let view = step.queue.view(seq, step.now)?;
    match view.message.is_parked() || view.message.is_held_by_children() {
        true => Some(State::Delayed),
        false => Some(view.state),
    }
}

/// Whether all messages have been released that must be.
fn is_settled(step: &Step<'_>) -> bool {
    let batches = step.queue.batches();
    step.caught_up && batches.is_none_or(|batches| batches.released.is_empty())
}

/// Whether a batch with these messages holds a message.
fn must_hold(on_fail: OnFail, counts: &Counts) -> bool {
    match on_fail {
        OnFail::Hold => counts.unended() > 0,
        OnFail::Go => counts.live() > 0,
        OnFail::Die => counts.live() > 0 && counts.dead == 0,
    }
}

/// Whether a message does not exist or has finished or been cancelled.
pub fn has_ended(queue: &Queue, seq: Seq) -> bool {
    let stored = queue.message(seq).map(|message| message.stored);
    matches!(
        stored,
        None | Some(StoredState::Finished | StoredState::Cancelled)
    )
}

/// Checks that a new message is in its batch and waits for the batch that its AFTER names.
fn check_names(queue: &Queue, seq: Seq, batching: &Batching) -> Result<(), String> {
    let Some(message) = queue.message(seq) else {
        return Ok(());
    };
    if queue.batch_of(seq) != batching.batch.as_deref() {
        return Err(format!("{seq} is not in its batch"));
    }
    let after = queue.after_of(message).map(|(name, _)| name);
    match after == batching.after.as_ref().map(|after| &*after.batch) {
        true => Ok(()),
        false => Err(format!("{seq} does not wait for its batch")),
    }
}

/// Checks that a new message is held, or dead, exactly if its batch demands it.
fn check_begin(step: &Step<'_>, seq: Seq, on_fail: OnFail, counts: &Counts) -> Result<(), String> {
    let Some(view) = step.queue.view(seq, step.now) else {
        return Ok(());
    };
    if view.reason() == Some(Reason::Expired) {
        return Ok(());
    }
    let dies = on_fail.dies_of(counts);
    let is_held = state(step, seq) == Some(State::Held);
    if dies != (view.reason() == Some(Reason::Batch)) {
        return Err(format!(
            "{seq} is {:?} after a batch with {counts:?}",
            view.state
        ));
    }
    match is_held == must_hold(on_fail, counts) {
        true => Ok(()),
        false => Err(format!(
            "{seq} is {:?} after a batch with {counts:?}",
            view.state
        )),
    }
}

/// Checks that a message that is held no longer was let go.
fn check_release(step: &Step<'_>, seq: Seq, on_fail: OnFail, state: State) -> Result<(), String> {
    let view = step.queue.view(seq, step.now);
    let reason = view.and_then(|view| view.reason());
    if reason == Some(Reason::Batch) && on_fail != OnFail::Die {
        return Err(format!("{seq} died of its batch"));
    }
    if !is_live(state) || step.is_redrive() {
        return Ok(());
    }
    let name = step.queue.message(seq).and_then(|message| message.after());
    let name = name.map(|after| &after.batch);
    let mut members = step.before.holding.iter();
    let holds = |member: &&(Seq, Box<[u8]>)| {
        let is_dead = || {
            let message = step.queue.message(member.0);
            message.is_some_and(|message| message.stored == StoredState::Dead)
        };
        let goes = on_fail == OnFail::Go && is_dead();
        Some(&member.1) == name && !has_ended(step.queue, member.0) && !goes
    };
    match members.find(holds) {
        Some((member, _)) => Err(format!("{seq} was released before {member} had ended")),
        None => Ok(()),
    }
}

/// Checks the counts of all batches against their messages, and why each held message is
/// held. O(messages in batches).
///
/// # Errors
/// A sentence that says which promise is broken.
pub fn check(queue: &Queue) -> Result<(), String> {
    let Some(batches) = queue.batches() else {
        return Ok(());
    };
    let members = batches.members.all();
    for (number, named) in batches.iter() {
        let of_batch = members.iter().filter(|(_, batch)| *batch == number);
        let mut counts = Counts {
            finished: named.counts.finished,
            cancelled: named.counts.cancelled,
            ..Counts::default()
        };
        for (seq, _) in of_batch {
            let stored = queue.message(*seq).map(|message| message.stored);
            match stored.ok_or("a message of a batch is not there")? {
                StoredState::Running => counts.running += 1,
                StoredState::Dead => counts.dead += 1,
                StoredState::Finished | StoredState::Cancelled => {}
                _ => counts.pending += 1,
            }
        }
        if counts != named.counts {
            let told = named.counts;
            return Err(format!(
                "the batch {number} counts {told:?} in place of {counts:?}"
            ));
        }
        for on_fail in OnFail::ALL {
            let held = named.held.get(on_fail as usize);
            let is_any = held.is_some_and(|held| !held.is_empty());
            let may_hold = named.holds(on_fail) && !on_fail.dies_of(&counts);
            if is_any && !may_hold {
                return Err(format!("the batch {number} holds on, {on_fail:?}"));
            }
        }
    }
    let released: usize = batches.released.iter().map(|some| some.all().len()).sum();
    let held: u64 = batches.iter().map(|(_, named)| named.held_count()).sum();
    let by_batch = queue.parts().messages().filter(|numbered| {
        let message = numbered.message;
        let is_otherwise = message.is_parked() || message.is_held_by_children();
        message.stored == StoredState::Held && !is_otherwise
    });
    match by_batch.count() as u64 == held + released as u64 {
        true => Ok(()),
        false => Err("a message is held by nothing".into()),
    }
}
