//! The state that all requests share: the figures, the connections, and the rights of users.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::access::Access;
use super::audit::Audit;
use super::history::HistoryFile;
use super::jobs::Jobs;
use super::live::Versions;
use super::prometheus::Prometheus;
use crate::failure::Failure;
use crate::model::change::{Target, ALL};
use crate::model::instance::{self, Instance};
use crate::model::past::Pasts;
use crate::model::queue::Queue;
use crate::model::run_times;
use crate::model::search::{self, Place};
use crate::model::series::{Span, View, GRAINS};
use crate::model::step::Step;
use crate::model::trouble;
use crate::model::watch::{Board, Watch};
use crate::model::workers::Workers;
use crate::server::{Endpoint, Scope, Server};
use crate::time_text::{here, Millis};

/// Maximum number of connections that are kept for the next request.
const IDLE: usize = 4;

/// Time after a request of its page for which a queue counts as being looked at.
const SEEN: Duration = Duration::from_secs(15);

/// Maximum number of queues whose figures are new in each sample.
const SEEN_MOST: usize = 500;

/// Interval at which the servers are asked for their version and settings.
const ASKED: Duration = Duration::from_secs(15);

/// Number of queues in which trouble is looked for in one step.
const SUSPECTS: usize = 20;

/// Number of queues whose run times are taken in one step.
const TIMED: usize = 20;

/// Time for which the consumers of all queues are not asked for again.
const WORKERS: Duration = Duration::from_millis(1500);

/// The state that all requests share.
pub struct Site {
    /// The address of the server.
    pub endpoint: Endpoint,
    /// The users who may see the pages.
    pub access: Access,
    /// Whether nothing can be changed.
    pub read_only: bool,
    /// The log to which actions are written.
    pub audit: Audit,
    /// The actions that were begun.
    pub jobs: Jobs,
    /// The versions that the open pages have been sent.
    pub versions: Versions,
    /// The file in which the history is kept.
    history: Option<HistoryFile>,
    /// The Prometheus from which the history comes, if it does not come from here.
    prometheus: Option<Prometheus>,
    idle: Mutex<Vec<Server>>,
    live: Mutex<Live>,
    workers: Mutex<Option<Arc<Workers>>>,
}

/// The figures of all queues, which a separate thread updates.
#[derive(Default)]
pub struct Live {
    /// The figures.
    pub board: Board,
    /// The address of the server.
    pub place: String,
    /// The reason why there are no new figures.
    pub lost: Option<String>,
    /// The figures that the servers report about themselves.
    pub instances: Vec<Instance>,
    /// What happened in the last week.
    pub pasts: Pasts,
    /// The last queue in which trouble was looked for.
    suspected: Vec<u8>,
    /// The last queue whose run times were taken, and the minute in which all were begun with.
    timed: (Vec<u8>, Millis),
    /// When the servers were asked.
    asked: Option<Instant>,
    seen: Vec<(Vec<u8>, Instant)>,
}

impl Site {
    /// Creates the site. The server is not asked yet.
    pub fn new(endpoint: Endpoint, access: Access, read_only: bool, audit: Audit) -> Site {
        Site {
            endpoint,
            access,
            read_only,
            audit,
            jobs: Jobs::default(),
            versions: Versions::default(),
            history: None,
            prometheus: None,
            idle: Mutex::default(),
            live: Mutex::default(),
            workers: Mutex::default(),
        }
    }

    /// Keeps the history in a file, and goes on with that of an earlier run.
    pub fn with_history(mut self, file: Option<(HistoryFile, Pasts)>) -> Site {
        if let Some((file, pasts)) = file {
            self.live().pasts = pasts;
            self.history = Some(file);
        }
        self
    }

    /// Takes the history from a Prometheus.
    pub fn with_prometheus(mut self, prometheus: Option<Prometheus>) -> Site {
        self.prometheus = prometheus;
        self
    }

