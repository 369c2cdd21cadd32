//! The disks of the ledger and of the target: a thread of its own waits for them, while jobs go on.

use std::fs::File;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use std::thread;

use redis::Value;

use super::fault::at_target_end;
use super::peer::on;
use super::read::info;
use crate::failure::Failure;
use crate::server::Server;

/// The longest wait for the disk of the target, ms.
const WAIT: u64 = 10_000;

/// A key in the slot of a queue, and the end of a wait for it.
type Question = (String, Sender<Result<(), Failure>>);

/// The thread that waits.
pub struct Disk {
    questions: Sender<Question>,
    /// Whether the target says when its disk has what it was sent.
    pub asks_target: bool,
}

impl Disk {
    /// Starts with the file of the ledger and a connection of its own to the target.
    pub fn start(ledger: File, mut target: Server) -> Result<Disk, Failure> {
        let is_on = info(&mut target, "persistence", "aof_enabled");
        let asks_target = is_on.as_deref() == Some("1") && wait(&mut target)?;
        let (questions, asked) = channel::<Question>();
        thread::spawn(move || {
            for (key, answer) in asked {
                let synced = ledger
                    .sync_data()
                    .map_err(|error| Failure::mistake(format!("LEDGER: {error}")));
                // WAITAOF waits for what this connection has written, and all that was written before.
                let waited = synced.and_then(|()| match asks_target {
                    true => target
                        .call(on("SET", key.as_bytes()).arg(0))
                        .and_then(|_| wait(&mut target).map(|_| ()))
                        .map_err(at_target_end),
                    false => Ok(()),
                });
                // An import that has ended does not wait any more.
                let _ = answer.send(waited);
            }
        });
        Ok(Disk {
            questions,
            asks_target,
        })
    }

    /// Begins to wait until the disks have all that both have been given by now. The key is in the slot of the queue.
    pub fn ask(&self, key: String) -> Answer {
        let (answer, comes) = channel();
        // A thread that is gone is seen by its missing answer.
        let _ = self.questions.send((key, answer));
        Answer(comes)
    }
}

/// The end of a wait.
pub struct Answer(Receiver<Result<(), Failure>>);

impl Answer {
    /// Returns whether the disks have it, and waits until they do if that is wanted.
    pub fn has_come(&self, waits: bool) -> Result<bool, Failure> {
        let answer = match waits {
            true => self.0.recv().map_err(|_| TryRecvError::Disconnected),
            false => self.0.try_recv(),
        };
        match answer {
            Ok(answer) => answer.map(|()| true),
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => Err(Failure::mistake(
                "nobody waits for the disks any more: start the import again, and it goes on",
            )),
        }
    }
}

/// Waits until the disk of the target has what it was sent. Returns whether it can say so.
fn wait(target: &mut Server) -> Result<bool, Failure> {
    let mut cmd = redis::cmd("WAITAOF");
    cmd.arg(1).arg(0).arg(WAIT);
    for node in 0..target.nodes().len().max(1) {
        match target.call_on(node, &cmd) {
            Ok(Value::Array(counts)) if counts.first() == Some(&Value::Int(1)) => {}
            Ok(Value::Array(_)) => {
                let words = "TARGET: its disk does not get what it was sent";
                return Err(Failure::mistake(words));
            }
            Ok(_) | Err(Failure::Refused(_)) => return Ok(false),
            Err(failure) => return Err(at_target_end(failure)),
        }
    }
    Ok(true)
}
