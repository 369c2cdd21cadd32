//! A PING every millisecond: how long the server keeps a client waiting.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::connect::Server;
use crate::sample::Sample;

/// Sends a PING each `interval` for `duration`, one at a time, and returns how
/// long each waited for its answer. One that was answered late makes up for
/// the PINGs that should have been sent meanwhile: each of them counts with
/// the rest of the wait, so that a stall weighs as much as it lasted.
pub fn run(server: Server, interval: Duration, duration: Duration) -> Result<Sample, String> {
    let mut stream = server.connect()?;
    let mut sample = Sample::default();
    let end = Instant::now() + duration;
    let mut due = Instant::now();
    while due < end {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let sent = Instant::now();
        let mut answer = [0; 7];
        stream
            .write_all(b"PING\r\n")
            .and_then(|()| stream.read_exact(&mut answer))
            .map_err(|error| error.to_string())?;
        let answered = Instant::now();
        sample.push_ended(answered - sent);
        due = sent + interval;
        while due < answered {
            sample.push_ended(answered - due);
            due += interval;
        }
    }
    Ok(sample)
}
