//! Notes and results: each stays with the message that it was left with.

use std::collections::HashMap;

use super::step::Step;
use dq_queue::message::state::State;
use dq_queue::{Op, Queue, Seq};

/// The notes that were left with messages.
#[derive(Default)]
pub struct Notes(HashMap<Seq, Vec<u8>>);

impl Notes {
    /// Forgets all notes.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Checks the notes of the messages that an operation names, and remembers them.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        let (Op::Touch { note, .. } | Op::Nack { note, .. }, Some(_)) = (step.op, step.done) else {
            return Ok(());
        };
        let Some(note) = note else { return Ok(()) };
        for (_, seq) in &step.before.unsure {
            self.0.remove(seq);
        }
        for named in &step.before.named {
            self.0.insert(named.seq, note.to_vec());
            self.check_one(step.queue, named.seq)?;
        }
        Ok(())
    }

    /// Checks the note of a message.
    pub fn check_one(&self, queue: &Queue, seq: Seq) -> Result<(), String> {
        let (Some(note), Some(message)) = (self.0.get(&seq), queue.message(seq)) else {
            return Ok(());
        };
        match message.note().unwrap_or_default() == &**note {
            true => Ok(()),
            false => Err(format!("{seq} does not have the note that was left")),
        }
    }

    /// Checks the notes of all messages.
    pub fn check_all(&mut self, queue: &Queue) -> Result<(), String> {
        self.0.retain(|seq, _| queue.message(*seq).is_some());
        self.0
            .keys()
            .try_for_each(|seq| self.check_one(queue, *seq))
    }
}

/// Checks that each record has the result of its ACK.
pub fn check_results(step: &Step<'_>) -> Result<(), String> {
    let result_of = |index: usize| match step.op {
        Op::Ack { result, .. } | Op::AckCost { result, .. } => Some(result.as_deref()),
        Op::AckSend(ack_send) => Some(ack_send.result.as_deref()),
        Op::AckEach { results, .. } => Some(results.get(index).map(|result| &**result)),
        Op::Fetch(fetch) => Some(fetch.results.get(index).map(|result| &**result)),
        _ => None,
    };
    for named in &step.before.named {
        let Some(result) = result_of(named.index) else {
            return Ok(());
        };
        let Some(view) = step.queue.view(named.seq, step.now) else {
            continue;
        };
        if view.state != State::Finished {
            return Err(format!("{} was acked and has not finished", named.seq));
        }
        let texts = view.message.texts();
        if texts.and_then(|texts| texts.result.as_deref()) != result {
            return Err(format!("{} does not have its result", named.seq));
        }
    }
    Ok(())
}
