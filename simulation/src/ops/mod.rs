//! Draws random operations.

mod delivery;
mod message;
mod profile;
mod removal;
mod search;
mod settings;

use std::borrow::Cow;

use crate::oracle::Oracle;
use dq_queue::op::{DueTime, FindAct, GroupChanges, Receipts, Redrive};
use dq_queue::{Millis, Op};
pub use profile::Profile;
pub use search::Conditions;

const PAYLOADS: [&[u8]; 5] = [
    b"",
    b"x",
    b"hello",
    b"a somewhat longer payload",
    &[0xFF; 33],
];

fn one_of<'a, T>(rng: &mut fastrand::Rng, all: &'a [T]) -> &'a T {
    &all[rng.usize(0..all.len())]
}

/// Draws operations.
pub struct Ops<'a> {
    /// The source of all random choices.
    pub rng: &'a mut fastrand::Rng,
    /// The mixture of operations.
    pub profile: &'a Profile,
    /// The oracle, which has the receipts that were given out.
    pub oracle: &'a Oracle,
    /// The time of the queue, in Unix milliseconds.
    pub now: Millis,
    /// Number of live messages in the queue.
    pub live: u64,
    /// The keys that operations may name, that of the queue first.
    pub keys: &'a [&'static [u8]],
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

    /// A key that an operation may name.
    fn key(&mut self) -> &'static [u8] {
        match self.keys {
            [only] => only,
            keys => one_of::<&'static [u8]>(self.rng, keys),
        }
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

    fn due(&mut self) -> DueTime {
        let ms = self.ms();
        match self.rng.u8(0..5) {
            0 | 1 => DueTime::Now,
            2 | 3 => DueTime::After(ms),
            _ => DueTime::At((self.now + ms).saturating_sub(10)),
        }
    }

    /// Draws any operation that a client can ask for.
    pub fn any(&mut self) -> Op<'static> {
        if self.live > self.profile.size && self.one_in(2) {
            return self.drain();
        }
        if self.one_in(24) {
            return Op::Children(self.counted());
        }
        if self.one_in(8 * self.profile.limits) {
            return self.limit();
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
            83 => Op::Signal {
                id: self.id(),
                text: self.text(),
            },
            84 => Op::Redrive(Redrive::Ids(self.ids())),
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
            97 => {
                let name = self.name('s', 3);
                match self.one_in(3) {
                    true => Op::Unschedule { name },
                    false => Op::PauseSchedule {
                        name,
                        paused: self.one_in(2),
                    },
                }
            }
            98 => Op::Advance {
                to: self.now + self.ms(),
                skip_fires: self.rng.u8(0..4) == 0,
            },
            _ => match self.rng.u8(0..4) {
                0 => Op::Tick,
                1 | 2 => self.limit(),
                _ => Op::AckCost {
                    receipts: self.receipts(3),
                    cost: self.rng.u64(0..6),
                    result: self.maybe(3, Self::text),
                },
            },
        }
    }
}
