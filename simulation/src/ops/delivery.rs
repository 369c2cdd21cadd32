//! Draws deliveries, and the ways in which they are given back.

use super::{one_of, Ops};
use dq_queue::op::{Fetch, NackKind, NackPause, Paused};
use dq_queue::Op;

impl Ops<'_> {
    pub(super) fn fetch(&mut self) -> Fetch<'static> {
        let group = self.maybe(5, Self::group);
        let consumer = self.maybe(3, |a| a.name('c', 4));
        let no_ack = self.one_in(8);
        let has_token = consumer.is_some() && !no_ack;
        let acks = self.receipts(2);
        Fetch {
            count: match self.one_in(3) {
                true => self.rng.u64(1..=self.profile.batch as u64),
                false => 1,
            },
            lease: self.maybe(4, Self::some_ms),
            token: self.maybe(2, |a| a.name('t', 2)).filter(|_| has_token),
            consumer,
            per_group: match group.is_none() && self.one_in(3) {
                true => self.rng.u64(1..5),
                false => 1,
            },
            group,
            max_bytes: self.maybe(8, |a| a.rng.u64(1..100)),
            results: match self.one_in(3) {
                true => acks.iter().map(|_| self.text()).collect(),
                false => Vec::new(),
            },
            acks,
            no_ack,
        }
    }

    pub(super) fn nack(&mut self) -> Op<'static> {
        let delay = NackKind::Delay(self.ms() * *one_of(self.rng, &[1, 1, 100]));
        let kinds = [
            NackKind::Backoff,
            NackKind::Backoff,
            delay,
            NackKind::Snooze(self.some_ms()),
            NackKind::Silent,
            NackKind::Park(self.park()),
            NackKind::Fatal,
        ];
        let few_or_many = *one_of(self.rng, &[3, 3, 3, self.profile.batch]);
        Op::Nack {
            receipts: self.receipts(few_or_many),
            kind: *one_of(self.rng, &kinds),
            error: self.maybe(3, Self::text),
            random: self.rng.u64(..),
            note: self.maybe(6, Self::text),
            pause: self.maybe(12, |a| NackPause {
                of: *one_of(a.rng, &[Paused::Group, Paused::Group, Paused::Queue]),
                ms: a.some_ms(),
            }),
        }
    }
}
