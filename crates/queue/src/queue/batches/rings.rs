//! Whether batches would wait for each other if messages were sent.

use crate::error::Error;
use crate::index::batches::{Batches, Edge};
use crate::message::after::OnFail;
use crate::message::Message;
use crate::op::Send;
use crate::queue::Queue;
use crate::Seq;

/// Maximum number of steps in which SEND searches for batches that wait for each other.
const SEARCHED: usize = 64;

/// A message that is sent earlier in the same operation, and is in a batch.
#[derive(Debug, Clone, Copy)]
struct Planned<'a> {
    /// Its id, if it has one.
    id: Option<&'a [u8]>,
    batch: &'a [u8],
    /// The batch that will hold the message, if there is one.
    after: Option<&'a [u8]>,
}

/// The batches that wait for others once the messages so far are sent.
#[derive(Debug)]
pub(in crate::queue) struct Rings<'q, 'a> {
    queue: &'q Queue,
    planned: Vec<Planned<'a>>,
    /// Batches that a message has left because it is replaced, one entry each.
    left: Vec<&'q [u8]>,
    /// Pairs of batches with one message fewer that makes the first batch wait for the
    /// second.
    without: Vec<Edge<'q>>,
}

impl<'q, 'a> Rings<'q, 'a> {
    /// Starts with the present state of the queue.
    pub fn new(queue: &'q Queue) -> Rings<'q, 'a> {
        Rings {
            queue,
            planned: Vec::new(),
            left: Vec::new(),
            without: Vec::new(),
        }
    }

    /// Adds the message of a SEND. It replaces the pending message `replaced`, if that is
    /// given. O(steps of the search).
    ///
    /// Errors: two batches would wait for each other, directly or in a ring that is
    /// found in a few steps.
    pub fn add(&mut self, send: &'a Send, replaced: Option<Seq>) -> Result<(), Error> {
        let id = send.id.as_deref();
        if let Some(seq) = replaced {
            self.leave(seq);
        }
        if id.is_some() {
            self.planned.retain(|planned| planned.id != id);
        }
        let Some(batching) = send.choices.batching() else {
            return Ok(());
        };
        let Some(batch) = batching.batch.as_deref() else {
            return Ok(());
        };
        let after = batching.after.as_ref();
        let after = after.filter(|after| self.would_hold(&after.batch, after.on_fail));
        let after = after.map(|after| &*after.batch);
        if let Some(holder) = after {
            if self.is_waiting(holder, batch) {
                return Err(Error::Ring);
            }
        }
        self.planned.push(Planned { id, batch, after });
        Ok(())
    }

    /// Removes a replaced message from its batch.
    fn leave(&mut self, seq: Seq) {
        let Some(batch) = self.queue.batch_of(seq) else {
            return;
        };
        self.left.push(batch);
        let message = self.queue.message(seq);
        if let Some(after) = message.and_then(Message::held_after) {
            self.without.push((batch, &after.batch));
        }
    }

    /// Whether a batch would hold a message with this ONFAIL.
    fn would_hold(&self, batch: &[u8], on_fail: OnFail) -> bool {
        let named = self
            .queue
            .batches()
            .and_then(|batches| batches.named(batch));
        let counts = named.map(|named| named.counts).unwrap_or_default();
        if on_fail.dies_of(&counts) {
            return false;
        }
        let holding = match on_fail {
            OnFail::Go => counts.live(),
            OnFail::Hold | OnFail::Die => counts.unended(),
        };
        let joined = self.planned.iter().filter(|planned| planned.batch == batch);
        let left = self.left.iter().filter(|left| **left == batch);
        holding + joined.count() as u64 > left.count() as u64
    }

    fn is_waiting(&self, from: &[u8], to: &[u8]) -> bool {
        let edges = self.planned.iter();
        let edges: Vec<Edge> = edges
            .filter_map(|planned| Some((planned.batch, planned.after?)))
            .collect();
        let none = Batches::default();
        let batches = self.queue.batches().unwrap_or(&none);
        let way = batches.way(from, to, &edges, &self.without, SEARCHED);
        way.is_some()
    }
}
