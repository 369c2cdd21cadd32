//! A server for tests: in memory, on a free port, gone with the process that wanted it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use percent_encoding::{utf8_percent_encode, NON_ALPHANUMERIC};
use redis::{Client, Connection, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};

use super::args::Args;
use super::directory::Temporary;
use super::engine::Engine;
use super::event::Event;
use super::log::Log;
use super::parent;
use super::programs::Programs;
use super::settings::Settings;
use crate::failure::Failure;
use crate::output::Output;
use crate::sqs;

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two tries to reach the server.
const PAUSE: Duration = Duration::from_millis(1);
/// How many free ports are tried. Another process may take each of them in the moment
/// between its choice and its use.
const PORTS: usize = 50;

/// Runs the server until a signal asks for its end, or the process that has asked for the
/// server has ended. Prints its URL when it is ready. Returns the code to end with.
pub fn run(
    args: &Args,
    programs: &Programs,
    mut settings: Settings,
    (sender, events): (Sender<Event>, Receiver<Event>),
    out: &mut Output,
) -> Result<i32, Failure> {
    let directory = Temporary::new()?;
    settings.keep_in(directory.path());
    parent::watch(sender.clone());
    // The engine is killed when this function returns: its data is in memory only.
    let _engine = Engine::start(programs, &settings, true, sender)?;
    let mut log = Log::default();
    let Some(mut link) = connect(directory.path(), &settings, &events, &mut log)? else {
        return Ok(0);
    };
    let port = open_port(&mut link, args.port)?;
    // From now on clients use the port, so the socket's file can be removed.
    let _ = fs::remove_file(directory.path().join("dq.sock"));
    let user = match settings.password() {
        Some(password) => format!(":{}@", utf8_percent_encode(password, NON_ALPHANUMERIC)),
        None => String::new(),
    };
    if let Some(sqs) = args.sqs {
        sqs::beside(port, sqs);
    }
    out.line(&format!("redis://{user}127.0.0.1:{port}"))?;
    out.to.flush()?;
    for event in events {
        match event {
            Event::Line(line) => {
                log.take(&line);
            }
            Event::Asked | Event::Orphaned => return Ok(0),
            Event::Ended(ended) => {
                eprintln!("dq: {}", log.why(&ended, "the server has ended"));
                return Ok(ended.code());
            }
        }
    }
    Ok(0)
}

/// Waits until the server answers on its socket. Returns nothing if it is not wanted any
/// more.
fn connect(
    directory: &Path,
    settings: &Settings,
    events: &Receiver<Event>,
    log: &mut Log,
) -> Result<Option<Connection>, Failure> {
    let until = Instant::now() + PATIENCE;
    let held = File::open(directory)?;
    let client = Client::open(
        ConnectionAddr::Unix(socket(directory, &held))
            .into_connection_info()?
            .set_redis_settings(match settings.password() {
                Some(password) => RedisConnectionInfo::default().set_password(password),
                None => RedisConnectionInfo::default(),
            }),
    )?;
    loop {
        match client.get_connection() {
            Ok(link) => return Ok(Some(link)),
            Err(error) if error.code().is_some() => return Err(error.into()),
            Err(_) => {}
        }
        match events.recv_timeout(PAUSE) {
            Ok(Event::Line(line)) => {
                log.take(&line);
            }
            Ok(Event::Asked | Event::Orphaned) => return Ok(None),
            Ok(Event::Ended(ended)) => {
                let why = log.why(&ended, "the server has ended before it was ready");
                return Err(Failure::Mistake(why));
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
            Err(_) => return Err(Failure::Lost("the server does not answer".to_owned())),
        }
    }
}

/// Returns the path of the socket. The length of such a path is limited, and that of the
/// directory for temporary files is not.
fn socket(directory: &Path, held: &File) -> PathBuf {
    match cfg!(target_os = "linux") {
        true => format!("/proc/self/fd/{}/dq.sock", held.as_raw_fd()).into(),
        false => directory.join("dq.sock"),
    }
}

/// Lets the server listen on this port, or on a free one. Its answer says that it has
/// the port, so nobody else can have taken it.
fn open_port(link: &mut Connection, wanted: Option<u16>) -> Result<u16, Failure> {
    let wanted = wanted.filter(|&port| port != 0);
    let mut result = Err(Failure::Lost("there is no free port".to_owned()));
    for _ in 0..PORTS {
        let port = match wanted {
            Some(port) => port,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
                .local_addr()?
                .port(),
        };
        let set: Result<(), _> = redis::cmd("CONFIG")
            .arg(&["SET", "port"])
            .arg(port)
            .query(link);
        match set {
            Ok(()) => return Ok(port),
            Err(_) if wanted.is_some() => {
                return Err(Failure::mistake(format!(
                    "port {port} is in use; without --port a free one is taken"
                )))
            }
            Err(error) => result = Err(error.into()),
        }
    }
    result
}
