//! Draws random operations.

use std::borrow::Cow;
use std::num::NonZeroU64;

use smallvec::SmallVec;

use crate::oracle::Oracle;
use dq_queue::message::after::{After, Batching, Counts, OnFail};
use dq_queue::message::state::State;
use dq_queue::message::{Choices, RareChoices};
use dq_queue::op::{
    AckSend, DueTime, Fetch, FindAct, GroupChanges, NackKind, NackPause, NewSchedule, Paused,
    Piecemeal, Receipts, Redrive, Send,
};
use dq_queue::schedule::recurrence::Recurrence;
use dq_queue::schedule::{Missed, Overlap};
use dq_queue::settings::{Backoff, Breaker, Changes, OnDead, OnRetry, Rate};
use dq_queue::{Millis, Op};

const PAYLOADS: [&[u8]; 5] = [
    b"",
    b"x",
    b"hello",
    b"a somewhat longer payload",
    &[0xFF; 33],
];
const CRONS: [(&str, Option<&str>); 3] = [
    ("* * * * * *", None),
    ("*/5 * * * *", None),
    ("30 2 * * *", Some("Europe/Berlin")),
];

/// What the operations of a cluster are like.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Number of different ids that clients choose.
    pub ids: u32,
    /// Number of different groups.
    pub groups: u32,
    /// Maximum messages of one command.
    pub batch: usize,
    /// Number of live messages above which half of the operations shorten the queue.
    pub size: u64,
    /// Upper bound of most times, in milliseconds.
    pub ms: Millis,
}

impl Profile {
    /// Draws a profile. Most are small, so that operations meet the same messages
    /// and groups. One in eight is large, so that work has to be done in slices.
    pub fn random(rng: &mut fastrand::Rng) -> Profile {
        let large = rng.u8(0..8) == 0;
        Profile {
            ids: rng.u32(2..30),
            groups: rng.u32(1..12),
            batch: if large { 400 } else { 5 },
            size: if large { 900 } else { rng.u64(5..80) },
            ms: *one_of(rng, &[20, 60, 60, 1000]),
        }
    }
}

fn one_of<'a, T>(rng: &mut fastrand::Rng, all: &'a [T]) -> &'a T {
    &all[rng.usize(0..all.len())]
}

/// Draws operations.
pub struct Ops<'a> {
    /// The source of everything that is drawn.
    pub rng: &'a mut fastrand::Rng,
    /// What the operations are like.
    pub profile: &'a Profile,
    /// Knows which receipts were given out.
    pub oracle: &'a Oracle,
    /// The time of the queue, in Unix milliseconds.
    pub now: Millis,
    /// Number of live messages in the queue.
    pub live: u64,
}

