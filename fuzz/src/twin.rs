//! A queue and its replica. Every operation on the queue is replayed on the replica
//! from its log entry. In the end both must have the same snapshot, and loading it
//! must give the same queue.

use crate::{loaded, saved};
use dq_queue::args::find::{FindRequest, Found};
use dq_queue::args::{self, Parsed, Words};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::op::{AckSend, Op};
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Millis, Moment, Queue};

/// Maximum size of a payload, in bytes.
const MAX_PAYLOAD: u64 = 1 << 20;
/// Maximum steps of time before a command.
const STEPS: u64 = 512;
/// When the first command is done, in Unix milliseconds.
const START: Millis = 1_700_000_000_000;

/// A queue and its replica.
pub struct Twins {
    queue: Queue,
    replica: Queue,
    us: u64,
    receipt: u64,
}

impl Twins {
    /// Creates both with a manual clock, or with that of the server.
    pub fn new(manual: bool) -> Twins {
        let creation = Creation {
            settings: Settings::default(),
            clock: if manual {
                Clock::Manual(START)
            } else {
                Clock::Server
            },
            salt: 7,
        };
        Twins {
            queue: creation.queue(),
            replica: creation.queue(),
            us: START * 1000,
            receipt: START * 1000,
        }
    }

    /// Lets `passed` milliseconds pass, and then runs a command. Words that are no
    /// command do nothing.
    pub fn command(&mut self, passed: Millis, words: &[&[u8]]) {
        self.us = self.us.saturating_add(passed.saturating_mul(1000) + 1);
        let moment = Moment {
            us: self.us,
            receipt: self.receipt.max(self.us),
        };
        let Ok(Some(command)) = command(words, self.queue.now(moment)) else {
            return;
        };
        let now = self.queue.now(moment);
        let steps = if self.queue.has_work(now) {
            self.queue.advance(now, STEPS).steps
        } else {
            0
        };
        let op = match command {
            Command::Op(Op::AckSend(ack_send))
                if self.queue.can_ack_send(&ack_send, moment).is_err() =>
            {
                Op::Tick
            }
            Command::Op(op) => op,
            Command::Find(FindRequest { search, found }) => {
                let (_, seqs) = self.queue.search(&search, now);
                match found {
                    Found::Do(act) => Op::FindDo { act, seqs },
                    Found::Messages | Found::Ids => Op::Tick,
                }
            }
        };
        let done = self.queue.apply(&op, moment);
        let changed = self.queue.take_effects().changed;
        self.receipt = self.receipt.max(self.queue.last_receipt() + 1);
        if !changed {
            return;
        }
        let logged = if done.is_ok() { &op } else { &Op::Tick };
        let mut bytes = Vec::new();
        LogEntry::of(moment, steps, None, logged).encode_into(&mut bytes);
        let record = LogEntry::decode(&bytes).expect("a log entry can be read");
        record
            .replay(&mut self.replica)
            .expect("a log entry can be replayed");
        self.replica.take_effects();
    }

    /// Compares queue, replica, and the queue that their snapshot loads as.
    ///
    /// # Panics
    /// They differ.
    pub fn compare(&self) {
        let bytes = saved(&self.queue);
        assert!(bytes == saved(&self.replica), "the replica differs");
        let again = loaded(&bytes, 1000).expect("what was saved can be loaded");
        assert!(bytes == saved(&again), "the queue that was loaded differs");
        let copy = saved(&self.queue.copy());
        loaded(&copy, 64).expect("a copy can be loaded");
    }
}

/// What a command does.
enum Command<'a> {
    /// It applies an operation.
    Op(Op<'a>),
    /// It searches, and what it finds decides about the operation.
    Find(FindRequest<'a>),
}

/// Parses a command. Returns `None` for a command that only reads.
fn command<'a>(args: &'a [&'a [u8]], now: Millis) -> Parsed<Option<Command<'a>>> {
    let Some((verb, _)) = args.split_first() else {
        return Ok(None);
    };
    // The arguments begin with the verb and the key, as in a server.
    let words = || Words::new(args.get(2..).unwrap_or_default());
    let from_keys = || Words::new(args.get(1..).unwrap_or_default());
    let op = match *verb {
        b"CREATE" => Op::Alter(args::create::create(words())?.changes),
        b"ALTER" => Op::Alter(args::alter::alter(words())?),
        b"SEND" => Op::Send(args::send::send(words(), MAX_PAYLOAD)?),
        b"MSEND" => Op::Send(args::send::multi(words(), MAX_PAYLOAD)?),
        b"GROUPPUSH" => Op::Send(args::grouppush::group_push(words(), MAX_PAYLOAD)?),
        b"FETCH" => Op::fetch(args::fetch::fetch(words())?.fetch),
        b"MFETCH" => Op::fetch(args::fetch::multi(from_keys())?.request.fetch),
        b"ACK" => args::ack::ack(words())?,
        b"ACKSEND" => {
            let request = args::acksend::ack_send(words(), MAX_PAYLOAD)?;
            Op::AckSend(AckSend {
                receipt: Some(request.receipt),
                result: request.result,
                sends: request.next.into_iter().map(|next| next.send).collect(),
            })
        }
        b"NACK" => args::nack::nack(words(), now)?,
        b"TOUCH" => args::touch::touch(words())?,
        b"CANCEL" => args::cancel::cancel(words())?,
        b"RESCHEDULE" => args::reschedule::reschedule(words())?,
        b"UPDATE" => args::update::update(words(), MAX_PAYLOAD)?,
        b"REDRIVE" => args::redrive::redrive(words())?,
        b"FIND" => return Ok(Some(Command::Find(args::find::find(words())?))),
        b"PURGE" => args::purge::purge(words())?,
        b"PAUSE" => args::pause::pause(words())?,
        b"RESUME" => args::resume::resume(words())?,
        b"GROUPSET" => args::groupset::group_set(words())?,
        b"UNSCHEDULE" => args::schedule::unschedule(words())?,
        b"SCHEDULE" => Op::Schedule(args::schedule::schedule(words(), MAX_PAYLOAD)?.at(now)?),
        b"TICK" => {
            args::tick::tick(from_keys())?;
            Op::Tick
        }
        b"GET" => {
            args::get::message(words())?;
            return Ok(None);
        }
        b"LEN" => {
            args::len::len(words())?;
            return Ok(None);
        }
        b"PEEK" => {
            args::peek::peek(words())?;
            return Ok(None);
        }
        b"LIST" => {
            args::list::list(words())?;
            return Ok(None);
        }
        b"GROUPS" => {
            args::groups::groups(words())?;
            return Ok(None);
        }
        b"WAIT" => {
            args::wait::wait(words())?;
            return Ok(None);
        }
        _ => return Ok(None),
    };
    Ok(Some(Command::Op(op)))
}
