//! The history of a round: every call before it is made, and its answer when it comes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A time since the round began, in ms.
pub type Ms = f64;

/// How many faults after the last call of a message its lines show.
const NEXT: usize = 2;

/// The way in which a call has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// No answer came: it may have been done or not.
    None,
    /// It was done.
    Done,
    /// It was refused with an error, and must have changed nothing.
    Refused,
}

/// One DQ.SEND with an id of its own, which is sent again until it is answered.
#[derive(Debug, Clone)]
pub struct Send {
    /// Its id.
    pub id: String,
    /// Its group, or nothing.
    pub group: Option<String>,
    /// Its number among the messages of its producer.
    pub number: u64,
    /// Its DELAY, in ms.
    pub delay: Ms,
    /// When it was first asked, and when it was answered: never is infinite.
    pub begin: Ms,
    /// See `begin`.
    pub end: Ms,
    /// The answer.
    pub answer: Answer,
    /// How often it was sent.
    pub tries: u32,
    /// Whether a replica has it, too.
    pub sure: bool,
}

/// One message in the reply of a DQ.FETCH.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its id.
    pub id: String,
    /// Its group, or nothing.
    pub group: Option<String>,
    /// Its receipt, which grows with each delivery.
    pub receipt: i64,
    /// The number of the attempt.
    pub attempt: i64,
    /// When the FETCH was first asked, and when it was answered.
    pub begin: Ms,
    /// See `begin`.
    pub end: Ms,
    /// The length of its lease.
    pub lease: Ms,
    /// When it was delivered and due by the clock of the queue, in Unix ms.
    pub at: i64,
    /// See `at`.
    pub due: i64,
    /// Whether its payload was the one that was sent.
    pub intact: bool,
    /// Whether a replica has it, too.
    pub sure: bool,
}

/// The two ways in which a consumer settles a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// DQ.ACK: the work is done.
    Ack,
    /// DQ.NACK: the work has failed.
    Nack,
}

/// One DQ.ACK or DQ.NACK.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Which of them.
    pub kind: Kind,
    /// The message.
    pub id: String,
    /// The receipt.
    pub receipt: i64,
    /// When it was asked, and when it was answered: never is infinite.
    pub begin: Ms,
    /// See `begin`.
    pub end: Ms,
    /// The number of messages that it has changed. None if no answer came.
    pub count: Option<u64>,
    /// Whether a replica has it, too.
    pub sure: bool,
}

/// A failure which may undo the last calls: those that were answered after `from`, if no replica had them.
#[derive(Debug, Clone)]
pub struct Window {
    /// The earliest answer that may be undone.
    pub from: Ms,
    /// When the failure came.
    pub at: Ms,
    /// When everything went on.
    pub to: Ms,
}

/// The end of a message, as the queue tells it.
#[derive(Debug, Clone)]
pub struct End {
    /// Its state.
    pub state: String,
    /// How often it has failed.
    pub failures: u64,
    /// The reason of a dead one.
    pub reason: String,
}

/// Everything that has happened in a round.
#[derive(Debug, Default)]
pub struct History {
    /// The sends, in the order in which they were asked.
    pub sends: Vec<Send>,
    /// The deliveries, in the order of their answers.
    pub deliveries: Vec<Delivery>,
    /// The verdicts, in the order in which they were asked.
    pub verdicts: Vec<Verdict>,
    /// The FETCHes that took so long that the lease of a lost delivery may have run out: from, to.
    pub slow: Vec<(Ms, Ms)>,
    /// The faults of the server, each with its time.
    pub faults: Vec<(Ms, String)>,
    /// The failures after which calls may be undone.
    pub windows: Vec<Window>,
    /// All messages at the end.
    pub ends: BTreeMap<String, End>,
    /// The end after one more crash, where it differs.
    pub differences: Vec<String>,
}

impl History {
    /// Returns how many calls were answered.
    pub fn operations(&self) -> usize {
        let sends = self.sends.iter().filter(|s| s.answer != Answer::None);
        let verdicts = self.verdicts.iter().filter(|v| v.count.is_some());
        sends.count() + verdicts.count() + self.deliveries.len()
    }

    /// Returns whether a failure may have undone a call.
    pub fn undone(&self, begin: Ms, end: Ms, sure: bool) -> bool {
        !sure && self.windows.iter().any(|w| end > w.from && begin < w.to)
    }

