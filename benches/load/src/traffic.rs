//! Runs the load: many connections, each with a pipeline of commands in flight.
//!
//! A connection works in batches, which have as many slots as its pipeline is deep.
//! In a batch each step is written for all slots at once, and the next step follows
//! when all replies have come. The items that a slot took of a reply (ids, receipts)
//! stay with it until it takes others, even into the next batch. So a FETCH can ack
//! the messages of the FETCH before it.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::connect::Server;
use crate::cpu;
use crate::resp::{read, take, Reply, Shape, Taken};
use crate::template::{Template, Values};

/// Time without a reply after which the server counts as hung. No command that is
/// measured blocks for longer.
const HUNG: Duration = Duration::from_secs(60);

/// One command of a batch.
pub struct Step {
    /// The command.
    pub template: Template,
    /// The items to take of its reply. `None` if any reply but an error will do.
    pub take: Option<Shape>,
}

/// The kinds of traffic in the load.
pub struct Load {
    /// The server.
    pub server: Server,
    /// Number of connections.
    pub connections: usize,
    /// Slots of a batch, which is the number of commands in flight on each connection.
    pub pipeline: usize,
    /// Number of slots to fill over all connections and batches.
    pub commands: u64,
    /// Bytes of a payload.
    pub payload: usize,
    /// The commands of a batch, in this order.
    pub steps: Vec<Step>,
    /// The process of the server, whose processor time is measured.
    pub pid: Option<u32>,
}

/// The work that the load has done, and the measurements.
pub struct Done {
    /// Number of slots that were filled.
    pub commands: u64,
    /// Number of items that were taken of replies.
    pub taken: u64,
    /// Number of replies that had no item to take.
    pub empty: u64,
    /// Time from the first command to the last reply.
    pub elapsed: Duration,
    /// Processor time of the server's main thread in that time, in nanoseconds.
    pub server_nanos: u64,
}

struct Connection {
    number: usize,
    stream: TcpStream,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    slots: Vec<Taken>,
    /// Slots in use in this batch.
    active: usize,
    step: usize,
    /// The slots whose command was sent, in order.
    sent: Vec<usize>,
    /// Number of the slots in `sent` that have their reply.
    answered: usize,
}

#[derive(Default)]
struct Progress {
    commands: u64,
    seq: u64,
    taken: u64,
    empty: u64,
}

/// Runs the load to its end.
///
/// # Errors
/// A sentence: a refused command, a lost connection, or a server that hangs.
pub fn run(load: &Load) -> Result<Done, String> {
    let mut poll = Poll::new().map_err(text)?;
    let mut connections = Vec::with_capacity(load.connections);
    for number in 0..load.connections {
        let mut connection = Connection::open(load, number)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut connection.stream, Token(number), interest)
            .map_err(text)?;
        connections.push(connection);
    }

    let mut progress = Progress::default();
    let cpu_before = server_nanos(load)?;
    let start = Instant::now();
    let mut busy = 0;
    for connection in &mut connections {
        if connection.begin_batch(load, &mut progress)? {
            busy += 1;
        }
    }
    let mut events = Events::with_capacity(load.connections);
    let mut scratch = vec![0; 256 << 10];
    while busy > 0 {
        poll.poll(&mut events, Some(HUNG)).map_err(text)?;
        if events.is_empty() {
            return Err(format!("no reply for {} s", HUNG.as_secs()));
        }
        for event in &events {
            let connection = &mut connections[event.token().0];
            if connection.sent.is_empty() {
                continue;
            }
            connection.flush()?;
            if !connection.receive(load, &mut progress, &mut scratch)? {
                busy -= 1;
            }
        }
    }
    Ok(Done {
        commands: progress.commands,
        taken: progress.taken,
        empty: progress.empty,
        elapsed: start.elapsed(),
        server_nanos: server_nanos(load)? - cpu_before,
    })
}

