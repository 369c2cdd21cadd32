//! The load generator of `make bench`. `run` prints what it measured as lines of
//! `name=value`. `lateness` prints a line for each wait: when it began and how long it
//! took (see `sample`). Errors go to stderr, with exit code 1.
//!
//! ```text
//! dq-load run      --port P [--db N] [--connections 50] [--pipeline 64] [--payload 100] [--pid PID]
//!                  --commands N  (--do | --take-receipts | --take-entries | --take-bulk) TEMPLATE ...
//! dq-load lateness --port P [--db N] [--payload 100] --queue KEY [--queues 1] --messages N --span-ms N
//!                  --consumers N
//! ```
//!
//! See `template` for the blanks of a TEMPLATE, and `traffic` for the order of the
//! steps of a run.

mod connect;
mod cpu;
mod lateness;
mod resp;
mod sample;
mod template;
mod traffic;

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use connect::Server;
use lexopt::prelude::*;
use resp::Shape;
use template::Template;
use traffic::{Load, Step};

#[derive(Default)]
struct Options {
    verb: String,
    port: u16,
    database: u32,
    connections: usize,
    pipeline: usize,
    payload: usize,
    commands: u64,
    pid: Option<u32>,
    steps: Vec<Step>,
    duration: Duration,
    queue: String,
    queues: usize,
    messages: u64,
    consumers: usize,
}

fn main() -> ExitCode {
    match options().map_err(|error| error.to_string()).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dq-load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options {
        connections: 50,
        pipeline: 64,
        payload: 100,
        queues: 1,
        ..Options::default()
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(verb) if options.verb.is_empty() => options.verb = verb.string()?,
            Long("port") => options.port = number(&mut parser)?,
            Long("db") => options.database = number(&mut parser)?,
            Long("connections") => options.connections = number(&mut parser)?,
            Long("pipeline") => options.pipeline = number(&mut parser)?,
            Long("payload") => options.payload = number(&mut parser)?,
            Long("commands") => options.commands = number(&mut parser)?,
            Long("pid") => options.pid = Some(number(&mut parser)?),
            Long("do") => options.steps.push(step(&mut parser, None)?),
            Long("take-receipts") => {
                options
                    .steps
                    .push(step(&mut parser, Some(Shape::Receipts))?);
            }
            Long("take-entries") => options.steps.push(step(&mut parser, Some(Shape::Entries))?),
            Long("take-bulk") => options.steps.push(step(&mut parser, Some(Shape::Bulk))?),
            Long("span-ms") => {
                options.duration = Duration::from_millis(number(&mut parser)?);
            }
            Long("queue") => options.queue = parser.value()?.string()?,
            Long("queues") => options.queues = number(&mut parser)?,
            Long("messages") => options.messages = number(&mut parser)?,
            Long("consumers") => options.consumers = number(&mut parser)?,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

fn number<T: FromStr>(parser: &mut lexopt::Parser) -> Result<T, lexopt::Error>
where
    T::Err: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    parser.value()?.parse()
}

fn step(parser: &mut lexopt::Parser, take: Option<Shape>) -> Result<Step, lexopt::Error> {
    let template = Template::parse(&parser.value()?.string()?)?;
    Ok(Step { template, take })
}

fn run(options: Options) -> Result<(), String> {
    let server = Server {
        port: options.port,
        database: options.database,
    };
    match options.verb.as_str() {
        "run" => {
            let done = traffic::run(&Load {
                server,
                connections: options.connections,
                pipeline: options.pipeline,
                commands: options.commands,
                payload: options.payload,
                steps: options.steps,
                pid: options.pid,
            })?;
            println!("commands={}", done.commands);
            println!("taken={}", done.taken);
            println!("empty={}", done.empty);
            println!("seconds={}", done.elapsed.as_secs_f64());
            println!("server_us={}", done.server_nanos as f64 / 1000.0);
        }
        "lateness" => lateness::run(&lateness::Spread {
            server,
            queue: options.queue,
            queues: options.queues,
            messages: options.messages,
            span: options.duration,
            consumers: options.consumers,
            payload: options.payload,
        })?
        .print()
        .map_err(|error| error.to_string())?,
        verb => return Err(format!("no such verb: {verb}")),
    }
    Ok(())
}
