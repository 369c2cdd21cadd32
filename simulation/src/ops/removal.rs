//! Draws operations that make a queue shorter.

use super::{one_of, Ops};
use dq_queue::message::state::State;
use dq_queue::op::Fetch;
use dq_queue::Op;

impl Ops<'_> {
    pub(super) fn purge(&mut self) -> Op<'static> {
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
    pub(super) fn drain(&mut self) -> Op<'static> {
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
}