fn server_nanos(load: &Load) -> Result<u64, String> {
    load.pid.map_or(Ok(0), cpu::main_thread_nanos)
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

impl Connection {
    fn open(load: &Load, number: usize) -> Result<Connection, String> {
        let stream = load.server.connect()?;
        stream.set_nonblocking(true).map_err(text)?;
        Ok(Connection {
            number,
            stream: TcpStream::from_std(stream),
            output: Vec::new(),
            written: 0,
            input: Vec::new(),
            slots: (0..load.pipeline).map(|_| Taken::default()).collect(),
            active: 0,
            step: 0,
            sent: Vec::with_capacity(load.pipeline),
            answered: 0,
        })
    }

    /// Starts the next batch. Returns false if no commands are left.
    fn begin_batch(&mut self, load: &Load, progress: &mut Progress) -> Result<bool, String> {
        loop {
            let left = load.commands - progress.commands;
            if left == 0 {
                self.sent.clear();
                return Ok(false);
            }
            self.active = left.min(load.pipeline as u64) as usize;
            progress.commands += self.active as u64;
            self.step = 0;
            if self.write_step(load, progress)? {
                return Ok(true);
            }
        }
    }

    /// Writes the current step, or the first one after it that has a command to
    /// send. Returns false at the end of the batch.
    fn write_step(&mut self, load: &Load, progress: &mut Progress) -> Result<bool, String> {
        while let Some(step) = load.steps.get(self.step) {
            self.sent.clear();
            self.answered = 0;
            for slot in 0..self.active {
                let values = Values {
                    seq: progress.seq,
                    connection: self.number,
                    payload: load.payload,
                    taken: &self.slots[slot],
                };
                if step.template.write(&mut self.output, &values) {
                    progress.seq += 1;
                    self.sent.push(slot);
                }
            }
            if !self.sent.is_empty() {
                self.flush()?;
                return Ok(true);
            }
            self.step += 1;
        }
        Ok(false)
    }

    fn flush(&mut self) -> Result<(), String> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(text(error)),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads until the socket is empty, as an edge-triggered event demands.
    /// Returns false when this connection has nothing left to do.
    fn receive(
        &mut self,
        load: &Load,
        progress: &mut Progress,
        scratch: &mut [u8],
    ) -> Result<bool, String> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(count) => {
                    self.input.extend_from_slice(&scratch[..count]);
                    if !self.process_replies(load, progress)? {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(text(error)),
            }
        }
    }

    /// Processes the replies that are complete, and goes on to the next step or
    /// batch after the last one. Returns false when nothing is left to do.
    fn process_replies(&mut self, load: &Load, progress: &mut Progress) -> Result<bool, String> {
        let mut at = 0;
        while self.answered < self.sent.len() {
            let complete = read(&self.input, at).map_err(|_| "bytes that are no RESP")?;
            let Some((reply, next)) = complete else {
                self.input.drain(..at);
                return Ok(true);
            };
            let step = &load.steps[self.step];
            let slot = &mut self.slots[self.sent[self.answered]];
            process_reply(step, &reply, slot, progress)?;
            at = next;
            self.answered += 1;
        }
        if at < self.input.len() {
            return Err("more replies than commands".into());
        }
        self.input.clear();
        self.step += 1;
        Ok(self.write_step(load, progress)? || self.begin_batch(load, progress)?)
    }
}

/// Checks a reply and takes its items.
fn process_reply(
    step: &Step,
    reply: &Reply<'_>,
    slot: &mut Taken,
    progress: &mut Progress,
) -> Result<(), String> {
    if let Reply::Error(error) = reply {
        return Err(String::from_utf8_lossy(error).into_owned());
    }
    if let Some(shape) = step.take {
        take(shape, reply, slot).map_err(|_| "a reply of another shape than asked for")?;
        progress.taken += slot.len() as u64;
        progress.empty += u64::from(slot.len() == 0);
    }
    Ok(())
}
