//! The connection of an actor, which follows the queue from one server to the other.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, Value};

use crate::failure::Failure;
use crate::server::{Endpoint, Server};

/// How long an actor looks for a server before it takes its call for lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two tries to connect.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a replica may take to confirm a call, in ms.
const CONFIRM: u32 = 200;

/// The place of the queue, and the state of the round, for all actors.
pub struct Place {
    port: AtomicU16,
    /// Whether no fault comes any more: now the queue is drained.
    pub healed: AtomicBool,
    /// Whether the round is given up.
    pub over: AtomicBool,
    /// Whether each call is to be confirmed by a replica.
    pub replicated: bool,
}

impl Place {
    /// Describes the place of a queue, whose calls a replica confirms or not.
    pub fn new(port: u16, replicated: bool) -> Place {
        Place {
            port: port.into(),
            healed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            replicated,
        }
    }

    /// Says at which port of this machine the queue is from now on.
    pub fn is_at(&self, port: u16) {
        self.port.store(port, Ordering::Release);
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Acquire)
    }
}

/// The outcome of a call.
pub enum Outcome {
    /// The reply, and whether a replica has confirmed it.
    Done(Value, bool),
    /// An error: nothing was done.
    Refused,
    /// No reply, so nobody knows.
    Unknown,
}

/// A connection that is made anew after each fault.
pub struct Link<'a> {
    place: &'a Place,
    server: Option<(u16, Server)>,
}

impl<'a> Link<'a> {
    /// Prepares a connection to the place of the queue.
    pub fn to(place: &'a Place) -> Link<'a> {
        Link {
            place,
            server: None,
        }
    }

    /// Makes one call, and lets a replica confirm it if it has changed something.
    pub fn call(&mut self, cmd: &Cmd, confirm: bool) -> Outcome {
        let Some(server) = self.server() else {
            return Outcome::Unknown;
        };
        match server.call(cmd) {
            Ok(reply) => {
                let sure = confirm && self.place.replicated && self.confirmed();
                Outcome::Done(reply, sure)
            }
            Err(Failure::Refused(words)) if !words.starts_with("UNBLOCKED") => Outcome::Refused,
            Err(_) => {
                self.server = None;
                Outcome::Unknown
            }
        }
    }

    fn confirmed(&mut self) -> bool {
        let mut wait = redis::cmd("WAIT");
        wait.arg(1).arg(CONFIRM);
        let Some((_, server)) = &mut self.server else {
            return false;
        };
        match server.call(&wait) {
            Ok(Value::Int(count)) => count >= 1,
            Ok(_) | Err(Failure::Refused(_)) => false,
            Err(_) => {
                self.server = None;
                false
            }
        }
    }

    fn server(&mut self) -> Option<&mut Server> {
        let begin = Instant::now();
        while self
            .server
            .as_ref()
            .is_none_or(|(port, _)| *port != self.place.port())
        {
            if begin.elapsed() > PATIENCE || self.place.over.load(Ordering::Relaxed) {
                return None;
            }
            let port = self.place.port();
            match Endpoint::local(port).connect() {
                Ok(server) => self.server = Some((port, server)),
                Err(_) => thread::sleep(PAUSE),
            }
        }
        self.server.as_mut().map(|(_, server)| server)
    }
}
