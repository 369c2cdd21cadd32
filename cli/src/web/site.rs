//! The state that all requests share: the figures, the connections, and the rights of users.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::access::Access;
use super::audit::Audit;
use super::jobs::Jobs;
use super::live::Versions;
use super::prometheus::Prometheus;
use crate::failure::Failure;
use crate::model::change::{Target, ALL};
use crate::model::day::{Day, Days};
use crate::model::instance::{self, Instance};
use crate::model::queue::Queue;
use crate::model::search::{self, Place};
use crate::model::trouble;
use crate::model::watch::{Board, Watch};
use crate::model::workers::Workers;
use crate::server::{Endpoint, Scope, Server};
use crate::time_text::here;

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
    /// The file in which the last day is kept.
    history: Option<PathBuf>,
    /// The Prometheus from which the last day comes, if it does not come from here.
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
    /// The events of the last day.
    pub days: Days,
    /// The last queue in which trouble was looked for.
    suspected: Vec<u8>,
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

    /// Keeps the last day in a file, and reads the file of an earlier run.
    pub fn with_history(mut self, path: Option<PathBuf>) -> Result<Site, Failure> {
        let Some(path) = path else {
            return Ok(self);
        };
        let error = |error: io::Error| Failure::mistake(format!("{}: {error}", path.display()));
        match fs::read(&path) {
            Ok(text) => self.live().days = Days::read(&String::from_utf8_lossy(&text)),
            // A file that cannot be written is found now, and not after five minutes.
            Err(none) if none.kind() == io::ErrorKind::NotFound => {
                fs::write(&path, "").map_err(error)?;
            }
            Err(failed) => return Err(error(failed)),
        }
        self.history = Some(path);
        Ok(self)
    }

    /// Takes the last day from a Prometheus.
    pub fn with_prometheus(mut self, prometheus: Option<Prometheus>) -> Site {
        self.prometheus = prometheus;
        self
    }

    /// Returns the last day of a queue, or of all, and its source in words, if it does not
    /// come from here alone. May take seconds.
    pub fn day(&self, queue: Option<&[u8]>) -> (Option<Day>, String) {
        let asked = self
            .prometheus
            .as_ref()
            .map(|prometheus| prometheus.day(queue));
        let ours = || {
            let live = self.live();
            match queue {
                Some(name) => live.days.of(name).cloned(),
                None => Some(live.days.all().clone()),
            }
        };
        match asked {
            Some(Ok(day)) => (Some(day), "from Prometheus".to_owned()),
            Some(Err(why)) => (
                ours(),
                format!("from here, for Prometheus gives none: {why}"),
            ),
            None => (ours(), String::new()),
        }
    }

    /// Writes the last day to its file. If the program dies meanwhile, the old file stays.
    fn keep_history(&self, text: &str) {
        let Some(path) = &self.history else {
            return;
        };
        let mut fresh = path.clone().into_os_string();
        fresh.push(".new");
        if let Err(error) = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path)) {
            eprintln!("dq: the history: {}: {error}", path.display());
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
        let mut found = Vec::with_capacity(suspects.len());
        for queue in &suspects {
            found.push((queue.name.clone(), trouble::look(server, queue)?));
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
        live.days.forget(&round.gone);
        live.board.take(round);
        for (name, found) in found {
            live.board.note(&name, found);
            live.suspected = name;
        }
        let queues = || live.board.entries().map(|entry| &entry.queue);
        let waiting = queues().map(Queue::pending).sum();
        let late = queues().filter_map(Queue::overdue).max().unwrap_or(0);
        let before = live.days.newest();
        live.days.take(here(), &fresh, waiting, late);
        // The file is written once in each step.
        let is_due = self.history.is_some() && live.days.newest() != before;
        let written = is_due.then(|| live.days.write());
        live.place = server.place().to_owned();
        live.lost = None;
        drop(live);
        if let Some(text) = written {
            self.keep_history(&text);
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
