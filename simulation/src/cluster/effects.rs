//! Effects of acknowledgements on plain keys. In a cluster that counts, each acknowledgement adds to
//! a counter, which must always be the number of acknowledged messages, on every server.

use super::Cluster;
use crate::disk::Logged;
use dq_queue::codec::effect::encode;
use dq_queue::effect::plain::PlainKeys;
use dq_queue::effect::{Effect, Holds, Repeat, Verb};
use dq_queue::{Done, Millis, Op, Queue};

/// The counter of acknowledged messages.
const COUNTER: &[u8] = b"n";
/// A counter that expires and begins anew.
const SHORT_LIVED: &[u8] = b"m";

/// A server's queue and its plain keys.
pub(super) type Server<'s> = (&'s Queue, &'s PlainKeys);

/// An acknowledgement with effects has one receipt, and a FETCH is none here.
pub(super) fn with_one_receipt(mut op: Op<'static>) -> Op<'static> {
    match &mut op {
        Op::Ack { receipts, .. } | Op::AckCost { receipts, .. } => receipts.truncate(1),
        Op::AckEach { receipts, results } => {
            receipts.truncate(1);
            results.truncate(1);
        }
        Op::Fetch(fetch) => {
            let fetch = fetch.to_mut();
            fetch.acks.clear();
            fetch.results.clear();
        }
        _ => {}
    }
    op
}

/// Whether an operation acknowledges messages.
pub(super) fn is_ack(op: &Op<'_>) -> bool {
    match op {
        Op::Ack { .. } | Op::AckEach { .. } | Op::AckCost { .. } => true,
        Op::AckSend(ack_send) => ack_send.receipt.is_some(),
        _ => false,
    }
}

/// Checks that a server has counted each message that was acknowledged.
///
/// # Errors
/// A sentence with both numbers.
pub(super) fn check_counter((queue, keys): Server<'_>) -> Result<(), String> {
    let (acked, counted) = (queue.totals().acked.get(), keys.count(COUNTER));
    match u64::try_from(counted) == Ok(acked) {
        true => Ok(()),
        false => Err(format!(
            "{acked} messages are acknowledged, and {counted} counted"
        )),
    }
}

/// Compares the plain keys of two servers at a time (Unix ms).
///
/// # Errors
/// They differ in what has not expired.
pub(super) fn compare(one: &PlainKeys, other: &PlainKeys, now: Millis) -> Result<(), String> {
    let [one, other] = [one, other].map(|keys| {
        let mut keys = keys.clone();
        keys.expire(now);
        keys
    });
    match one == other {
        true => Ok(()),
        false => Err(format!("the plain keys differ: {one:?} and {other:?}")),
    }
}

impl Cluster {
    /// Does the effects of an acknowledgement whose receipt was current. Returns what the log has of
    /// them.
    pub(super) fn do_effects(&mut self, op: &Op<'_>, done: Option<&Done>) -> Vec<Logged> {
        let is_acked = matches!(done, Some(Done::Count(1) | Done::AckSent(Some(_))));
        if !self.counts || !is_acked || !is_ack(op) {
            return Vec::new();
        }
        let now = self.us / 1000;
        let effect = |verb, key, words: &[&'static [u8]], span| Effect {
            verb,
            at: 0,
            key,
            words: words.to_vec(),
            span,
            max_len: None,
        };
        let effects = [
            effect(Verb::IncrBy, COUNTER, &[b"1"], None),
            effect(Verb::IncrBy, SHORT_LIVED, &[b"1"], None),
            effect(Verb::PExpire, SHORT_LIVED, &[b"40"], Some(40)),
        ];
        self.primary_keys.expire(now);
        let mut log = Vec::new();
        for effect in effects {
            let is_new = self.primary_keys.holds(effect.key) == Holds::Nothing;
            let at = i64::try_from(now).unwrap_or(i64::MAX);
            let repeat = Repeat::of(&effect, at, is_new);
            // An integer that was made here takes one more.
            self.primary_keys.repeat(effect.key, &repeat).ok();
            let mut bytes = Vec::new();
            encode(&repeat, &mut bytes);
            log.push((effect.key.to_vec(), bytes));
        }
        if self.bug.is_some_and(|bug| bug.forgets_effects) {
            log.truncate(1);
        }
        log
    }
}
