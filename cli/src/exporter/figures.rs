//! The samples of servers, families and queues. docs/monitoring.md lists them with their meaning.

use redis::Value;

use super::page::{Page, Samples};
use crate::failure::Failure;
use crate::model::limit::Limit;
use crate::model::queue::{Queue, STATES};
use crate::model::record::{bytes, Record};
use crate::model::trouble::Trouble;
use crate::web::label;

/// The metrics of a server that are one field of `INFO dq`: metric, field and help. Here and below
/// a metric in seconds has a field in ms, or in us where its name says so.
const SERVER: &str = "\
unapplied_entries_total unapplied_entries Log entries that could not be applied since start
internal_errors_total internal_errors Internal errors since start
queues queues Queues
memory_bytes memory Memory of all queues
blocked_clients blocked_clients Clients that wait for messages
skipped_fires_total skipped_fires Fire times of schedules that met a full queue
timer_slices_total slices Slices of timer work
timer_longest_slice_seconds longest_slice_us The longest slice since start
timer_lag_seconds timer_lag_ms How late the timer was the last time
timer_lag_max_seconds timer_lag_max_ms How late the timer was at most since start
lateness_max_seconds lateness_max_ms The longest time from ready to delivered";

/// The metrics of a queue and of a family that are one field of DQ.INFO and DQ.NINFO.
const LOAD: &str = "\
blocked_clients blocked-clients Clients that wait for messages
oldest_ready_age_seconds oldest-ready-age How long the oldest ready message has waited
oldest_due_age_seconds oldest-due-age How long the oldest message is due that was not delivered";

/// The metrics of a queue that are one more field of DQ.INFO. A field that is a text counts as 1.
const QUEUE: &str = "\
payload_bytes bytes Payload bytes of pending and running messages
packed_bytes packed-bytes Bytes of payloads that are packed, as they were sent
packed_memory_bytes packed-memory Memory that the packed payloads take, with dictionaries
groups groups Groups with messages, settings or a hold
batches batches Batches of which a message has not ended
consumers consumers Consumers known by name
paused paused 1 while the queue is paused
breakers_open breakers-open Groups whose breaker is open
deadto_moved_total deadto-moved Dead messages that went to the queue of DEADTO
deadto_stuck deadto-error 1 while dead messages cannot go to the queue of DEADTO
events_stopped events-error 1 while nothing can be added to the stream of EVENTS
waits_for_slot waits-for-slot 1 while what is due waits for other keys of its slot
sent_total sent Messages sent, by schedules too
duplicates_total duplicates Sends whose id was taken
delivered_total delivered Deliveries
redelivered_total redelivered Deliveries with an attempt above 1
acked_total acked Messages acked
nacked_total nacked Messages nacked, silently or not
timeouts_total timeouts Leases that ran out
deaths_total deaths Messages that died, for whichever reason
expired_total expired Messages that died of their TTL
cancellations_total cancellations Messages cancelled
redriven_total redriven Dead messages that were run again";

/// The quantiles of lateness, with their fields in DQ.INFO and in `INFO dq`.
const QUANTILES: [(&str, &str, &str); 2] = [
    ("0.5", "lateness-p50", "lateness_p50_ms"),
    ("0.99", "lateness-p99", "lateness_p99_ms"),
];

/// Adds the metrics of a table, with the numbers of their fields.
fn add_all(of: &mut Samples, table: &'static str, number: impl Fn(&str) -> f64) {
    for line in table.lines() {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (name, field, help) = (word(), word(), word());
        let unit = match (name.ends_with("_seconds"), field.ends_with("_us")) {
            (false, _) => 1.0,
            (true, false) => 1e3,
            (true, true) => 1e6,
        };
        of.add(name, help, number(field) / unit);
    }
}

/// Returns a field as a number: whether it is so, and whether there is a text, as 1 and 0.
fn number(info: &Record, field: &str) -> f64 {
    match info.get(field) {
        Value::Int(n) => *n as f64,
        Value::Nil | Value::Boolean(false) => 0.0,
        _ => 1.0,
    }
}