impl Ops<'_> {
    /// Returns true once in `n` times, on average.
    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    fn maybe<T>(&mut self, n: u32, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(n).then(|| draw(self))
    }

    fn ms(&mut self) -> Millis {
        match self.one_in(20) {
            true => self.rng.u64(0..100_000),
            false => self.rng.u64(0..self.profile.ms),
        }
    }

    fn some_ms(&mut self) -> Millis {
        self.ms().max(1)
    }

    fn name(&mut self, kind: char, most: u32) -> Cow<'static, [u8]> {
        let n = self.rng.u32(0..most);
        let text = match (kind, n) {
            ('c', 0) => "\0\u{7f}".repeat(40),
            _ => format!("{kind}{n}"),
        };
        text.into_bytes().into()
    }

    fn id(&mut self) -> Cow<'static, [u8]> {
        self.name('i', self.profile.ids)
    }

    fn ids(&mut self) -> Vec<Cow<'static, [u8]>> {
        (0..self.rng.usize(1..4)).map(|_| self.id()).collect()
    }

    fn group(&mut self) -> Cow<'static, [u8]> {
        self.name('g', self.profile.groups)
    }

    fn text(&mut self) -> Cow<'static, [u8]> {
        Cow::Borrowed(one_of::<&'static [u8]>(self.rng, &PAYLOADS))
    }

    fn receipts(&mut self, most: usize) -> Receipts {
        let n = self.rng.usize(0..=most);
        (0..n).map(|_| self.oracle.receipt(self.rng)).collect()
    }

    fn backoff(&mut self) -> Backoff {
        let ms = self.ms();
        *one_of(
            self.rng,
            &[Backoff::Fixed(ms), Backoff::Linear(ms), Backoff::Exp(ms)],
        )
    }

    fn rate(&mut self) -> Rate {
        Rate {
            count: self.rng.u64(1..8),
            per: self.some_ms(),
        }
    }

    fn due(&mut self) -> DueTime {
        let ms = self.ms();
        match self.rng.u8(0..5) {
            0 | 1 => DueTime::Now,
            2 | 3 => DueTime::After(ms),
            _ => DueTime::At((self.now + ms).saturating_sub(10)),
        }
    }

    fn choices(&mut self) -> Choices {
        if !self.one_in(4) {
            return Choices::default();
        }
        let headers = match self.one_in(4) {
            true => vec![(self.text().as_ref().into(), self.text().as_ref().into())],
            false => Vec::new(),
        };
        let ttl = self.maybe(3, Self::ms);
        let mut choices = Choices {
            score: self.maybe(3, |a| a.rng.f64() * 6.0 - 3.0),
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
            };
            choices.change_rare(|own| *own = rare);
        }
        choices
    }

    fn batching(&mut self) -> Box<Batching> {
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
        })
    }

    fn send(&mut self) -> Send<'static> {
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
            if_group: group.is_some() && self.one_in(12),
            id,
            due: self.due(),
            group,
            priority: self.maybe(4, |a| a.rng.i8(-2..=2)).unwrap_or_default(),
            choices,
            new_salt: None,
        }
    }

    fn fetch(&mut self) -> Fetch<'static> {
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

    fn ack_send(&mut self) -> AckSend<'static> {
        let receipt = self.rng.u8(0..8) > 0;
        let receipt = receipt.then(|| self.oracle.receipt(self.rng));
        let sends = (0..self.rng.usize(1..4)).map(|_| {
            let mut send = self.send();
            send.payloads.truncate(1);
            send
        });
        let sends = sends.collect();
        AckSend {
            receipt,
            result: self.maybe(3, Self::text).filter(|_| receipt.is_some()),
            sends,
        }
    }

    fn breaker(&mut self) -> Breaker {
        let open = self.some_ms();
        Breaker {
            failures: self.rng.u64(1..4),
            per: self.some_ms() * *one_of(self.rng, &[1, 10]),
            open,
            max: open * self.rng.u64(1..5),
        }
    }

    /// Draws changes of some options of a queue.
    pub fn changes(&mut self) -> Changes {
        Changes {
            lease: self.maybe(3, Self::some_ms),
            retries: self.maybe(4, |a| a.rng.i64(-1..4)),
            backoff: self.maybe(4, Self::backoff),
            max_backoff: self.maybe(5, Self::ms),
            jitter: self.maybe(5, |a| a.rng.u8(0..=100)),
            ttl: self.maybe(6, Self::ms),
            retain: self.maybe(3, Self::ms),
            retain_count: self.maybe(5, |a| a.rng.u64(0..20)),
            dead_retain: self.maybe(4, Self::ms),
            dead_count: self.maybe(5, |a| a.rng.u64(0..20)),
            dedup: self.maybe(4, Self::ms),
            max_len: self.maybe(8, |a| a.rng.u64(0..2 * a.profile.size)),
            max_bytes: self.maybe(8, |a| a.rng.u64(0..30 * a.profile.size)),
            max_running: self.maybe(6, |a| a.rng.u64(0..10)),
            rate: self.maybe(6, |a| a.maybe(2, Self::rate)),
            group_concurrency: self.maybe(4, |a| a.rng.u64(1..4)),
            on_retry: self.maybe(4, |a| *one_of(a.rng, &[OnRetry::Skip, OnRetry::Block])),
            on_dead: self.maybe(4, |a| *one_of(a.rng, &[OnDead::Block, OnDead::Continue])),
            breaker: self.maybe(3, |a| a.maybe(2, Self::breaker)),
        }
    }

    fn nack(&mut self) -> Op<'static> {
        let delay = NackKind::Delay(self.ms() * *one_of(self.rng, &[1, 1, 100]));
        let kinds = [
            NackKind::Backoff,
            NackKind::Backoff,
            delay,
            NackKind::Snooze(self.some_ms()),
            NackKind::Silent,
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

    fn schedule(&mut self) -> Op<'static> {
        let rule = match self.one_in(4) {
            true => {
                let (expression, zone) = *one_of(self.rng, &CRONS);
                Recurrence::cron(expression, zone).ok()
            }
            false => None,
        };
        let every = Recurrence::Every {
            // A shorter period would leave time for little else.
            period: self.some_ms().max(15),
            start: (self.now + self.ms()).saturating_sub(30),
            start_given: self.one_in(2),
        };
        let mut send = self.send();
        send.payloads.truncate(1);
        send.id = None;
        send.replace = false;
        send.due = DueTime::Now;
        send.choices.change_rare(|rare| {
            rare.expire_at = None;
            rare.max_wait = None;
        });
        Op::Schedule(NewSchedule {
            name: self.name('s', 3),
            rule: rule.unwrap_or(every),
            send,
            missed: *one_of(self.rng, &[Missed::Skip, Missed::Once, Missed::All]),
            overlap: *one_of(self.rng, &[Overlap::Queue, Overlap::Skip]),
        })
    }

    fn purge(&mut self) -> Op<'static> {
        if self.one_in(4) {
            let group = self.maybe(4, Self::group);
            return Op::PurgeSome {
                of: group.map_or(Piecemeal::Dead, Piecemeal::Leased),
                most: self.rng.u64(1..5),
            };
        }
        if !self.one_in(4) {
            // Messages that failed or are leased hold up their groups, so they are purged
            // most often.
            return Op::Purge {
                state: Some(*one_of(self.rng, &[State::Retry, State::Running])),
                group: None,
            };
        }
        Op::Purge {
            state: self.maybe(2, |a| *one_of(a.rng, &State::ALL)),
            group: self.maybe(2, Self::group),
        }
    }

    /// Draws an operation that makes the queue shorter, or allows that.
    fn drain(&mut self) -> Op<'static> {
        match self.rng.u8(0..8) {
            0 => self.purge(),
            1 => Op::Resume { group: None },
            2 => Op::Resume {
                group: Some(self.group()),
            },
            3 => Op::Cancel { ids: self.ids() },
            4 => Op::Ack {
                receipts: self.receipts(self.profile.batch),
                result: None,
            },
            _ => Op::fetch(Fetch {
                count: self.profile.size,
                per_group: 3,
                no_ack: self.one_in(2),
                acks: self.receipts(self.profile.batch),
                ..Fetch::one()
            }),
        }
    }

    /// Draws any operation that a client can ask for.
    pub fn any(&mut self) -> Op<'static> {
        if self.live > self.profile.size && self.one_in(2) {
            return self.drain();
        }
        match self.rng.u8(0..100) {
            0..24 => Op::Send(self.send()),
            24..50 => Op::fetch(self.fetch()),
            50..53 => Op::AckSend(self.ack_send()),
            53..54 => {
                let receipts = self.receipts(3);
                let results = receipts.iter().map(|_| self.text()).collect();
                Op::AckEach { receipts, results }
            }
            54..59 => Op::Ack {
                receipts: self.receipts(3),
                result: self.maybe(3, Self::text),
            },
            59..70 => self.nack(),
            70..73 => Op::Touch {
                ms: self.some_ms(),
                receipts: self.receipts(3),
                note: self.maybe(3, Self::text),
            },
            73 => Op::Grace {
                ms: self.some_ms(),
                receipts: self.receipts(3),
            },
            74 => Op::EndLeases {
                receipts: self.receipts(2),
            },
            75..78 => Op::Cancel { ids: self.ids() },
            78..81 => Op::Reschedule {
                id: self.id(),
                due: self.due(),
            },
            81..83 => Op::Update {
                id: self.id(),
                payload: self.text(),
            },
            83..85 => Op::Redrive(Redrive::Ids(self.ids())),
            85 => Op::FindDo {
                act: *one_of(
                    self.rng,
                    &[FindAct::Redrive, FindAct::Cancel, FindAct::Purge],
                ),
                // The messages are searched for when the operation is performed.
                seqs: Vec::new(),
            },
            86 => {
                let many = *one_of(self.rng, &[1, 3, u64::MAX, u64::MAX]);
                Op::Redrive(Redrive::Oldest(many))
            }
            87 => self.purge(),
            88..90 => Op::Pause {
                group: self.maybe(2, Self::group),
                ms: match self.one_in(4) {
                    true => None,
                    false => Some(self.some_ms()),
                },
            },
            90..93 => Op::Resume {
                group: self.maybe(2, Self::group),
            },
            93..95 => Op::GroupSet {
                group: self.group(),
                changes: GroupChanges {
                    weight: self.maybe(2, |a| a.rng.u64(1..4)),
                    concurrency: self.maybe(2, |a| a.rng.u64(0..4)),
                    rate: self.maybe(3, |a| a.maybe(2, Self::rate)),
                },
            },
            95 => Op::Alter(self.changes()),
            96 => self.schedule(),
            97 => Op::Unschedule {
                name: self.name('s', 3),
            },
            98 => Op::Advance {
                to: self.now + self.ms(),
            },
            _ => Op::Tick,
        }
    }
}
