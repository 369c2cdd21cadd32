//! TOKEN: a FETCH whose reply was lost gives the same deliveries once more.

use crate::consumer::TokenDelivery;
use crate::op::{Applied, Delivered, Deliveries, Done, Fetch};
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{ConsumerIx, Millis};

impl Queue {
    /// Whether this FETCH repeats the last delivery of its consumer, of which
    /// something still runs, even after the acks of the FETCH. O(messages of that
    /// delivery * log n).
    pub fn can_repeat(&self, fetch: &Fetch, now: Millis) -> bool {
        let (Some(name), Some(token)) = (&fetch.consumer, &fetch.token) else {
            return false;
        };
        let last = self.state.consumers.token_delivery_of(name);
        last.filter(|last| *last.token == **token)
            .is_some_and(|last| {
                last.receipts().any(|receipt| {
                    self.current(receipt, now).is_some() && !fetch.acks.contains(&receipt)
                })
            })
    }

    /// The messages that still run of the last delivery of this consumer, if its FETCH
    /// had this token. Their leases stay as they are.
    pub(in crate::queue) fn repeat(
        &self,
        consumer: ConsumerIx,
        token: &[u8],
        now: Millis,
    ) -> Deliveries {
        let last = self.state.consumers.token_delivery(consumer);
        let Some(last) = last.filter(|last| *last.token == *token) else {
            return Deliveries::new();
        };
        let running = last.receipts().filter_map(|receipt| {
            let seq = self.current(receipt, now)?.seq;
            Some(Delivered {
                seq,
                receipt,
                attempt: self.state.store.get(seq)?.history.attempt(),
                gone: None,
            })
        });
        running.collect()
    }

    /// Records the deliveries of a FETCH, so that it can be repeated if it has a token.
    /// If it has none, the last delivery of its consumer cannot be repeated.
    pub(in crate::queue) fn record_token(
        &mut self,
        consumer: ConsumerIx,
        fetch: &Fetch,
        given: &[Delivered],
    ) {
        let last = self.state.consumers.token_delivery(consumer);
        let last = last.filter(|last| last.applied.is_some());
        let last = last.filter(|_| !seeded(Bug::TokenForgetsEffects));
        if fetch.token.is_none() && last.is_some() {
            // A repeated call gets the replies of APPLY until the consumer's next token.
            return;
        }
        let last = last.filter(|last| Some(&*last.token) == fetch.token.as_deref());
        let applied = last.and_then(|last| last.applied.clone());
        let token = fetch.token.as_deref().zip(given.first());
        let delivery = token.map(|(token, first)| TokenDelivery {
            token: token.into(),
            first: first.receipt,
            count: given.len() as u64,
            applied,
        });
        self.state.consumers.set_token_delivery(consumer, delivery);
    }

    /// The effects that the last FETCH of this consumer has applied, if it had this token.
    pub fn applied(&self, consumer: &[u8], token: &[u8]) -> Option<&[u8]> {
        let last = self.state.consumers.token_delivery_of(consumer);
        let last = last.filter(|last| *last.token == *token)?;
        last.applied.as_deref()
    }

    /// Keeps what a FETCH with a token has applied, before it delivers anything.
    pub(in crate::queue) fn note_applied(&mut self, applied: &Applied<'_>, now: Millis) -> Done {
        let consumer = self.state.consumers.see(&applied.consumer, now);
        let delivery = TokenDelivery {
            token: (*applied.token).into(),
            first: 0,
            count: 0,
            applied: Some((*applied.outcomes).into()),
        };
        self.state
            .consumers
            .set_token_delivery(consumer, Some(delivery));
        self.notes.effects.changed = true;
        Done::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Moment, Op, Send};
    use crate::settings::{Clock, Settings};
    use crate::Receipt;

    const START: Millis = 1_000;

    fn fetch(token: Option<&'static [u8]>) -> Op<'static> {
        Op::fetch(Fetch {
            consumer: Some(b"w"[..].into()),
            token: token.map(Into::into),
            ..Fetch::one()
        })
    }

    fn receipts(queue: &mut Queue, op: &Op, now: Millis) -> Vec<Receipt> {
        match queue.apply(op, Moment::at_ms(now)) {
            Ok(Done::Fetched(given)) => given.iter().map(|one| one.receipt).collect(),
            other => unreachable!("{other:?}"),
        }
    }

    /// A queue with one message that was fetched with a token, and its receipt.
    fn fetched() -> (Queue, Receipt) {
        let mut queue = Queue::new(Settings::default(), Clock::Server, 0);
        queue
            .apply(&Op::Send(Send::plain(b"a")), Moment::at_ms(START))
            .unwrap();
        let given = receipts(&mut queue, &fetch(Some(b"t")), START);
        (queue, given[0])
    }

    #[test]
    fn a_token_is_forgotten_with_its_consumer() {
        let (mut queue, receipt) = fetched();
        let ack = Op::Ack {
            receipts: [receipt].into_iter().collect(),
            result: None,
        };
        queue.apply(&ack, Moment::at_ms(START)).unwrap();
        assert!(queue.state.consumers.has_tokens());
        queue.advance(START + crate::consumer::FORGET_AFTER, u64::MAX);
        assert!(!queue.state.consumers.has_tokens());
    }

    #[test]
    fn a_delivery_without_a_token_takes_the_place_of_one_with_a_token() {
        let (mut queue, _) = fetched();
        assert!(receipts(&mut queue, &fetch(None), START).is_empty());
        assert!(queue.state.consumers.has_tokens(), "nothing was delivered");
        queue
            .apply(&Op::Send(Send::plain(b"b")), Moment::at_ms(START))
            .unwrap();
        assert_eq!(receipts(&mut queue, &fetch(None), START).len(), 1);
        assert!(!queue.state.consumers.has_tokens());
    }

    #[test]
    fn ends_of_leases_are_remembered_only_while_they_run() {
        let (mut queue, receipt) = fetched();
        let receipts_of = [receipt].into_iter().collect();
        let grace = Op::Grace {
            ms: 10,
            receipts: receipts_of,
        };
        queue.apply(&grace, Moment::at_ms(START)).unwrap();
        let end = START + Settings::default().lease;
        assert_eq!(queue.old_ends().collect::<Vec<_>>(), [(receipt, end)]);
        let again = receipts(&mut queue.clone(), &fetch(Some(b"t")), START + 9);
        assert_eq!(again, [receipt]);
        queue.advance(START + 10, u64::MAX);
        assert_eq!(queue.old_ends().count(), 0);
    }
}