/// Adds the samples of `INFO dq`; `place` is the server, within quotation marks.
///
/// Errors: the server has no module.
pub fn of_server(page: &mut Page, reply: &Value, place: &str) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(bytes(reply).unwrap_or_default());
    let fields = text.lines().filter_map(|line| {
        let (name, value) = line.trim_end().split_once(':')?;
        Some((name.strip_prefix("dq_")?, value))
    });
    let fields: Vec<(&str, &str)> = fields.collect();
    let find = |name: &str| fields.iter().find(|(known, _)| *known == name);
    if find("queues").is_none() {
        return Err(Failure::mistake("the server has no dq module"));
    }
    let text = |name: &str| find(name).map_or("unknown", |(_, value)| *value);
    let n = |name: &str| text(name).parse().unwrap_or(0.0);
    let node = format!("node=\"{place}\"");
    let build = ["version", "revision"].map(|name| label(text(name).as_bytes()));
    let labels = format!("{node},version=\"{}\",revision=\"{}\"", build[0], build[1]);
    let help = "Always 1; the labels say which module runs";
    page.of("dq_", labels).add("build_info", help, 1.0);
    let mut of = page.of("dq_", node);
    add_all(&mut of, SERVER, n);
    for state in STATES {
        let help = "Messages of all queues by state";
        of.add_by("messages", help, ("state", state), n(state));
    }
    for (quantile, _, field) in QUANTILES {
        let help = "Time from ready to delivered, over all deliveries";
        let by = ("quantile", quantile);
        of.add_by("lateness_seconds", help, by, n(field) / 1e3);
    }
    for (name, calls) in &fields {
        if let Some(verb) = name.strip_prefix("calls_") {
            let calls = calls.parse().unwrap_or(0.0);
            of.add_by("calls_total", "Calls by verb", ("verb", verb), calls);
        }
    }
    Ok(())
}

/// Adds the samples of DQ.NINFO.
pub fn of_family(page: &mut Page, sum: &Record, labels: String) {
    let mut of = page.of("dq_family_", labels);
    let help = "Queues of the family on this node";
    of.add("queues", help, number(sum, "queues"));
    load(&mut of, sum);
}

/// Adds what there is in a queue or a family, and how long it waits.
fn load(of: &mut Samples, info: &Record) {
    let n = |field: &str| number(info, field);
    for state in STATES {
        of.add_by("messages", "Messages by state", ("state", state), n(state));
    }
    add_all(of, LOAD, n);
    if info.number("lateness-max").is_some() {
        for (quantile, field, _) in QUANTILES {
            let (help, by) = ("Time from ready to delivered", ("quantile", quantile));
            of.add_by("lateness_seconds", help, by, n(field) / 1e3);
        }
        let help = "The longest time from ready to delivered";
        of.add("lateness_max_seconds", help, n("lateness-max") / 1e3);
    }
}

/// Adds the samples of a queue; `held` is the number of its held groups.
pub fn of_queue(page: &mut Page, info: &Record, queue: &Queue, held: usize, labels: &str) {
    let mut of = page.of("dq_queue_", labels.to_owned());
    load(&mut of, info);
    let n = |field: &str| number(info, field);
    add_all(&mut of, QUEUE, n);
    let batch = n("held") - n("parents") - n("parked");
    for (reason, count) in [
        ("children", n("parents")),
        ("signal", n("parked")),
        ("batch", batch),
    ] {
        let help = "Held messages by what they wait for";
        of.add_by("held_messages", help, ("reason", reason), count);
    }
    let help = "Groups that can give nothing and have no lease, 1000 at most";
    of.add("held_groups", help, held as f64);
    let help = "1 while the queue takes no new messages";
    of.add("closed", help, f64::from(queue.closed));
    if n("maxlen") > 0.0 {
        of.add("max_messages", "MAXLEN, where it is set", n("maxlen"));
    }
    if let Some(due) = queue.next_due_at {
        let help = "When the next delayed or retried message is due";
        of.add("next_due_timestamp_seconds", help, due as f64 / 1e3);
    }
}

/// Adds the samples of limits. The names of a pattern are added up: there may be one for each
/// user.
pub fn of_limits(page: &mut Page, limits: &[Limit], labels: &str) {
    let mut of = page.of("dq_queue_", labels.to_owned());
    let mut rules: Vec<&[u8]> = limits.iter().filter_map(|l| l.rule.as_deref()).collect();
    rules.sort();
    rules.dedup();
    for rule in rules {
        let names = || limits.iter().filter(|l| l.rule.as_deref() == Some(rule));
        let never = names().filter(|limit| limit.is_never).count();
        let text = label(rule);
        let mut add = |name, help, value: u64| {
            of.add_by(name, help, ("limit", &text), value as f64);
        };
        let help = "Messages that run under a limit";
        add("limit_running", help, names().map(|l| l.running).sum());
        let help = "Groups that wait for a limit";
        add(
            "limit_waiting_groups",
            help,
            names().map(|l| l.waiting).sum(),
        );
        let help = "Names of a limit for which the first that waits costs more than it ever allows";
        add("limit_never", help, never as u64);
    }
}

/// Adds how long the oldest held message waits for what never comes by itself.
pub fn of_trouble(page: &mut Page, found: &[Trouble], labels: String) {
    let mut of = page.of("dq_queue_", labels);
    let help = "How long a message is held by what does not end by itself";
    for one in found.iter().filter(|one| one.code != "never") {
        let age = one.age.unwrap_or(0) as f64 / 1e3;
        of.add_by("stuck_seconds", help, ("reason", one.code), age);
    }
}
