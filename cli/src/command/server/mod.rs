//! `dq server`: a Valkey or Redis server with the module, for those who have none.
//!
//! The server is the real one, with its own process. This program finds it, gives it a
//! durable configuration over its standard input (so that a password is in no process
//! list and in no file of ours), shows its log, and ends with it.

mod args;
mod directory;
mod engine;
mod ephemeral;
mod event;
mod log;
mod parent;
mod programs;
mod settings;

use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::output::Output;
use crate::sqs;
pub use args::Args;
use args::PORT;
use directory::Directory;
pub use engine::become_engine_command;
use engine::Engine;
use event::Event;
use log::Log;
pub use programs::Programs;
pub use settings::quoted;
use settings::Settings;

/// A second signal within this time is the first one, which some tools send twice.
const AGAIN: Duration = Duration::from_millis(500);

/// Runs a server until it ends or a signal asks for its end.
pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    if let Some(program) = &args.become_engine {
        return Err(engine::become_engine(program, args));
    }
    let programs = Programs::find()?;
    let settings = Settings::of(args, &programs)?;
    let (sender, events) = mpsc::channel();
    tell_of_signals(sender.clone())?;
    let code = match args.ephemeral {
        true => ephemeral::run(args, &programs, settings, (sender, events), out)?,
        false => durable(args, &programs, settings, (sender, events), out)?,
    };
    match code {
        0 => Ok(()),
        // The log has the reason, and the parent process gets the exit code of the server.
        code => std::process::exit(code),
    }
}

/// Runs a server that keeps its data.
fn durable(
    args: &Args,
    programs: &Programs,
    mut settings: Settings,
    (sender, events): (Sender<Event>, Receiver<Event>),
    out: &mut Output,
) -> Result<i32, Failure> {
    let port = match args.port {
        Some(0) => {
            return Err(Failure::mistake(
                "--port 0 takes a free port, which only --ephemeral does",
            ))
        }
        port => port.unwrap_or(PORT),
    };
    let directory = Directory::open(args.data.as_deref(), port)?;
    must_be_free(args, port)?;
    settings.keep_in(directory.path());
    let mut log = Log::default();
    let engine = Engine::start(programs, &settings, false, sender)?;
    let mut asked: Option<Instant> = None;
    for event in events {
        match event {
            Event::Line(line) => {
                if let Some(line) = log.take(&line) {
                    eprintln!("{line}");
                }
                if log.is_ready_now() {
                    // The server continues if nobody reads this.
                    let _ = introduce(out, &log, args, port, directory.path());
                    if let Some(sqs) = args.sqs {
                        sqs::beside(port, sqs);
                    }
                }
            }
            Event::Asked => match asked {
                None => {
                    asked = Some(Instant::now());
                    eprintln!("dq server: stopping; the server writes its data (Ctrl-C again ends it at once)");
                    engine.ask_to_end();
                }
                // Some tools send a signal twice, to the process and to its group.
                Some(first) if first.elapsed() < AGAIN => {}
                Some(_) => engine.kill(),
            },
            Event::Orphaned => {}
            Event::Ended(ended) => {
                directory.leave(&ended);
                if asked.is_some() && ended.code() == 0 {
                    eprintln!(
                        "dq server: stopped, all data is in {}",
                        directory.path().display()
                    );
                } else if !log.was_ready() {
                    let why = log.why(&ended, "the server has ended before it was ready");
                    return Err(Failure::Mistake(why));
                } else {
                    eprintln!("dq server: the server has ended{ended}");
                }
                return Ok(ended.code());
            }
        }
    }
    Err(Failure::Output(
        "the server is not watched any more".to_owned(),
    ))
}

/// Says where the server is, once it can be used.
fn introduce(
    out: &mut Output,
    log: &Log,
    args: &Args,
    port: u16,
    data: &Path,
) -> Result<(), Failure> {
    let place = match args.bind.is_empty() {
        true => "127.0.0.1".to_owned(),
        false => args.bind.join(" "),
    };
    out.line(&format!(
        "dq server: {} is ready on {place}, port {port}",
        log.version()
    ))?;
    out.line(&format!("  data      {}", data.display()))?;
    out.line(&format!(
        "  queues    dq --url redis://127.0.0.1:{port} top"
    ))?;
    if let Some(port) = args.sqs {
        out.line(&format!("  sqs       http://127.0.0.1:{port}"))?;
    }
    out.line("  stop      Ctrl-C")?;
    Ok(out.to.flush()?)
}

/// Fails if something listens on the port, in words that help. The server itself would
/// only say so in its log.
fn must_be_free(args: &Args, port: u16) -> Result<(), Failure> {
    let addresses = match args.bind.is_empty() {
        true => vec!["127.0.0.1".to_owned()],
        false => args.bind.clone(),
    };
    for address in addresses {
        let address = match address.trim_start_matches('-') {
            "*" => "0.0.0.0",
            address => address,
        };
        let Err(error) = TcpListener::bind((address, port)) else {
            continue;
        };
        let next = port.checked_add(1).unwrap_or(PORT);
        match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                return Err(Failure::mistake(format!(
                    "port {port} is in use: something listens on {address}:{port} already. \
                     Is it the server that you want? Otherwise take another port: --port {next}"
                )))
            }
            std::io::ErrorKind::PermissionDenied => {
                return Err(Failure::mistake(format!(
                    "this user may not listen on port {port}: take one above 1023, such as --port {PORT}"
                )))
            }
            // The server judges addresses better than we do.
            _ => {}
        }
    }
    Ok(())
}

/// Turns Ctrl-C, SIGTERM and the end of the terminal into events.
fn tell_of_signals(sender: Sender<Event>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            let _ = sender.send(Event::Asked);
        }
    });
    Ok(())
}
