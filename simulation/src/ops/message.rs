//! Draws messages: SEND, ACKSEND and SCHEDULE.

use std::num::NonZeroU64;

use smallvec::SmallVec;

use super::{one_of, Ops, PAYLOADS};
use dq_queue::message::after::{After, Batching, Counts, OnFail, Park};
use dq_queue::message::kin::{Children, Delta, Kin, Parent};
use dq_queue::message::limited::Limited;
use dq_queue::message::score::Score;
use dq_queue::message::{Choices, RareChoices};
use dq_queue::named_limits::LimitRule;
use dq_queue::op::{AckSend, Counted, CountedOne, DedupId, DueTime, NewSchedule, Send, Signal};
use dq_queue::schedule::recurrence::Recurrence;
use dq_queue::schedule::{Limits, Missed, Overlap};
use dq_queue::settings::Rate;
use dq_queue::Op;

const CRONS: [(&str, Option<&str>); 3] = [
    ("* * * * * *", None),
    ("*/5 * * * *", None),
    ("30 2 * * *", Some("Europe/Berlin")),
];

impl Ops<'_> {
    /// A small number, or one of four integers that share one double.
    fn score(&mut self) -> Option<Score> {
        match self.one_in(4) {
            true => Score::of_integer((1 << 60) + i128::from(self.rng.u8(0..4))),
            false => Score::of_double(self.rng.f64() * 6.0 - 3.0),
        }
    }

    pub(super) fn choices(&mut self) -> Choices {
        let limited = self.maybe(self.profile.limits, Self::limited);
        if !self.one_in(4) {
            let mut choices = Choices::default();
            choices.change_rare(|rare| rare.limited = limited);
            return choices;
        }
        let headers = match self.one_in(4) {
            true => vec![(self.text().as_ref().into(), self.text().as_ref().into())],
            false => Vec::new(),
        };
        let ttl = self.maybe(3, Self::ms);
        let mut choices = Choices {
            score: self.maybe(3, Self::score).flatten(),
            lease: self.maybe(3, Self::some_ms).and_then(NonZeroU64::new),
            retries: self.maybe(3, |a| a.rng.i64(-1..3)),
            backoff: self.maybe(3, Self::backoff),
            ttl,
            label: self.maybe(4, |a| a.id().as_ref().into()),
            headers: headers.into(),
            rare: None,
        };
        if self.one_in(2) {
            let rare = RareChoices {
                retain: self.maybe(2, Self::ms),
                expire_at: self.maybe(3, |a| a.now + a.ms()).filter(|_| ttl.is_none()),
                max_wait: self.maybe(3, Self::ms),
                batching: self.maybe(2, Self::batching),
                max_timeouts: self.maybe(3, |a| a.rng.u64(0..4)),
                errors: self.maybe(3, |a| a.rng.u8(0..4)),
                limited,
                kin: self.maybe(3, Self::kin),
            };
            choices.change_rare(|own| *own = rare);
        }
        choices
    }

    fn limited(&mut self) -> Box<Limited> {
        let names = [&b"all"[..], b"u-1", b"u-2"];
        let first = self.rng.usize(0..names.len());
        let count = self.rng.usize(1..=names.len() - first);
        Box::new(Limited {
            names: names[first..first + count]
                .iter()
                .map(|name| Box::from(*name))
                .collect(),
            cost: self.rng.u64(0..4),
        })
    }

    /// A rule for a limit or for a pattern.
    pub(super) fn limit(&mut self) -> Op<'static> {
        let name = *one_of(self.rng, &[&b"all"[..], b"u-*", b"u-1", b"*"]);
        let concurrency = self.maybe(2, |a| a.rng.u64(1..6)).unwrap_or(0);
        let rates = (0..self.rng.usize(0..3)).map(|_| Rate {
            count: self.rng.u64(1..8),
            per: self.rng.u64(1..20_000),
        });
        let rule = LimitRule {
            concurrency,
            weighted: false,
            rates: rates.collect(),
        };
        let weighted = !rule.is_open() && self.one_in(3);
        Op::Limit {
            name: name.into(),
            rule: LimitRule { weighted, ..rule },
        }
    }

    pub(super) fn park(&mut self) -> Park {
        Park {
            ms: self.maybe(2, Self::some_ms).and_then(NonZeroU64::new),
        }
    }

    pub(super) fn batching(&mut self) -> Box<Batching> {
        let name = |number: u8| Box::from([b'a' + number]);
        let (batch, after) = (self.rng.u8(0..4), self.rng.u8(0..4));
        let after = self.maybe(2, |a| After {
            batch: name(after),
            on_fail: *one_of(a.rng, &OnFail::ALL),
            counts: Counts::default(),
        });
        let has_batch = after.as_ref().is_none_or(|of| *of.batch != [b'a' + batch]);
        Box::new(Batching {
            batch: has_batch.then(|| name(batch)),
            after,
            park: self.maybe(4, Self::park),
        })
    }

    /// PARENT, CHILDREN or both.
    fn kin(&mut self) -> Box<Kin> {
        let parent = self.maybe(2, |a| Parent {
            key: a.key().into(),
            id: a.id().as_ref().into(),
            on_dead: *one_of(a.rng, &OnFail::ALL),
        });
        let total = match parent.is_some() {
            true => self.maybe(4, |a| a.rng.u64(1..4)),
            false => Some(self.rng.u64(1..4)),
        };
        let children = total.map(|total| Box::new(Children::new(total)));
        Box::new(Kin { parent, children })
    }

    /// The reports to parents about children, here and in other queues.
    pub(super) fn counted(&mut self) -> Counted<'static> {
        let of = (0..self.rng.usize(1..4)).map(|_| {
            let mut delta = Delta::default();
            match self.rng.u8(0..6) {
                0..3 => delta.finished = self.rng.i64(1..3),
                3 => delta.die(*one_of(self.rng, &OnFail::ALL), 1),
                4 => delta.die(OnFail::Hold, -1),
                _ => delta.removed = 1,
            }
            CountedOne {
                id: self.id(),
                delta,
                dies_later: self.one_in(2),
            }
        });
        Counted {
            of: of.collect(),
            from: self.key().into(),
        }
    }

    pub(super) fn send(&mut self) -> Send<'static> {
        let id = self.maybe(2, Self::id);
        let count = match (id.is_some(), self.one_in(8)) {
            (true, _) => 1,
            (_, true) => self.rng.usize(1..=self.profile.batch),
            _ => 1,
        };
        let group = match self.one_in(3) {
            true => None,
            false => Some(self.group()),
        };
        let mut choices = self.choices();
        if group.is_none() {
            choices.score = None;
        }
        let replace = id.is_some() && self.one_in(2);
        choices.change_rare(|rare| rare.max_wait = rare.max_wait.filter(|_| replace));
        let payloads: SmallVec<_> = (0..count).map(|_| *one_of(self.rng, &PAYLOADS)).collect();
        Send {
            payloads,
            replace,
            rerun: replace && self.one_in(2),
            if_group: group.is_some() && self.one_in(12),
            dedup: self.maybe(8, Self::dedup_id).filter(|_| count == 1),
            id,
            due: self.due(),
            group,
            priority: self.maybe(4, |a| a.rng.i8(-2..=2)).unwrap_or_default(),
            choices,
            new_salt: None,
        }
    }

    fn dedup_id(&mut self) -> Box<DedupId> {
        let name = self.name('d', 4);
        Box::new(DedupId {
            name: (*name).into(),
            ms: self.some_ms(),
        })
    }

    pub(super) fn ack_send(&mut self) -> AckSend<'static> {
        let receipt = self.rng.u8(0..8) > 0;
        let receipt = receipt.then(|| self.oracle.receipt(self.rng));
        let sends = (0..self.rng.usize(1..4)).map(|_| {
            let mut send = self.send();
            send.payloads.truncate(1);
            send
        });
        let sends = sends.collect();
        let signals = self.maybe(4, |a| Signal {
            id: a.id(),
            text: a.text(),
        });
        AckSend {
            signals: signals.into_iter().collect(),
            receipt,
            result: self.maybe(3, Self::text).filter(|_| receipt.is_some()),
            sends,
        }
    }

    fn schedule_limits(&mut self) -> Box<Limits> {
        Box::new(Limits {
            until: self.maybe(3, |a| a.now + a.ms()),
            times: self.maybe(3, |a| a.rng.u64(1..20)),
            // The limits never all have their defaults, because a log entry has no empty limits.
            jitter: self.some_ms(),
        })
    }

    pub(super) fn schedule(&mut self) -> Op<'static> {
        let rule = match self.one_in(4) {
            true => {
                let (expression, zone) = *one_of(self.rng, &CRONS);
                Recurrence::cron(expression, zone).ok()
            }
            false => None,
        };
        let every = Recurrence::Every {
            // A shorter period would leave little time for other operations.
            period: self.some_ms().max(15),
            start: (self.now + self.ms()).saturating_sub(30),
            start_given: self.one_in(2),
        };
        let mut send = self.send();
        send.payloads.truncate(1);
        send.id = None;
        send.replace = false;
        send.rerun = false;
        send.dedup = None;
        send.due = DueTime::Now;
        send.choices.change_rare(|rare| {
            rare.expire_at = None;
            rare.max_wait = None;
            rare.kin = None;
        });
        Op::Schedule(NewSchedule {
            name: self.name('s', 3),
            rule: rule.unwrap_or(every),
            send,
            missed: *one_of(self.rng, &[Missed::Skip, Missed::Once, Missed::All]),
            overlap: *one_of(self.rng, &[Overlap::Queue, Overlap::Skip]),
            limits: self.maybe(3, Self::schedule_limits),
        })
    }
}
