//! The history of queues from Prometheus, which also knows the time before `dq web` was started.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{to_bytes, Body};
use axum::http::header::{ACCEPT, HOST};
use axum::http::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;

use super::query::Query;
use crate::model::series::{Span, View};
use crate::model::step::Step;
use crate::time_text::{here, Millis};

/// Maximum time for an answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// Maximum size of an answer. 288 steps of five figures take some 40 kilobytes.
const LONGEST: usize = 1 << 20;

/// An answer is used for this long, also one that says that there is none.
const FRESH: Duration = Duration::from_secs(60);

/// Maximum number of answers that are kept. Each takes some six kilobytes.
const KEPT_ANSWERS: usize = 200;

/// The address of a Prometheus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    authority: String,
    /// The part of the path before `/api/v1`.
    path: String,
}

impl Source {
    /// Reads an address of the command line.
    pub fn parse(text: &str) -> Result<Source, String> {
        let uri: Uri = text.parse().map_err(|_| "this is no URL".to_owned())?;
        if uri.scheme_str() != Some("http") || uri.query().is_some() {
            return Err("write it as http://prometheus:9090".to_owned());
        }
        let authority = uri.authority().ok_or("it names no host")?;
        if authority.as_str().contains('@') {
            return Err("names and passwords in the URL are not supported".to_owned());
        }
        Ok(Source {
            authority: match authority.port() {
                Some(_) => authority.to_string(),
                None => format!("{authority}:80"),
            },
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// An answer, and the time at which it was received.
type Answer<T> = (Instant, Result<T, String>);

/// A span, and the name of a queue. All queues together have none.
type Asked = (Span, Option<Vec<u8>>);

/// The answers so far.
#[derive(Default)]
struct Answers {
    /// The histories.
    views: BTreeMap<Asked, Answer<View<Step>>>,
    /// The reason why there was no answer at all.
    down: Option<Answer<()>>,
}

fn is_fresh<T>(answer: &Answer<T>) -> bool {
    answer.0.elapsed() < FRESH
}

/// Asks a Prometheus for histories.
pub struct Prometheus {
    source: Source,
    /// Labels that choose the server of the queues among others, as PromQL has them.
    labels: String,
    answers: Mutex<Answers>,
}

impl Prometheus {
    /// Creates the state, without a request.
    pub fn new(source: Source, labels: &str) -> Prometheus {
        Prometheus {
            source,
            labels: labels.trim_matches([' ', '{', '}', ',']).to_owned(),
            answers: Mutex::default(),
        }
    }

    /// Returns a span of a queue, or of all, up to a minute old. The error says why there is none.
    pub fn view(&self, queue: Option<&[u8]>, span: Span) -> Result<View<Step>, String> {
        let lock = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (span, queue.map(<[u8]>::to_vec));
        {
            let mut answers = lock();
            if let Some((_, Err(why))) = answers.down.as_ref().filter(|down| is_fresh(down)) {
                return Err(why.clone());
            }
            let known = answers.views.get(&name);
            if let Some((_, known)) = known.filter(|known| is_fresh(known)) {
                return known.clone();
            }
            // Other visitors of this queue do not ask again. They see what was known before.
            let before = known.map(|(_, known)| known.clone());
            let before = before.unwrap_or_else(|| Err("it was asked just now".to_owned()));
            answers.views.retain(|_, known| is_fresh(known));
            if answers.views.len() < KEPT_ANSWERS {
                answers.views.insert(name.clone(), (Instant::now(), before));
            }
        }
        let empty = View::empty(span, here());
        let answer = self.fetch(queue, &empty);
        let mut answers = lock();
        let now = Instant::now();
        answers.down = match &answer {
            Err(why) => Some((now, Err(why.clone()))),
            Ok(_) => None,
        };
        let view = answer.and_then(|answer| filled(empty, &answer));
        // The answer is stored, unless there was no room for it.
        if let Some(known) = answers.views.get_mut(&name) {
            *known = (now, view.clone());
        }
        view
    }

    /// Asks for the steps of a view, each at its end.
    fn fetch(&self, queue: Option<&[u8]>, view: &View<Step>) -> Result<Vec<u8>, String> {
        let end = |step: usize| view.first + step as u64 * view.step;
        let seconds = |at: Millis| (at / 1000).to_string();
        let query = Query::default()
            .with("query", promql(&self.labels, queue, view.step).as_bytes())
            .with("start", seconds(end(1)).as_bytes())
            .with("end", seconds(end(view.values.len())).as_bytes())
            .with("step", seconds(view.step).as_bytes());
        let address = query.link(&format!("{}/api/v1/query_range", self.source.path));
        get(&self.source.authority, &address)
    }
}

/// Returns the query for all figures at once: those of each step, at its end.
fn promql(labels: &str, queue: Option<&[u8]>, step: Millis) -> String {
    // Prometheus asks once a minute or more often, and an increase needs two answers. So that of a
    // minute is the mean of four.
    let (window, parts) = match step / 60_000 {
        0 | 1 => (4, 4),
        minutes => (minutes, 1),
    };
    let mut labels: Vec<String> = match labels {
        "" => Vec::new(),
        labels => vec![labels.to_owned()],
    };
    labels.extend(queue.map(|name| format!("queue=\"{}\"", label(name))));
    let among = |more: &str| {
        let more = Some(more).filter(|more| !more.is_empty());
        let all: Vec<&str> = labels.iter().map(String::as_str).chain(more).collect();
        all.join(",")
    };
    let sum = |counter: &str| {
        let among = among("");
        format!("sum(increase(dq_queue_{counter}_total{{{among}}}[{window}m]))/{parts}")
    };
    let pending = among("state=~\"ready|delayed|blocked|retry|held\"");
    let figures = [
        ("sent", sum("sent")),
        ("acked", sum("acked")),
        ("deaths", sum("deaths")),
        ("waiting", format!("sum(dq_queue_messages{{{pending}}})")),
        (
            "late",
            format!(
                "max(max_over_time(dq_queue_oldest_due_age_seconds{{{}}}[{}m]))",
                among(""),
                window / parts
            ),
        ),
    ];
    let parts =
        figures.map(|(name, of)| format!("label_replace({of},\"figure\",\"{name}\",\"\",\"\")"));
    parts.join(" or ")
}

/// Returns the name of a queue as the exporter gives it, within quotation marks. A backslash is
/// doubled, so that no two names become the same text: one series each.
pub fn label(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

/// Fills a view from the answer of a Prometheus.
fn filled(mut view: View<Step>, answer: &[u8]) -> Result<View<Step>, String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|_| "the answer is no JSON")?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return Err(error.to_owned());
    }
    let series = answer.pointer("/data/result").and_then(Value::as_array);
    let series = series.ok_or("the answer has no figures")?;
    for one in series {
        let figure = one.pointer("/metric/figure").and_then(Value::as_str);
        let values = one.get("values").and_then(Value::as_array);
        for pair in values.into_iter().flatten() {
            let (Some(at), Some(value)) = (number(pair.get(0)), number(pair.get(1))) else {
                continue;
            };
            // The step that ends at this time.
            let ends = ((at * 1000.0) as u64).saturating_sub(view.first) / view.step;
            let step = usize::try_from(ends)
                .ok()
                .and_then(|ends| ends.checked_sub(1));
            let Some(step) = step.and_then(|step| view.values.get_mut(step)) else {
                continue;
            };
            let step = step.get_or_insert_default();
            // Numbers that are too large, negative or none are cut to the range of a step.
            match figure {
                Some("sent") => step.sent = value.round() as u32,
                Some("acked") => step.acked = value.round() as u32,
                Some("deaths") => step.deaths = value.round() as u32,
                Some("waiting") => step.waiting = value.round() as u32,
                Some("late") => step.late = (value * 1000.0).round() as u32,
                _ => {}
            }
        }
    }
    if view.known().next().is_none() {
        return Err("it has no figures of dq: does it ask the exporter?".to_owned());
    }
    Ok(view)
}

fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    }
}

