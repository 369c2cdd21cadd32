//! `dq bench`: a send, fetch and ack loop, for a quick look at a server.

use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use serde_json::json;

use crate::bounds;
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::output::Output;
use crate::server::{verb, Server};
use crate::table::Table;

/// How long the queue stays after an interrupted run, in ms.
const LEFT_BEHIND: u32 = 600_000;

/// Options of `dq bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many messages in a pipelined round
    #[arg(short = 'n', long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(bounds::MANY.range()))]
    count: u64,
    /// Bytes of a payload
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    size: u32,
    /// Messages of one FETCH
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    batch: u64,
    /// Commands in one round trip of the pipelined rounds
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(bounds::COUNT.range()))]
    pipeline: u64,
}

/// The time that one round took.
struct Round {
    name: &'static str,
    messages: u64,
    took: Duration,
    /// The time of each round trip.
    trips: Vec<Duration>,
}

impl Round {
    fn start(name: &'static str) -> (Round, Instant) {
        let round = Round {
            name,
            messages: 0,
            took: Duration::ZERO,
            trips: Vec::new(),
        };
        (round, Instant::now())
    }

    fn trip<T>(&mut self, run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let start = Instant::now();
        let result = run()?;
        self.trips.push(start.elapsed());
        Ok(result)
    }

    fn end(mut self, start: Instant) -> Round {
        self.took = start.elapsed();
        self.trips.sort_unstable();
        self
    }

    fn rate(&self) -> f64 {
        self.messages as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Returns the time that `percent` of the round trips did not exceed, in ms.
    fn percentile(&self, percent: usize) -> f64 {
        let last = self.trips.len().saturating_sub(1);
        let trip = self
            .trips
            .get(last * percent / 100)
            .copied()
            .unwrap_or_default();
        trip.as_secs_f64() * 1e3
    }
}

/// Measures in a queue of its own, and removes that queue.
pub fn run(server: &mut Server, args: &Args, out: &mut Output) -> Result<(), Failure> {
    let queue = format!(
        "dq-bench:{}:{}",
        std::process::id(),
        crate::time_text::here()
    );
    let queue = queue.as_bytes();
    let mut cmd = verb("DQ.CREATE", queue);
    cmd.arg("LEASE").arg(LEFT_BEHIND);
    server.call(&cmd)?;
    // The queue expires if this program is interrupted.
    let expires = server.call(redis::cmd("PEXPIRE").arg(queue).arg(LEFT_BEHIND));
    let rounds = expires.and_then(|_| measure(server, queue, args));
    let removed = server.call(redis::cmd("UNLINK").arg(queue));
    let rounds = rounds?;
    removed?;
    if out.json {
        let rounds: serde_json::Value = rounds
            .iter()
            .map(|round| {
                json!({
                    "round": round.name,
                    "messages": round.messages,
                    "seconds": round.took.as_secs_f64(),
                    "per-second": round.rate(),
                    "round-trip-p50-ms": round.percentile(50),
                    "round-trip-p99-ms": round.percentile(99),
                })
            })
            .collect();
        return out.json(&rounds);
    }
    let mut table = Table::new(&[
        "ROUND",
        ">MESSAGES",
        ">SECONDS",
        ">PER SECOND",
        ">TRIP P50",
        ">TRIP P99",
    ]);
    for round in &rounds {
        table.row(vec![
            round.name.to_owned(),
            round.messages.to_string(),
            format!("{:.2}", round.took.as_secs_f64()),
            format!("{:.0}", round.rate()),
            format!("{:.3} ms", round.percentile(50)),
            format!("{:.3} ms", round.percentile(99)),
        ]);
    }
    table.write(out.to)?;
    out.line(&format!(
        "one connection, payloads of {} bytes, {} commands in a pipelined trip",
        args.size, args.pipeline
    ))
}

fn measure(server: &mut Server, queue: &[u8], args: &Args) -> Result<[Round; 5], Failure> {
    let payload = vec![b'x'; args.size as usize];
    let few = args.count.min(2000);
    Ok([
        send("send, one by one", server, queue, &payload, few, 1)?,
        take("fetch+ack, one by one", server, queue, few, 1, 1)?,
        send(
            "send, pipelined",
            server,
            queue,
            &payload,
            args.count,
            args.pipeline,
        )?,
        take(
            "fetch+ack, pipelined",
            server,
            queue,
            args.count.div_ceil(2),
            1,
            args.pipeline,
        )?,
        take(
            "fetch+ack in batches, pipelined",
            server,
            queue,
            args.count / 2,
            args.batch,
            args.pipeline,
        )?,
    ])
}

fn send(
    name: &'static str,
    server: &mut Server,
    queue: &[u8],
    payload: &[u8],
    count: u64,
    pipeline: u64,
) -> Result<Round, Failure> {
    let mut cmd = verb("DQ.SEND", queue);
    cmd.arg(payload);
    let (mut round, start) = Round::start(name);
    while round.messages < count {
        let cmds = vec![cmd.clone(); pipeline.min(count - round.messages) as usize];
        for reply in round.trip(|| server.pipeline(&cmds))? {
            reply?;
        }
        round.messages += cmds.len() as u64;
    }
    Ok(round.end(start))
}

/// Takes `count` messages, as the loop of a worker does: each command fetches a batch
/// and acks one of an earlier round trip.
fn take(
    name: &'static str,
    server: &mut Server,
    queue: &[u8],
    count: u64,
    batch: u64,
    pipeline: u64,
) -> Result<Round, Failure> {
    let (mut round, start) = Round::start(name);
    let mut held: Vec<Vec<i64>> = Vec::new();
    let mut wanted = count;
    while wanted > 0 || !held.is_empty() {
        let mut cmds = Vec::new();
        let mut acks = held.drain(..);
        for _ in 0..pipeline {
            let receipts = acks.next();
            let fetched = wanted.min(batch);
            if receipts.is_none() && fetched == 0 {
                break;
            }
            wanted -= fetched;
            cmds.push(fetch(queue, fetched, receipts.as_deref()));
        }
        drop(acks);
        for reply in round.trip(|| server.pipeline(&cmds))? {
            let Value::Array(messages) = reply? else {
                // At the end an ACK is sent without a FETCH.
                continue;
            };
            round.messages += messages.len() as u64;
            let receipts: Result<Vec<i64>, Failure> = messages.iter().map(receipt).collect();
            held.push(receipts?);
        }
        held.retain(|receipts| !receipts.is_empty());
    }
    Ok(round.end(start))
}

fn fetch(queue: &[u8], count: u64, receipts: Option<&[i64]>) -> Cmd {
    if count == 0 {
        let mut cmd = verb("DQ.ACK", queue);
        cmd.arg(receipts);
        return cmd;
    }
    let mut cmd = verb("DQ.FETCH", queue);
    cmd.arg("COUNT").arg(count);
    if let Some(receipts) = receipts {
        cmd.arg("ACK").arg(receipts.len()).arg(receipts);
    }
    cmd
}

fn receipt(message: &Value) -> Result<i64, Failure> {
    match message {
        Value::Array(parts) => match parts.get(1) {
            Some(Value::Int(receipt)) => Ok(*receipt),
            _ => Err(unexpected()),
        },
        _ => Err(unexpected()),
    }
}
