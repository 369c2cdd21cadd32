//! Asks the server at an interval, in a thread of its own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::model::change::Change;
use crate::model::group::{self, Groups, Wanted};
use crate::model::instance;
use crate::model::watch::{Round, Watch};
use crate::model::workers::{Worker, Workers};
use crate::server::{Endpoint, Server};
use crate::time_text::Millis;

/// The view that the user looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// The queue of which details are asked for. There are no details for a family.
    pub queue: Option<Vec<u8>>,
    /// The queues on the screen, whose figures are to be new in each sample.
    pub seen: Vec<Vec<u8>>,
    /// The groups of it that are asked for.
    pub wanted: Wanted,
    /// Maximum number of these groups.
    pub most: usize,
}

/// A request to the sampler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Ask for details of this queue from now on.
    Focus(Focus),
    /// Make this change.
    Do(Change),
}

/// The details of one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// The queue, and the groups that were asked for.
    pub focus: Focus,
    /// The groups, or why they are not known.
    pub groups: Result<Groups, String>,
    /// The consumers. Empty if the user may not ask for them.
    pub consumers: Vec<Worker>,
}

/// The figures of one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// New figures of queues.
    pub round: Round,
    /// The details, if there is a focus and its queue exists.
    pub detail: Option<Detail>,
    /// The dangers for the queues, if that was asked.
    pub warnings: Option<Vec<String>>,
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

/// Maximum time until details of a new focus are asked for.
const SOON: Duration = Duration::from_millis(100);

/// Interval at which the server is asked for its version and settings.
const WARNED: Duration = Duration::from_secs(30);

/// The state of the thread.
pub struct Sampler {
    endpoint: Endpoint,
    interval: Duration,
    watch: Watch,
    /// When the server was last asked about itself.
    warned: Option<Instant>,
    focus: Option<Focus>,
    inbox: Receiver<Request>,
    outbox: Sender<Update>,
}

impl Sampler {
    /// Creates a sampler that reads requests from `inbox` and sends updates to `outbox`.
    pub fn new(
        endpoint: Endpoint,
        watch: Watch,
        interval: Millis,
        inbox: Receiver<Request>,
        outbox: Sender<Update>,
    ) -> Sampler {
        Sampler {
            endpoint,
            interval: Duration::from_millis(interval),
            watch,
            warned: None,
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
            self.watch.restart();
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
                Ok(Request::Do(change)) => {
                    let done = self
                        .connected(server)
                        .and_then(|server| change.execute(server));
                    let outcome = match done {
                        Ok(redriven) => change.done(redriven),
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
        let connected = match server.take() {
            Some(server) => server,
            None => self.endpoint.connect()?,
        };
        let server = server.insert(connected);
        let seen = self.focus.as_ref().map(|focus| focus.seen.as_slice());
        let round = self.watch.step(server, seen.unwrap_or_default())?;
        let detail = match &self.focus {
            Some(focus) => details(server, focus)?,
            None => None,
        };
        let warnings = match self.warned {
            Some(at) if at.elapsed() < WARNED => None,
            _ => {
                self.warned = Some(Instant::now());
                Some(instance::warnings(&instance::all(server)?))
            }
        };
        Ok(Sample {
            round,
            detail,
            warnings,
        })
    }
}

/// Asks for the details of a queue. `None` if it does not exist, or there is none.
fn details(server: &mut Server, focus: &Focus) -> Result<Option<Detail>, Failure> {
    let Some(queue) = &focus.queue else {
        return Ok(None);
    };
    let groups = match group::fetch(server, queue, focus.wanted, focus.most) {
        Ok(groups) => Ok(groups),
        Err(failure @ Failure::Refused(_)) => Err(failure.to_string()),
        Err(failure) => return Err(failure),
    };
    Ok(Some(Detail {
        focus: focus.clone(),
        groups,
        consumers: Workers::of_queue(server, queue)?.0,
    }))
}
