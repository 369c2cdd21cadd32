//! Listings page by page, while messages move within the state.

use proptest::prelude::*;

use super::fixture::{later, new_message, Fixture, Got};
use super::properties::config;
use crate::message::state::State;
use crate::op::{DueTime, Fetch, Op};
use crate::queue::inspect::cursor::Cursor;
use crate::queue::inspect::list::Listing;
use crate::settings::Settings;
use crate::{Millis, Seq};

/// A change between two pages, of the message with this index.
#[derive(Debug, Clone)]
enum Change {
    /// Its lease or its due time moves, to this many ms from now.
    Move(usize, Millis),
    /// It leaves the state.
    Leave(usize),
    /// A new one comes into the state.
    Come(Millis),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..12usize, 1000..9000u64).prop_map(|(at, ms)| Change::Move(at, ms)),
        1 => (0..12usize).prop_map(Change::Leave),
        1 => (1000..9000u64).prop_map(Change::Come),
    ]
}

/// A queue with messages in one state, and a walk through them.
struct World {
    fixture: Fixture,
    is_running: bool,
    messages: Vec<Got>,
    left: Vec<Seq>,
}

impl World {
    fn come(&mut self, ms: Millis) {
        if !self.is_running {
            let seq = self.fixture.send(later(None, ms));
            return self.messages.push((seq, 0));
        }
        self.fixture.send(new_message(None));
        let got = self.fixture.fetch(Fetch {
            lease: Some(ms),
            ..Fetch::one()
        });
        self.messages.extend(got);
    }

    fn change(&mut self, change: &Change) {
        let (at, to) = match change {
            Change::Come(ms) => return self.come(*ms),
            Change::Leave(at) => (*at, None),
            Change::Move(at, ms) => (*at, Some(*ms)),
        };
        let (seq, receipt) = self.messages[at % self.messages.len()];
        let message = self.fixture.queue.message(seq);
        let Some(id) = message.map(|message| self.fixture.queue.id_of(seq, message).to_box())
        else {
            return;
        };
        let id = id.into_vec();
        let receipts = || [receipt].into_iter().collect();
        let op = match (to, self.is_running) {
            (Some(ms), true) => Op::Touch {
                ms,
                receipts: receipts(),
                note: None,
            },
            (Some(ms), false) => Op::Reschedule {
                id: id.into(),
                due: DueTime::After(ms),
            },
            (None, true) => Op::EndLeases {
                receipts: receipts(),
            },
            (None, false) => Op::Reschedule {
                id: id.into(),
                due: DueTime::Now,
            },
        };
        if to.is_none() {
            self.left.push(seq);
        }
        self.fixture.apply(&op);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_message_that_stays_in_a_state_is_listed_once_wherever_it_moves(
        is_running in any::<bool>(),
        is_reverse in any::<bool>(),
        first in prop::collection::vec(1000..9000u64, 1..12),
        changes in prop::collection::vec(prop::collection::vec(change(), 0..4), 1..20),
        count in 1..4usize,
    ) {
        let mut world = World {
            fixture: Fixture::new(Settings::default()),
            is_running,
            messages: Vec::new(),
            left: Vec::new(),
        };
        first.iter().for_each(|ms| world.come(*ms));
        let all: Vec<Seq> = world.messages.iter().map(|(seq, _)| *seq).collect();
        let mut listing = Listing {
            state: if is_running { State::Running } else { State::Delayed },
            cursor: None,
            reverse: is_reverse,
            count,
            group: None,
            label: None,
        };
        let mut seen = Vec::new();
        for page in 0.. {
            let (next, found) = world.fixture.queue.list(listing, world.fixture.now);
            seen.extend(found);
            let Some(next) = next else {
                break;
            };
            // Clients send the cursor back as text.
            listing.cursor = Cursor::parse(next.to_string().as_bytes()).unwrap();
            for change in changes.get(page).into_iter().flatten() {
                world.change(change);
            }
        }
        for seq in all.iter().filter(|seq| !world.left.contains(seq)) {
            let times = seen.iter().filter(|other| *other == seq).count();
            prop_assert_eq!(times, 1, "message {} in {:?}", seq, seen);
        }
    }
}
