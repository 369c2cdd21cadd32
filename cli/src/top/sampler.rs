//! Asks the server at an interval, in a thread of its own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::Args;
use crate::failure::Failure;
use crate::model::group::{self, Groups, Wanted};
use crate::model::keys::{self, Scan};
use crate::model::queue::Queue;
use crate::model::record::{integer, Record};
use crate::server::{verb, Endpoint, Server};
use crate::text::{plural, printable};

/// The queue that the user looks at, of which details are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// The queue.
    pub queue: Vec<u8>,
    /// Which of its groups are asked for.
    pub wanted: Wanted,
    /// Maximum number of these groups.
    pub most: usize,
}

/// A change that the user has confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Pause a queue, or a group of it.
    Pause(Vec<u8>, Option<Vec<u8>>),
    /// Resume a queue, or a group of it.
    Resume(Vec<u8>, Option<Vec<u8>>),
    /// Redrive all dead messages.
    Redrive(Vec<u8>),
}

/// A request to the sampler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Ask for details of this queue from now on.
    Focus(Focus),
    /// Make this change.
    Do(Deed),
}

/// A named consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consumer {
    /// Its name, printable.
    pub name: String,
    /// Number of its leases.
    pub running: u64,
    /// Number of messages that it has acked.
    pub acked: u64,
    /// Number of messages that it has nacked.
    pub nacked: u64,
    /// When it last ran a command, by the queue's clock.
    pub last_seen: Option<u64>,
}

/// The details of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The queue, and the groups that were asked for.
    pub focus: Focus,
    /// The groups, or why they are not known.
    pub groups: Result<Groups, String>,
    /// The consumers. Empty if the user may not ask for them.
    pub consumers: Vec<Consumer>,
}

/// The figures of one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When they were read.
    pub at: Instant,
    /// The queues, by name.
    pub queues: Vec<Queue>,
    /// Whether all keys have been scanned yet.
    pub complete: bool,
    /// The details, if there is a focus and its queue exists.
    pub detail: Option<Detail>,
}

/// A message from the sampler.
#[derive(Debug, Clone)]
pub enum Update {
    /// New figures.
    Sample(Sample),
    /// A change was made or has failed, in one sentence.
    Done(String),
    /// The server does not answer, or gives another reply than expected. The sampler
    /// tries again.
    Lost(String),
}

/// Time between two scans of all keys for new queues.
const SEARCH: Duration = Duration::from_secs(5);

/// Maximum time of a scan before the next figures are shown.
const SEARCH_SLICE: Duration = Duration::from_millis(100);

/// Maximum time until details of a new focus are asked for.
const SOON: Duration = Duration::from_millis(100);

/// The state of the thread.
pub struct Sampler {
    endpoint: Endpoint,
    interval: Duration,
    pattern: Option<String>,
    names: Vec<Vec<u8>>,
    /// `None` if the command line names the queues.
    scan: Option<Scan>,
    searched: Option<Instant>,
    focus: Option<Focus>,
    inbox: Receiver<Request>,
    outbox: Sender<Update>,
}

impl Sampler {
    /// Creates a sampler that reads requests from `inbox` and sends updates to `outbox`.
    pub fn new(
        endpoint: Endpoint,
        args: &Args,
        inbox: Receiver<Request>,
        outbox: Sender<Update>,
    ) -> Sampler {
        let names: Vec<_> = args
            .queues
            .iter()
            .map(|name| name.clone().into_bytes())
            .collect();
        Sampler {
            endpoint,
            interval: Duration::from_millis(args.interval),
            pattern: args.pattern.clone(),
            scan: names.is_empty().then(Scan::default),
            names,
            searched: None,
            focus: None,
            inbox,
            outbox,
        }
    }

    /// Runs until the other end is gone.
    pub fn run(mut self, server: Server) {
        let mut server = Some(server);
        loop {
            let update = match self.sample(&mut server) {
                Ok(sample) => Update::Sample(sample),
                Err(failure) => self.lost(&mut server, &failure),
            };
            if self.outbox.send(update).is_err() || self.wait(&mut server).is_none() {
                return;
            }
        }
    }

    /// Handles a failure. A broken connection is made anew at the next sample.
    fn lost(&mut self, server: &mut Option<Server>, failure: &Failure) -> Update {
        if matches!(failure, Failure::Lost(_)) {
            *server = None;
            // Half a scan of one server is of no use on the next one.
            self.scan = self.scan.take().map(|_| Scan::default());
        }
        Update::Lost(failure.to_string())
    }

