//! `dq exporter`: the figures of the queues for Prometheus, asked from the server at the moment
//! in which Prometheus asks for them.
//!
//! `figures` makes the samples of a reply, `page` writes them as text.

mod figures;
mod page;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;

use crate::failure::Failure;
use crate::model::queue::Queue;
use crate::model::record::Record;
use crate::model::{family, group, instance, keys, limit, trouble};
use crate::output::Output;
use crate::server::{verb, Endpoint, Server};
use crate::time_text::{parse_interval, Millis};
use crate::web::{connections, label, packing, Listen};
use page::Page;

/// Number of queues that are looked at together.
const AT_ONCE: usize = 200;

/// Number of held groups of a queue that are counted. More than that are as alarming.
const HELD: usize = 1000;

/// The text format of Prometheus.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Options of `dq exporter`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these queues, or those that match: 'jobs:*'; without, all of the server. Names spare a
    /// server of many other keys the search
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only queues whose names match, as of KEYS: 'jobs:*'
    #[arg(long = "match", value_name = "GLOB", conflicts_with = "queues")]
    pattern: Option<String>,
    /// Where to listen: HOST:PORT, or a PORT of this machine only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9122", value_parser = Listen::parse)]
    listen: Listen,
    /// A database to look at; may be repeated [default: that of the URL]
    #[arg(long, value_name = "NUMBER")]
    db: Vec<i64>,
    /// A family, whose queues are added up and have no figures of their own; may be repeated
    #[arg(long, value_name = "FAMILY")]
    family: Vec<String>,
    /// No figures of single queues, only those of servers and families
    #[arg(long)]
    sums: bool,
    /// Time between two searches for queues
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_interval)]
    discover: Millis,
}

/// Serves the figures until the program is ended.
pub fn run(endpoint: &Endpoint, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let exporter = Arc::new(Exporter::new(endpoint, args)?);
    args.listen.serve("dq exporter", out, |listener| {
        let metrics = get(move |headers| answer(exporter, headers));
        connections::serve(listener, Router::new().route("/metrics", metrics))
    })
}

async fn answer(exporter: Arc<Exporter>, headers: HeaderMap) -> Response {
    let gzip = packing::is_wanted(&headers);
    // The figures wait for the server of the queues, which must not hold up other connections.
    let answer = tokio::task::spawn_blocking(move || {
        packing::answer(StatusCode::OK, KIND, exporter.page(), gzip)
    });
    answer
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The queues that were found, and when, by database.
type Found = HashMap<i64, (Instant, Vec<Vec<u8>>)>;

/// What is asked for, and the queues that were found.
struct Exporter {
    /// The server, with each of the databases.
    endpoints: Vec<Endpoint>,
    /// The named queues, and the pattern of those that are searched for.
    names: Vec<Vec<u8>>,
    pattern: Option<Vec<u8>>,
    families: Vec<String>,
    sums: bool,
    discover: Duration,
    /// Locked while a page is made, so that an impatient Prometheus does not multiply the work.
    found: Mutex<Found>,
}

impl Exporter {
    /// Errors: more than one pattern, or a mistake in the URL.
    fn new(endpoint: &Endpoint, args: &Args) -> Result<Exporter, Failure> {
        instance::first_look(endpoint)?;
        let (names, pattern) = keys::chosen(&args.queues, args.pattern.as_deref())?;
        let dbs = once(&args.db).into_iter().map(|db| endpoint.with_db(db));
        Ok(Exporter {
            endpoints: match args.db.is_empty() {
                true => vec![endpoint.clone()],
                false => dbs.collect(),
            },
            names: once(&names),
            pattern,
            families: once(&args.family),
            sums: args.sums,
            discover: Duration::from_millis(args.discover),
            found: Mutex::default(),
        })
    }

    /// Returns the figures as text; with dq_up 0, and nothing else, where a server gives no answer.
    fn page(&self) -> String {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let mut page = Page::default();
        let collected = self.collect(&mut page, &mut found);
        if let Err(failure) = &collected {
            eprintln!("dq: no figures from the server: {failure}");
            page = Page::default();
            found.clear();
        }
        let up = collected.is_ok() as u64;
        let mut of = page.of("dq_", String::new());
        of.add("up", "1 if the server gave its figures", up as f64);
        let took = begun.elapsed().as_secs_f64();
        of.add("scrape_duration_seconds", "How long this page took", took);
        page.text()
    }

    fn collect(&self, page: &mut Page, found: &mut Found) -> Result<(), Failure> {
        for (i, endpoint) in self.endpoints.iter().enumerate() {
            let server = &mut endpoint.connect()?;
            let db = server.db();
            for node in 0..server.look()? {
                let place = label(server.place_of(node).as_bytes());
                if i == 0 {
                    let reply = server.call_on(node, redis::cmd("INFO").arg("dq"))?;
                    figures::of_server(page, &reply, &place)?;
                }
                for name in &self.families {
                    let name = name.as_bytes();
                    let sum = server.call_on(node, &verb("DQ.NINFO", name))?;
                    let name = label(name);
                    let labels = format!("db=\"{db}\",family=\"{name}\",node=\"{place}\"");
                    figures::of_family(page, &Record::of(sum)?, labels);
                }
            }
            if self.sums {
                continue;
            }
            for names in self.names(server, found)?.chunks(AT_ONCE) {
                queues(page, server, names)?;
            }
        }
        Ok(())
    }

    /// Returns the names of the queues of a database.
    fn names<'a>(
        &'a self,
        server: &mut Server,
        found: &'a mut Found,
    ) -> Result<&'a [Vec<u8>], Failure> {
        if !self.names.is_empty() {
            return Ok(&self.names);
        }
        let db = server.db();
        let known = found.get(&db);
        if known.is_none_or(|(at, _)| at.elapsed() >= self.discover) {
            let mut names = keys::all(server, self.pattern.as_deref())?;
            let is_added_up = |family: &[u8]| self.families.iter().any(|f| f.as_bytes() == family);
            names.retain(|name| !family::of(name).is_some_and(is_added_up));
            found.insert(db, (Instant::now(), names));
        }
        Ok(found.get(&db).map_or(&[], |(_, names)| names))
    }
}

/// Returns each of these once: a database, queue or family that is named twice is one series.
fn once<T: Ord + Clone>(given: &[T]) -> Vec<T> {
    BTreeSet::from_iter(given).into_iter().cloned().collect()
}

/// Adds the figures of some queues of a database. Those that are gone have none.
fn queues(page: &mut Page, server: &mut Server, names: &[Vec<u8>]) -> Result<(), Failure> {
    let (mut infos, mut found) = (Vec::new(), Vec::new());
    for (name, reply) in names.iter().zip(keys::infos(server, names)?) {
        match reply {
            Ok(info) => {
                found.push(Queue::of(name, info.clone())?);
                infos.push(Record::of(info)?);
            }
            Err(failure) if failure.is_about_key() => {}
            Err(failure) => return Err(failure),
        }
    }
    let held = group::blocked(server, &found, HELD)?;
    let limits = limit::of_queues(server, &found)?;
    let troubles = trouble::look(server, &found)?;
    let db = server.db();
    let more = held.into_iter().zip(limits.iter().zip(&troubles));
    for ((queue, info), (held, (limits, trouble))) in found.iter().zip(&infos).zip(more) {
        let labels = format!("db=\"{db}\",queue=\"{}\"", label(&queue.name));
        figures::of_queue(page, info, queue, held, &labels);
        figures::of_limits(page, limits, &labels);
        figures::of_trouble(page, trouble, labels);
    }
    Ok(())
}
