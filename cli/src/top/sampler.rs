//! Asks the server, again and again, in a thread of its own.

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

/// What the user looks at: asked for more closely than the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// The queue.
    pub queue: Vec<u8>,
    /// Which of its groups.
    pub wanted: Wanted,
    /// How many of them at most.
    pub most: usize,
}

/// Something to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Stop deliveries of a queue, or of a group of it.
    Pause(Vec<u8>, Option<Vec<u8>>),
    /// Go on with them.
    Resume(Vec<u8>, Option<Vec<u8>>),
    /// Let all dead messages run again.
    Redrive(Vec<u8>),
}

/// To the sampler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Look at this more closely.
    Focus(Focus),
    /// Change this.
    Do(Deed),
}

/// A named consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consumer {
    /// Printable.
    pub name: String,
    /// Its leases.
    pub running: u64,
    /// Messages it has acked.
    pub acked: u64,
    /// Messages it has nacked.
    pub nacked: u64,
    /// When it last asked for something, on the queue's clock.
    pub last_seen: Option<u64>,
}

/// The closer look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// At what.
    pub focus: Focus,
    /// The groups, or why they are not known.
    pub groups: Result<Groups, String>,
    /// The consumers; none where that may not be asked.
    pub consumers: Vec<Consumer>,
}

/// All that was seen at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The queues, by name.
    pub queues: Vec<Queue>,
    /// Whether all keys were looked at yet.
    pub complete: bool,
    /// The closer look, if there is a focus and its queue exists.
    pub detail: Option<Detail>,
}

/// From the sampler.
#[derive(Debug, Clone)]
pub enum Update {
    /// New figures.
    Sample(Sample),
    /// A deed was done, or not: a sentence.
    Done(String),
    /// The server does not answer, or not what was asked; it is tried again.
    Lost(String),
}

/// How often all keys are searched for new queues.
const SEARCH: Duration = Duration::from_secs(5);

/// How long the search may go on before the next figures are shown.
const SEARCH_SLICE: Duration = Duration::from_millis(100);

/// How soon a new focus is looked at.
const SOON: Duration = Duration::from_millis(100);

/// The thread's state.
pub struct Sampler {
    endpoint: Endpoint,
    interval: Duration,
    pattern: Option<String>,
    names: Vec<Vec<u8>>,
    /// `None` where the names are given.
    scan: Option<Scan>,
    searched: Option<Instant>,
    focus: Option<Focus>,
    inbox: Receiver<Request>,
    outbox: Sender<Update>,
}

impl Sampler {
    /// A sampler that listens to `inbox` and tells `outbox`.
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

    /// A broken connection is made anew at the next sample.
    fn lost(&mut self, server: &mut Option<Server>, failure: &Failure) -> Update {
        if matches!(failure, Failure::Lost(_)) {
            *server = None;
            // Half a walk on one server says nothing about the next.
            self.scan = self.scan.take().map(|_| Scan::default());
        }
        Update::Lost(failure.to_string())
    }

    /// Serves requests until the next sample is due: at once after a deed, soon
    /// after a change of focus; a held arrow key must not make a flood of
    /// samples. `None` at the end.
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
                    let told = match done {
                        Ok(done) => done,
                        Err(failure) => {
                            self.lost(server, &failure);
                            format!("not done: {failure}")
                        }
                    };
                    self.outbox.send(Update::Done(told)).ok()?;
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
        let detail = focus.map(|focus| look(server, focus)).transpose()?;
        Ok(Sample {
            at: Instant::now(),
            queues,
            complete,
            detail,
        })
    }

    /// Goes on searching for queues; whether all keys were seen once.
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

fn look(server: &mut Server, focus: Focus) -> Result<Detail, Failure> {
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

/// Does it; a sentence about what was done.
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