    /// Serves requests until the next sample is due. That is at once after a change and
    /// soon after a new focus, so that an arrow key that is held down does not cause a
    /// flood of samples. Returns `None` at the end.
    fn wait(&mut self, server: &mut Option<Server>) -> Option<()> {
        let mut due = Instant::now() + self.interval;
        loop {
            match self
                .inbox
                .recv_timeout(due.saturating_duration_since(Instant::now()))
            {
                Ok(Request::Focus(focus)) => {
                    self.focus = Some(focus);
                    due = due.min(Instant::now() + SOON);
                }
                Ok(Request::Do(deed)) => {
                    let done = self
                        .connected(server)
                        .and_then(|server| execute(server, &deed));
                    let outcome = match done {
                        Ok(done) => done,
                        Err(failure) => {
                            self.lost(server, &failure);
                            format!("not done: {failure}")
                        }
                    };
                    self.outbox.send(Update::Done(outcome)).ok()?;
                    due = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => return Some(()),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn connected<'a>(&self, server: &'a mut Option<Server>) -> Result<&'a mut Server, Failure> {
        match server {
            Some(server) => Ok(server),
            None => Ok(server.insert(self.endpoint.connect()?)),
        }
    }

    fn sample(&mut self, server: &mut Option<Server>) -> Result<Sample, Failure> {
        let server = self.connected(server)?;
        let complete = self.search(server)?;
        let queues = keys::fetch(server, &self.names)?;
        let focus = self
            .focus
            .clone()
            .filter(|focus| queues.iter().any(|q| q.name == focus.queue));
        let detail = focus.map(|focus| details(server, focus)).transpose()?;
        Ok(Sample {
            at: Instant::now(),
            queues,
            complete,
            detail,
        })
    }

    /// Goes on scanning for queues. Returns whether all keys have been scanned once.
    fn search(&mut self, server: &mut Server) -> Result<bool, Failure> {
        let Some(scan) = &mut self.scan else {
            return Ok(true);
        };
        if self.searched.is_some_and(|at| at.elapsed() < SEARCH) {
            return Ok(true);
        }
        match scan.step(server, self.pattern.as_deref(), SEARCH_SLICE)? {
            Some(names) => {
                self.names = names;
                self.searched = Some(Instant::now());
            }
            None => {
                self.names.extend_from_slice(scan.so_far());
                self.names.sort();
                self.names.dedup();
            }
        }
        Ok(self.searched.is_some())
    }
}

fn details(server: &mut Server, focus: Focus) -> Result<Detail, Failure> {
    let groups = match group::fetch(server, &focus.queue, focus.wanted, focus.most) {
        Ok(groups) => Ok(groups),
        Err(failure @ Failure::Refused(_)) => Err(failure.to_string()),
        Err(failure) => return Err(failure),
    };
    let consumers = match server.call(&verb("DQ.CONSUMERS", &focus.queue)) {
        Ok(reply) => Record::all(reply)?.iter().map(consumer).collect(),
        Err(Failure::Refused(_)) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    Ok(Detail {
        focus,
        groups,
        consumers,
    })
}

fn consumer(record: &Record) -> Consumer {
    Consumer {
        name: record.text("name"),
        running: record.count("running"),
        acked: record.count("acked"),
        nacked: record.count("nacked"),
        last_seen: record.number("last-seen"),
    }
}

/// Makes a change. Returns a sentence about it.
fn execute(server: &mut Server, deed: &Deed) -> Result<String, Failure> {
    let (name, queue, group) = match deed {
        Deed::Pause(queue, group) => ("DQ.PAUSE", queue, group.as_deref()),
        Deed::Resume(queue, group) => ("DQ.RESUME", queue, group.as_deref()),
        Deed::Redrive(queue) => ("DQ.REDRIVE", queue, None),
    };
    let mut cmd = verb(name, queue);
    if let Some(group) = group {
        cmd.arg("GROUP").arg(group);
    }
    if let Deed::Redrive(_) = deed {
        cmd.arg("ALL");
    }
    let reply = server.call(&cmd)?;
    let what = match group {
        Some(group) => format!("group {} of {}", printable(group), printable(queue)),
        None => printable(queue),
    };
    Ok(match deed {
        Deed::Pause(..) => format!("{what} is paused"),
        Deed::Resume(..) => format!("{what} goes on"),
        Deed::Redrive(_) => {
            let redriven = plural(integer(&reply)?, "message");
            format!("{what}: {redriven} pending again")
        }
    })
}
