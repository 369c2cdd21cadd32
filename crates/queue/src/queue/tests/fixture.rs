//! A queue with a clock and short helpers, for tests of single promises.

use crate::message::kin::News;
use crate::message::state::State;
use crate::message::Choices;
use crate::op::{Done, DueTime, Fetch, NackKind, Op, Send, Sent, Ticked};
use crate::queue::Queue;
use crate::settings::{Clock, Settings};
use crate::{Millis, Moment, Receipt, Seq};

/// A queue that follows the server's clock, and the present time.
pub struct Fixture {
    pub queue: Queue,
    pub now: Millis,
    /// The reports to parents that no test has counted yet.
    pub reports: Vec<News>,
}

/// A delivery: number of the message, and receipt.
pub type Got = (Seq, Receipt);

impl Fixture {
    pub fn new(settings: Settings) -> Fixture {
        Fixture {
            queue: Queue::new(settings, Clock::Server, 0),
            now: 1000,
            reports: Vec::new(),
        }
    }

    /// Lets time pass and processes due events. Returns what was done.
    pub fn wait(&mut self, ms: Millis) -> Ticked {
        self.now += ms;
        let mut ticked = Ticked::default();
        loop {
            let progress = self.queue.advance(self.now, u64::MAX);
            ticked += progress.ticked;
            self.take_reports();
            if progress.caught_up || progress.steps == 0 {
                return ticked;
            }
        }
    }

    /// Takes the reports to parents from the queue, which lets no event run before.
    fn take_reports(&mut self) {
        if let Some(owed) = self.queue.take_owed(b"from") {
            self.reports.extend(owed.reports);
        }
    }

    pub fn apply(&mut self, op: &Op) -> Done {
        self.wait(0);
        let done = self.queue.apply(op, Moment::at_ms(self.now)).unwrap();
        self.take_reports();
        self.wait(0);
        done
    }

    pub fn send(&mut self, send: Send) -> Seq {
        match self.apply(&Op::Send(send)) {
            Done::Sent(sent) => match sent[..] {
                [Sent::Added(seq)] => seq,
                _ => panic!("not one message: {sent:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Sends a message to a group.
    pub fn to(&mut self, group: &'static str) -> Seq {
        self.send(new_message(Some(group)))
    }

    /// Sends a message without a group.
    pub fn plain(&mut self) -> Seq {
        self.send(new_message(None))
    }

    pub fn fetch(&mut self, fetch: Fetch) -> Vec<Got> {
        match self.apply(&Op::fetch(fetch)) {
            Done::Fetched(given) => given.iter().map(|d| (d.seq, d.receipt)).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Fetches up to `count` messages. Returns their numbers.
    pub fn take(&mut self, count: u64) -> Vec<Seq> {
        let given = self.fetch(Fetch {
            count,
            ..Fetch::one()
        });
        given.into_iter().map(|(seq, _)| seq).collect()
    }

    pub fn ack(&mut self, receipts: &[Receipt]) -> Done {
        self.apply(&Op::Ack {
            receipts: receipts.into(),
            result: None,
        })
    }

    pub fn nack(&mut self, receipts: &[Receipt], kind: NackKind) -> Done {
        self.apply(&Op::Nack {
            receipts: receipts.into(),
            kind,
            error: None,
            random: 0,
            note: None,
            pause: None,
        })
    }

    pub fn cancel(&mut self, id: &'static str) -> Option<State> {
        let ids = vec![id.as_bytes().into()];
        match self.apply(&Op::Cancel { ids }) {
            Done::States(states) => states[0],
            other => panic!("{other:?}"),
        }
    }

    pub fn state(&self, seq: Seq) -> Option<State> {
        let message = self.queue.message(seq)?;
        Some(self.queue.state_of(message, self.now))
    }

    pub fn peek(&self) -> Vec<Seq> {
        self.queue.peek(100, self.now)
    }
}

/// Sends a message, fetches it and rejects it. It must be the one that is delivered
/// next.
pub fn kill(fixture: &mut Fixture, send: Send) -> Seq {
    let seq = fixture.send(send);
    let got = fixture.fetch(Fetch::one());
    assert_eq!(got[0].0, seq);
    fixture.nack(&[got[0].1], NackKind::Fatal);
    seq
}

/// A message that is due now.
pub fn new_message(group: Option<&'static str>) -> Send<'static> {
    Send {
        group: group.map(|name| name.as_bytes().into()),
        ..Send::plain(b"payload")
    }
}

/// A message that is due in `ms`.
pub fn later(group: Option<&'static str>, ms: Millis) -> Send<'static> {
    Send {
        due: DueTime::After(ms),
        ..new_message(group)
    }
}

/// A message with an id, due now.
pub fn named(id: &'static str) -> Send<'static> {
    Send {
        id: Some(id.as_bytes().into()),
        ..new_message(None)
    }
}

/// Adds a TTL to a message.
pub fn with_ttl(send: Send<'static>, ttl: Millis) -> Send<'static> {
    Send {
        choices: Choices {
            ttl: Some(ttl),
            ..Choices::default()
        },
        ..send
    }
}