    /// Returns the verdicts by receipt.
    pub fn by_receipt(&self) -> HashMap<i64, Vec<&Verdict>> {
        let mut found = HashMap::<i64, Vec<&Verdict>>::new();
        for verdict in &self.verdicts {
            found.entry(verdict.receipt).or_default().push(verdict);
        }
        found
    }

    /// Returns the sends that were answered and that a failure has undone, where it may, each with its age at
    /// that failure.
    pub fn gone(&self) -> Vec<(&Send, Ms)> {
        let gone = self.sends.iter().filter(|s| {
            s.answer == Answer::Done
                && self.undone(s.begin, s.end, s.sure)
                && !self.ends.contains_key(&s.id)
        });
        gone.map(|send| {
            let first = self
                .windows
                .iter()
                .find(|w| send.end > w.from && send.begin < w.to);
            (send, first.map_or(0.0, |w| (w.at - send.end).max(0.0)))
        })
        .collect()
    }

    /// Returns everything in the order of time, one line each: of some messages, or of all.
    pub fn lines(&self, ids: Option<&[String]>) -> Vec<String> {
        let wanted = |id: &String| ids.is_none_or(|ids| ids.contains(id));
        let mut lines: Vec<(Ms, String)> = Vec::new();
        for s in self.sends.iter().filter(|s| wanted(&s.id)) {
            let group = s.group.as_deref().unwrap_or("-");
            let delay = s.delay;
            let answer = match s.answer {
                Answer::Done => format!("answered after {:.1} ms", s.end - s.begin),
                Answer::Refused => "refused".to_owned(),
                Answer::None => "never answered".to_owned(),
            };
            let tries = s.tries;
            let words = format!(
                "SEND {} group {group} DELAY {delay}: {answer}, {tries} tries, on a replica: {}",
                s.id, s.sure
            );
            lines.push((s.begin, words));
        }
        for d in self.deliveries.iter().filter(|d| wanted(&d.id)) {
            let words = format!(
                "FETCH gave {} receipt {} attempt {}, answered after {:.1} ms, at {} due {} LEASE {}",
                d.id, d.receipt, d.attempt, d.end - d.begin, d.at, d.due, d.lease
            );
            lines.push((d.begin, words));
        }
        for v in self.verdicts.iter().filter(|v| wanted(&v.id)) {
            let answer = match v.count {
                Some(count) => format!("{count} after {:.1} ms", v.end - v.begin),
                None => "never answered".to_owned(),
            };
            let verb = match v.kind {
                Kind::Ack => "ACK",
                Kind::Nack => "NACK",
            };
            lines.push((
                v.begin,
                format!("{verb} {} receipt {}: {answer}", v.id, v.receipt),
            ));
        }
        let last = lines.iter().map(|(at, _)| *at).fold(0.0, Ms::max);
        let first = lines.iter().map(|(at, _)| *at).fold(last, Ms::min);
        // Of one message, those in its life and the next ones are of interest.
        let (life, next): (Vec<_>, Vec<_>) = self.faults.iter().partition(|(at, _)| *at < last);
        lines.extend(life.into_iter().filter(|(at, _)| *at >= first).cloned());
        lines.extend(next.into_iter().take(NEXT).cloned());
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut lines: Vec<String> = lines
            .into_iter()
            .map(|(at, words)| format!("{at:10.1} ms  {words}"))
            .collect();
        for (id, end) in self.ends.iter().filter(|(id, _)| wanted(id)) {
            lines.push(format!(
                "   the end     {id} is {}, {} failures {}",
                end.state, end.failures, end.reason
            ));
        }
        lines
    }
}

/// The history while it is written, by several threads.
pub struct Journal {
    start: Instant,
    history: Mutex<History>,
}

impl Journal {
    /// Begins a history now.
    pub fn begin() -> Journal {
        Journal {
            start: Instant::now(),
            history: Mutex::default(),
        }
    }

    /// Returns the time of the history.
    pub fn now(&self) -> Ms {
        self.start.elapsed().as_secs_f64() * 1000.0
    }

    /// Opens the history to write or read it.
    pub fn open(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is done to the server.
    pub fn fault(&self, words: impl Into<String>) {
        let now = self.now();
        self.open().faults.push((now, words.into()));
    }
}
