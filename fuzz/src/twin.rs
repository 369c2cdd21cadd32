//! A queue and its replica. Every operation on the queue is replayed on the replica
//! from its log entry. In the end both must have the same snapshot, and loading it
//! must give the same queue.

use crate::bug::{self, Bug};
use crate::{loaded, saved};
use dq_queue::args::acksend::What;
use dq_queue::args::fetch::FetchRequest;
use dq_queue::args::find::{FindRequest, Found};
use dq_queue::args::{self, Parsed, Words};
use dq_queue::codec::log_entry::{Creation, LogEntry};
use dq_queue::dead_letters::Moved;
use dq_queue::op::{AckSend, Before, Op, Receipts};
use dq_queue::queue::MAX_LEAD;
use dq_queue::settings::{Clock, Settings};
use dq_queue::{Done, Millis, Moment, Queue};

/// Maximum size of a payload, in bytes.
const MAX_PAYLOAD: u64 = 1 << 20;
/// Maximum steps of time before a command.
const STEPS: u64 = 512;
/// A lease that is spared lasts longer by this, in ms.
const SPARED: Millis = 20;
/// The clock of the server may be set by at most this, in ms: days.
const MOST_SET: i64 = 4 * 86_400_000;
/// When the first command is done, in Unix milliseconds.
const START: Millis = 1_700_000_000_000;

/// The word that stands for the last receipt.
const LAST_RECEIPT: &[u8] = b"~";

/// A queue and its replica.
pub struct Twins {
    queue: Queue,
    replica: Queue,
    us: u64,
    receipt: u64,
    /// The leases that end when the connection closes, and the GRACE of each FETCH that
    /// delivered messages.
    bound: Vec<(Millis, Receipts)>,
    /// Whether leases that are over are spared, because the server stood still.
    spares: bool,
}