    /// Returns the history of a queue, or of all, and its source in words, if it does not
    /// come from here alone. May take seconds.
    pub fn history(&self, queue: Option<&[u8]>, span: Span) -> (View<Step>, String) {
        let asked = self.prometheus.as_ref();
        let ours = || self.live().pasts.view(queue, span, here());
        match asked.map(|prometheus| prometheus.view(queue, span)) {
            Some(Ok(view)) => (view, "from Prometheus".to_owned()),
            Some(Err(why)) => (
                ours(),
                format!("from here, for Prometheus gives none: {why}"),
            ),
            None => (ours(), String::new()),
        }
    }

    /// Returns the figures. They are locked only while somebody reads them.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        lock(&self.live)
    }

    /// Returns the places of messages of a state, or of any, in the queues of a target. Of a
    /// pattern they are those of the last figures.
    pub fn places(
        &self,
        server: &mut Server,
        target: &Target,
        state: &str,
    ) -> Result<Vec<Place>, Failure> {
        let Target::Matching(pattern) = target else {
            let queues = target.queues(server)?;
            return search::places(server, &queues, state);
        };
        let named = match pattern == ALL {
            true => None,
            false => Some(target.queues(server)?),
        };
        let live = self.live();
        let queues = live.board.entries().map(|entry| &entry.queue);
        // The names that a pattern gives are sorted.
        let is_named = |queue: &&Queue| match &named {
            Some(names) => names.binary_search(&queue.name).is_ok(),
            None => server.sees(&queue.name),
        };
        let places = queues
            .filter(is_named)
            .flat_map(|queue| Place::all_of(queue, state));
        Ok(places.collect())
    }

    /// Returns the consumers of the queues of a scope. Those of all queues have their rates since
    /// they were asked for the last time, and are asked once in a while, however many people look.
    pub fn workers(&self, scope: &Scope) -> Result<Arc<Workers>, Failure> {
        let before = lock(&self.workers).clone();
        let before = match before {
            Some(known) if known.age() < WORKERS && !scope.is_limited() => return Ok(known),
            before => before,
        };
        let queues: Vec<Queue> = {
            let live = self.live();
            let queues = live.board.entries().map(|entry| &entry.queue);
            let seen = queues.filter(|queue| scope.sees(&queue.name));
            seen.cloned().collect()
        };
        let mut found = self.read(scope, |server| Workers::fetch(server, queues.iter()))?;
        if scope.is_limited() {
            return Ok(Arc::new(found));
        }
        if let Some(before) = before {
            found.since(&before);
        }
        let found = Arc::new(found);
        *lock(&self.workers) = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Notes that somebody looks at these queues.
    pub fn look_at(&self, names: impl IntoIterator<Item = Vec<u8>>) {
        let now = Instant::now();
        let mut live = self.live();
        live.seen.retain(|(_, at)| now - *at < SEEN);
        for name in names.into_iter().take(SEEN_MOST) {
            match live.seen.iter_mut().find(|(known, _)| *known == name) {
                Some((_, at)) => *at = now,
                None => live.seen.push((name, now)),
            }
        }
        let surplus = live.seen.len().saturating_sub(SEEN_MOST);
        live.seen.drain(..surplus);
    }

    /// Reads from the server, of the queues of a scope. If an idle connection turns out to be broken, a new one is
    /// made, and `read` runs again.
    pub fn read<T>(
        &self,
        scope: &Scope,
        read: impl Fn(&mut Server) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let idle = lock(&self.idle).pop();
        if let Some(mut server) = idle {
            server.limit_to(scope.clone());
            match read(&mut server) {
                Err(Failure::Lost(_)) => lock(&self.idle).clear(),
                result => {
                    self.keep(server);
                    return result;
                }
            }
        }
        let mut server = self.endpoint.connect()?;
        server.limit_to(scope.clone());
        let result = read(&mut server);
        if !matches!(result, Err(Failure::Lost(_))) {
            self.keep(server);
        }
        result
    }

    /// Changes something in the queues of a scope, over a new connection: after a failure of a used connection it
    /// would be unknown whether the change was made.
    pub fn change<T>(
        &self,
        scope: &Scope,
        change: impl FnOnce(&mut Server) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut server = self.endpoint.connect()?;
        server.limit_to(scope.clone());
        let result = change(&mut server);
        if !matches!(result, Err(Failure::Lost(_))) {
            self.keep(server);
        }
        result
    }

    fn keep(&self, server: Server) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE {
            idle.push(server);
        }
    }

    /// Updates the figures for ever, in a thread of its own.
    pub fn watch(self: Arc<Site>, mut watch: Watch, interval: Duration) {
        thread::spawn(move || {
            let mut server = None;
            loop {
                let begun = Instant::now();
                if let Err(failure) = self.sample(&mut server, &mut watch) {
                    if matches!(failure, Failure::Lost(_)) {
                        server = None;
                        watch.restart();
                    }
                    self.live().lost = Some(failure.to_string());
                }
                // At least half of the time the server is left alone.
                let taken = begun.elapsed();
                thread::sleep(interval.saturating_sub(taken).max(taken));
            }
        });
    }

    fn sample(&self, server: &mut Option<Server>, watch: &mut Watch) -> Result<(), Failure> {
        let connected = match server.take() {
            Some(server) => server,
            None => self.endpoint.connect()?,
        };
        let server = server.insert(connected);
        let seen: Vec<_> = {
            let live = self.live();
            let fresh = live.seen.iter().filter(|(_, at)| at.elapsed() < SEEN);
            fresh.map(|(name, _)| name.clone()).collect()
        };
        let round = watch.step(server, &seen)?;
        let suspects = {
            let live = self.live();
            live.board.suspects(&live.suspected, SUSPECTS)
        };
        let found = trouble::look(server, &suspects)?;
        let timed = self.take_turn();
        let mut runs = Vec::with_capacity(timed.len());
        for queue in &timed {
            runs.push(run_times::newest(server, queue, GRAINS[0].step)?);
        }
        let is_due = self.live().asked.is_none_or(|at| at.elapsed() > ASKED);
        let instances = match is_due {
            true => Some(instance::all(server)?),
            false => None,
        };
        let mut live = self.live();
        if let Some(instances) = instances {
            live.instances = instances;
            live.asked = Some(Instant::now());
        }
        let fresh = round.fresh.clone();
        live.pasts.forget(&round.gone);
        live.board.take(round);
        for (queue, found) in suspects.into_iter().zip(found) {
            live.board.note(&queue.name, found);
            live.suspected = queue.name;
        }
        let queues = || live.board.entries().map(|entry| &entry.queue);
        let waiting = queues().map(Queue::pending).sum();
        let late = queues().filter_map(Queue::overdue).max().unwrap_or(0);
        let before = live.pasts.newest();
        live.pasts.take(here(), &fresh, waiting, late);
        for (queue, runs) in timed.iter().zip(&runs) {
            live.pasts.take_runs(here(), &queue.name, runs);
        }
        // The file is written once in five minutes.
        let is_due = live.pasts.newest() != before;
        live.place = server.place().to_owned();
        live.lost = None;
        drop(live);
        if let Some(file) = self.history.as_ref().filter(|_| is_due) {
            // The figures are not locked while the file is written.
            let names = self.live().pasts.names();
            let queues = names.iter().map(|name| self.live().pasts.lines(Some(name)));
            let all = self.live().pasts.lines(None);
            file.write(std::iter::once(all).chain(queues));
        }
        Ok(())
    }

    /// Returns the next queues whose run times are taken. In each minute all have one turn.
    fn take_turn(&self) -> Vec<Queue> {
        let mut live = self.live();
        let minute = here() / GRAINS[0].step;
        if live.timed.1 != minute {
            live.timed = (Vec::new(), minute);
        }
        let next = live.board.finishers(&live.timed.0, TIMED);
        if let Some(last) = next.last() {
            live.timed.0 = last.name.clone();
        }
        next
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