/// Asks a server for a page. Blocks the thread, which must be none of the connections.
fn get(authority: &str, address: &str) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let answer = runtime.block_on(async {
        let answer = tokio::time::timeout(PATIENCE, ask(authority, address)).await;
        answer.unwrap_or_else(|_| Err(format!("no answer in {} s", PATIENCE.as_secs())))
    });
    // The runtime does not wait for the lookup of a host name.
    runtime.shutdown_background();
    answer
}

async fn ask(authority: &str, address: &str) -> Result<Vec<u8>, String> {
    let words = |error: &dyn std::error::Error| error.to_string();
    let stream = tokio::net::TcpStream::connect(authority).await;
    let stream = TokioIo::new(stream.map_err(|error| words(&error))?);
    let connected = hyper::client::conn::http1::handshake(stream).await;
    let (mut sender, connection) = connected.map_err(|error| words(&error))?;
    let request = Request::get(address)
        .header(HOST, authority)
        .header(ACCEPT, "application/json")
        .body(Body::empty())
        .map_err(|error| words(&error))?;
    // The task ends with the runtime.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| words(&error))?;
    let status = answer.status();
    let bytes = to_bytes(Body::new(answer.into_body()), LONGEST).await;
    let bytes = bytes.map_err(|error| words(&error))?;
    // With 400 and 422 the answer names the error of the query.
    match status.is_success() || bytes.starts_with(b"{") {
        true => Ok(bytes.to_vec()),
        false => Err(format!("it answers {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_taken() {
        let of = |text: &str| Source::parse(text).map(|source| (source.authority, source.path));
        assert_eq!(
            of("http://p:9090"),
            Ok(("p:9090".to_owned(), String::new()))
        );
        assert_eq!(of("http://p/a/"), Ok(("p:80".to_owned(), "/a".to_owned())));
        for bad in [
            "p:9090",
            "https://p",
            "http://ann:pw@p:9090",
            "http://p/?x=1",
            "http://",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_query_names_the_queue_as_the_exporter_does() {
        let all = promql("", None, 300_000);
        assert_eq!(all.matches("label_replace(").count(), 5);
        assert!(all.starts_with("label_replace(sum(increase(dq_queue_sent_total{}[5m]))/1,"));
        let minutes = promql("", None, 60_000);
        assert!(minutes.contains("sum(increase(dq_queue_sent_total{}[4m]))/4,"));
        assert!(minutes.contains("max_over_time(dq_queue_oldest_due_age_seconds{}[1m])"));
        let one = promql("job=\"dq\"", Some(b"a\"\\\xff\n"), 300_000);
        let name = r#"queue="a\"\\\\\\xff\n""#;
        assert!(
            one.contains(&format!("dq_queue_messages{{job=\"dq\",{name},state=~")),
            "{one}"
        );
    }

    #[test]
    fn an_answer_fills_a_view() {
        let empty = View::<Step>::empty(Span::Day, 1000 * 300_000);
        let at = |step: u64| step * 300;
        let answer = format!(
            r#"{{"status":"success","data":{{"resultType":"matrix","result":[
            {{"metric":{{"figure":"sent"}},"values":[[{},"1.4"],[{},"3"],[{},"9"]]}},
            {{"metric":{{"figure":"late"}},"values":[[{},"0.25"]]}}]}}}}"#,
            at(998),
            at(1000),
            at(1001),
            at(998)
        );
        let view = filled(empty.clone(), answer.as_bytes()).unwrap();
        let known: Vec<_> = view
            .known()
            .map(|(at, step)| (at / 300_000, step.sent, step.late))
            .collect();
        // Each step is known by its end, and the last one ends now.
        assert_eq!(known, [(997, 1, 250), (999, 3, 0)]);
        let error = r#"{"status":"error","error":"parse error"}"#;
        let why = |answer: &[u8]| filled(empty.clone(), answer).unwrap_err();
        assert_eq!(why(error.as_bytes()), "parse error");
        let none = br#"{"data":{"result":[]}}"#;
        assert!(why(none).contains("no figures of dq"));
        assert_eq!(why(b"<html>"), "the answer is no JSON");
    }
}