impl Twins {
    /// Creates the queue and its replica with a manual clock, or with the server's clock.
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
            bound: Vec::new(),
            spares: false,
        }
    }

    /// Lets `passed` milliseconds pass, and then runs a command. Words that are no
    /// command do nothing.
    pub fn command(&mut self, passed: Millis, words: &[&[u8]]) {
        let last = self.queue.last_receipt().to_string();
        let words = words.iter().map(|word| match *word {
            LAST_RECEIPT => last.as_bytes(),
            word => word,
        });
        self.run(passed, &words.collect::<Vec<_>>());
    }

    fn run(&mut self, passed: Millis, words: &[&[u8]]) {
        self.us = self.us.saturating_add(passed.saturating_mul(1000) + 1);
        let now = self.queue.time(self.moment());
        match command(words, now) {
            Ok(Command::Op(op)) => drop(self.apply(op)),
            Ok(Command::Fetch(request)) => {
                let done = self.apply(Op::fetch(request.fetch));
                if let (Some(grace), Some(Done::Fetched(given))) = (request.bind, done) {
                    let receipts = given.iter().map(|one| one.receipt);
                    self.bound.push((grace, receipts.collect()));
                }
            }
            Ok(Command::Find(FindRequest { search, found })) => {
                let (_, seqs) = self.queue.search(&search, now);
                if let Found::Do(act) = found {
                    self.apply(Op::FindDo { act, seqs });
                }
            }
            Ok(Command::Close) => {
                for (ms, receipts) in std::mem::take(&mut self.bound) {
                    self.apply(match ms {
                        0 => Op::EndLeases { receipts },
                        ms => Op::Grace { ms, receipts },
                    });
                }
            }
            Ok(Command::Clock(ms)) => {
                self.us =
                    (START * 1000).max(self.us.saturating_add_signed(ms.saturating_mul(1000)));
            }
            Ok(Command::Stand(ms)) => {
                self.us = self.us.saturating_add(ms * 1000);
                self.spares = true;
                self.apply(Op::Tick);
                self.spares = false;
            }
            Ok(Command::Read) | Err(_) => {}
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            us: self.us,
            receipt: self.receipt.max(self.us),
        }
    }

    /// Applies an operation after due events, and replays both on the replica. Returns
    /// what came of it; `None` if it was refused.
    fn apply(&mut self, op: Op<'_>) -> Option<Done> {
        let server = self.moment();
        let mut moment = self.queue.follow(server);
        let mut before = Before::default();
        let lead = moment.ms().saturating_sub(server.ms());
        if lead > MAX_LEAD {
            (before.cut, moment) = (lead, server);
            self.queue.prepare(&before, moment);
        }
        let now = self.queue.now(moment);
        if self.spares && self.queue.has_lease_before(now + 1) {
            before.spare = now + SPARED;
            self.queue.spare_leases(before.spare);
        }
        let is_moved = matches!(op, Op::Moved(_));
        if !is_moved && self.queue.has_work(now) {
            before.steps = self.queue.advance(now, STEPS).steps;
        }
        // The work that the events owe to other keys is settled first, in place of the operation.
        let op = match self.queue.owes() && !is_moved {
            true => Op::Tick,
            false => op,
        };
        let is_refused = match &op {
            Op::AckSend(ack_send) => self.queue.can_ack_send(ack_send, moment).is_err(),
            _ => false,
        };
        let op = if is_refused { Op::Tick } else { op };
        let done = self.queue.apply(&op, moment).ok();
        self.receipt = self.receipt.max(self.queue.last_receipt() + 1);
        let owed = self.queue.take_owed(b"q").unwrap_or_default();
        if !self.queue.take_effects().changed {
            return done;
        }
        let logged = if done.is_some() { &op } else { &Op::Tick };
        match bug::seeded() {
            Some(Bug::LostCut) => before.cut = 0,
            Some(Bug::LostSpare) => before.spare = 0,
            _ => {}
        }
        let mut bytes = Vec::new();
        LogEntry::of(moment, before, None, logged).encode_into(&mut bytes);
        let entry = LogEntry::decode(&bytes).expect("a log entry can be read");
        entry
            .replay(&mut self.replica)
            .expect("a log entry can be replayed");
        self.replica.take_effects();
        if owed.letters.is_some() {
            // No other key is here, so the dead messages stay.
            self.apply(Op::Moved(Moved::default()));
        }
        done
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

/// The effect of a command.
enum Command<'a> {
    /// The command applies an operation.
    Op(Op<'a>),
    /// The command delivers messages, whose leases may be bound to its connection.
    Fetch(FetchRequest<'a>),
    /// The command searches, and the messages that it finds decide about the operation.
    Find(FindRequest<'a>),
    /// This is no command, but the end of the connection.
    Close,
    /// This is no command, but a step of the server's clock, forward or back, in ms.
    Clock(i64),
    /// This is no command, but a standstill of the server, in ms.
    Stand(Millis),
    /// The command only reads.
    Read,
}

/// Parses a command. Words that begin with no verb are taken for one that only reads.
fn command<'a>(args: &'a [&'a [u8]], now: Millis) -> Parsed<Command<'a>> {
    let Some((verb, _)) = args.split_first() else {
        return Ok(Command::Read);
    };
    // The arguments begin with the verb and the key, as in a server.
    let words = || Words::new(args.get(2..).unwrap_or_default());
    let from_keys = || Words::new(args.get(1..).unwrap_or_default());
    let op = match *verb {
        b"CREATE" => Op::Alter(args::create::create(words())?.changes),
        b"ALTER" => Op::Alter(args::alter::alter(words())?),
        b"SEND" => Op::Send(args::send::send(words(), MAX_PAYLOAD)?),
        b"MSEND" => Op::Send(args::send::multi(words(), MAX_PAYLOAD)?),
        b"GROUPPUSH" => Op::Send(args::grouppush::group_push(words(), MAX_PAYLOAD)?.send),
        b"FETCH" => return Ok(Command::Fetch(args::fetch::fetch(words())?)),
        b"MFETCH" => return Ok(Command::Fetch(args::fetch::multi(from_keys())?.request)),
        b"NFETCH" => return Ok(Command::Fetch(args::family::fetch(from_keys())?.request)),
        b"CLOSE" => return Ok(Command::Close),
        b"CLOCK" => return Ok(Command::Clock(number(args).clamp(-MOST_SET, MOST_SET))),
        b"STAND" => return Ok(Command::Stand(number(args).clamp(0, 100_000) as Millis)),
        b"ACK" => args::ack::ack(words())?.op,
        b"ACKSEND" => {
            let request = args::acksend::ack_send(words(), MAX_PAYLOAD)?;
            let mut op = AckSend {
                receipt: Some(request.receipt),
                result: request.result,
                sends: Vec::new(),
                signals: Vec::new(),
            };
            for next in request.next {
                match next.what {
                    What::Send(send) => op.sends.push(send),
                    What::Signal(signal) => op.signals.push(signal),
                }
            }
            Op::AckSend(op)
        }
        b"NACK" => args::nack::nack(words(), now)?,
        b"TOUCH" => args::touch::touch(words())?,
        b"CANCEL" => args::cancel::cancel(words())?,
        b"RESCHEDULE" => args::reschedule::reschedule(words())?,
        b"UPDATE" => args::update::update(words(), MAX_PAYLOAD)?,
        b"SIGNAL" => args::signal::signal(words())?,
        b"REDRIVE" => args::redrive::redrive(words())?,
        b"FIND" => return Ok(Command::Find(args::find::find(words())?)),
        b"PURGE" => args::purge::purge(words())?,
        b"PAUSE" => args::pause::pause(words())?,
        b"RESUME" => args::resume::resume(words())?,
        b"GROUPSET" => args::groupset::group_set(words())?,
        b"LIMIT" => args::limit::limit(words())?,
        b"SCHEDULES" => match args::schedule::schedules(words())? {
            Some(op) => op,
            None => return Ok(Command::Read),
        },
        b"UNSCHEDULE" => args::schedule::unschedule(words())?,
        b"SCHEDULE" => Op::Schedule(args::schedule::schedule(words(), MAX_PAYLOAD)?.at(now)?),
        b"TICK" => {
            args::tick::tick(from_keys())?;
            Op::Tick
        }
        verb => return read(verb, words(), from_keys()).map(|()| Command::Read),
    };
    Ok(Command::Op(op))
}

/// The number behind the key, or 0.
fn number(args: &[&[u8]]) -> i64 {
    let text = args.get(2).and_then(|word| std::str::from_utf8(word).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Parses a command that only reads.
fn read(verb: &[u8], words: Words<'_>, from_keys: Words<'_>) -> Parsed<()> {
    match verb {
        b"GET" => args::get::message(words).map(drop),
        b"LEN" => args::len::len(words).map(drop),
        b"PEEK" => args::peek::peek(words).map(drop),
        b"LIST" => args::list::list(words).map(drop),
        b"GROUPS" => args::groups::groups(words).map(drop),
        b"BATCHES" | b"LIMITS" => args::batches::batches(words).map(drop),
        b"CHILDREN" => args::children::children(words).map(drop),
        b"WAIT" => args::wait::wait(words).map(drop),
        b"ROUTE" => args::family::route(from_keys).map(drop),
        b"PARTITIONS" => args::family::partitions(from_keys).map(drop),
        b"NINFO" => args::family::info(from_keys).map(drop),
        _ => Ok(()),
    }
}
