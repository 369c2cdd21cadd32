//! The state that a client can see of a queue, and of its model.

use crate::message::after::Counts;
use crate::message::errors::FailedAttempt;
use crate::message::score::Score;
use crate::message::state::{Reason, State, StoredState};
use crate::message::Message;
use crate::queue::inspect::list::Listing;
use crate::queue::model::batches::{after_of, batch_of};
use crate::queue::model::{Model, Msg};
use crate::queue::Queue;
use crate::{Millis, Receipt, Seq, NEVER};

/// The fields that a client can see of one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    seq: Seq,
    id: String,
    bytes: usize,
    state: State,
    due: Millis,
    due_at: Millis,
    score: Score,
    attempt: u32,
    failures: u32,
    timeouts: u32,
    errors: Vec<FailedAttempt>,
    note: Vec<u8>,
    first_sent_at: Millis,
    receipt: Receipt,
    lease_until: Millis,
    ended_at: Millis,
    reason: Option<Reason>,
    batch: Option<Vec<u8>>,
    after: Option<(Vec<u8>, Counts)>,
    /// Payload bytes of the message that waits for the end of its run, and the time since when it
    /// waits.
    rerun: Option<(usize, Millis)>,
    parked_since: Option<Millis>,
    signal: Option<Vec<u8>>,
}

fn seen_of_queue(queue: &Queue, seq: Seq, message: &Message, now: Millis) -> Seen {
    let view = queue.view_of(seq, message, queue.content(message), now);
    let running = message.stored == StoredState::Running;
    Seen {
        seq,
        id: String::from_utf8_lossy(queue.id_of(seq, message).as_bytes()).into(),
        bytes: message.payload_len() as usize,
        state: queue.state_of(message, now),
        due: message.due,
        due_at: message.due_at(),
        score: message.score(),
        attempt: view.attempt(),
        failures: message.failures(),
        timeouts: view.timeouts(),
        errors: message.errors().to_vec(),
        first_sent_at: queue.first_sent_at(seq).unwrap_or(NEVER),
        note: message.note().unwrap_or_default().to_vec(),
        receipt: message.receipt(),
        lease_until: view.lease_until().filter(|_| running).unwrap_or(NEVER),
        ended_at: message.ended_at(),
        reason: view.reason(),
        batch: queue.batch_of(seq).map(Into::into),
        after: queue
            .after_of(message)
            .map(|(batch, counts)| (batch.into(), counts)),
        rerun: message
            .rerun()
            .map(|rerun| (rerun.payload.len(), rerun.first_at)),
        parked_since: message.is_parked().then(|| message.held_since()),
        signal: message.signal().map(Into::into),
    }
}

/// Every message of a model, as a client sees it.
pub fn seen_of_model(model: &Model) -> Vec<Seen> {
    let seen = |m: &Msg| Seen {
        seq: m.seq,
        id: String::from_utf8_lossy(&m.id).into(),
        bytes: m.payload.len(),
        state: model.state_of(m),
        due: m.due,
        due_at: m.due_at,
        score: m.score(),
        attempt: m.attempt,
        failures: m.failures,
        timeouts: m.timeouts,
        errors: m.errors.clone(),
        first_sent_at: m.first_sent_at,
        note: m.note.clone(),
        receipt: m.receipt,
        lease_until: match m.stored {
            StoredState::Running => m.lease_until,
            _ => NEVER,
        },
        ended_at: m.ended_at,
        reason: m.reason,
        batch: batch_of(&m.choices).map(Into::into),
        after: after_of(&m.choices).map(|after| match m.stored {
            StoredState::Held if m.parked_at.is_none() => {
                (after.batch.to_vec(), model.counts(&after.batch))
            }
            _ => (after.batch.to_vec(), m.after_counts),
        }),
        rerun: m
            .rerun
            .as_ref()
            .map(|rerun| (rerun.send.payloads[0].len(), rerun.first_at)),
        parked_since: m.parked_at,
        signal: m.signal.as_ref().map(|(text, _)| text.clone()),
    };
    model.msgs.iter().map(seen).collect()
}

/// Every message of a queue, as a client sees it at `now`.
pub fn all_seen(queue: &Queue, now: Millis) -> Vec<Seen> {
    let seqs = queue.state.store.seqs().into_iter();
    let messages = seqs.filter_map(|seq| Some((seq, queue.message(seq)?)));
    let mut seen: Vec<Seen> = messages
        .map(|(seq, message)| seen_of_queue(queue, seq, message, now))
        .collect();
    seen.sort_unstable_by_key(|seen| seen.seq);
    seen
}

/// All messages of a state, listed three at a time.
pub fn listed(queue: &Queue, state: State, reverse: bool, now: Millis) -> Vec<Seq> {
    let mut listing = Listing {
        state,
        cursor: None,
        reverse,
        count: 3,
        group: None,
        label: None,
    };
    let mut all = Vec::new();
    loop {
        let (next, found) = queue.list(listing, now);
        all.extend(found);
        listing.cursor = next;
        if next.is_none() {
            return all;
        }
    }
}

/// Checks that two queues look the same to clients.
pub fn assert_same(left: &Queue, right: &Queue, now: Millis) {
    assert_eq!(all_seen(left, now), all_seen(right, now));
    assert_eq!(left.totals(), right.totals());
    assert_eq!(left.bytes(), right.bytes());
    assert_eq!(left.peek(100, now), right.peek(100, now), "what comes next");
    for state in State::ALL {
        assert_eq!(left.count(state), right.count(state), "count of {state:?}");
    }
}
