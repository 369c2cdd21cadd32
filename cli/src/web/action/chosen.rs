//! Actions on messages that were chosen one by one.

use redis::Value;

use super::copy::MessageCopy;
use crate::failure::Failure;
use crate::model::family::glob;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::record::{bytes, integer, unexpected, Record};
use crate::model::search::{Place, ANY};
use crate::server::{verb, Server};
use crate::text::{cut, plural, printable};
use crate::web::address::queue;
use crate::web::answer::HttpError;
use crate::web::jobs::Job;
use crate::web::query::{link, Query};

/// An action on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneAct {
    /// The message runs again.
    Redrive,
    /// The message becomes cancelled.
    Cancel,
    /// The message is removed without a record.
    Purge,
    /// The message is due now.
    Now,
    /// Its lease ends.
    EndLease,
    /// A copy of the message is sent.
    Duplicate,
}

impl OneAct {
    const ALL: [OneAct; 6] = [
        OneAct::Redrive,
        OneAct::Cancel,
        OneAct::Purge,
        OneAct::Now,
        OneAct::EndLease,
        OneAct::Duplicate,
    ];

    /// Returns the word in addresses.
    pub fn name(self) -> &'static str {
        match self {
            OneAct::Redrive => "redrive-one",
            OneAct::Cancel => "cancel-one",
            OneAct::Purge => "purge-one",
            OneAct::Now => "now-one",
            OneAct::EndLease => "end-lease",
            OneAct::Duplicate => "duplicate",
        }
    }

    /// Returns the act of a word in an address.
    pub fn of(name: &str) -> Option<OneAct> {
        OneAct::ALL.into_iter().find(|act| act.name() == name)
    }

    /// Returns the word for buttons, questions and the audit log.
    pub fn word(self) -> &'static str {
        match self {
            OneAct::Redrive => "redrive",
            OneAct::Cancel => "cancel",
            OneAct::Purge => "remove",
            OneAct::Now => "run now",
            OneAct::EndLease => "end lease",
            OneAct::Duplicate => "duplicate",
        }
    }

    /// Returns the meaning of the action.
    pub fn meaning(self) -> &'static str {
        match self {
            OneAct::Redrive => {
                "It is pending again, due now, with its attempts and failures at zero."
            }
            OneAct::Cancel => {
                "It is not delivered any more. If it is running, its receipt is stale."
            }
            OneAct::Purge => "It is removed for good, and leaves no record.",
            OneAct::Now => "Its due time is now. Its group and all limits still apply.",
            OneAct::EndLease => {
                "Its receipt is stale at once, and it is delivered again. That counts as no failure. \
                 A consumer that still works on it does not notice."
            }
            OneAct::Duplicate => "A copy of it is sent, with a new id.",
        }
    }

    /// Returns whether it can do anything to messages of this state.
    pub fn fits(self, state: &str) -> bool {
        match self {
            OneAct::Redrive => Act::Redrive.fits(state),
            OneAct::Cancel => Act::Cancel.fits(state),
            OneAct::Purge => true,
            OneAct::Now => matches!(state, "delayed" | "retry" | ANY),
            OneAct::EndLease => matches!(state, "running" | ANY),
            OneAct::Duplicate => true,
        }
    }
}

/// Messages, and the action on each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The action.
    pub act: OneAct,
    /// The queue and the id of each message.
    messages: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Chosen {
    /// Reads the messages of an address, or those that were marked in a list.
    pub fn parse(query: &Query, act: OneAct) -> Result<Chosen, HttpError> {
        let one = |query: &Query| {
            let id = query.get("id").map(<[u8]>::to_vec);
            let id = id.ok_or_else(|| HttpError::mistake("the address names no message"))?;
            Ok((queue(query)?, id))
        };
        let picked: Vec<Query> = query.all("pick").map(Query::parse).collect();
        let messages = match picked.is_empty() {
            true => vec![one(query)?],
            false => picked.iter().map(one).collect::<Result<_, HttpError>>()?,
        };
        Ok(Chosen { act, messages })
    }

    /// Returns the value with which a list marks a message.
    pub fn pick(queue: &[u8], id: &[u8]) -> String {
        let address = Query::default()
            .with("queue", queue)
            .with("id", id)
            .link("");
        address.trim_start_matches('?').to_owned()
    }

    /// Returns the messages, in words.
    pub fn what(&self) -> String {
        match &self.messages[..] {
            [(queue, id)] => format!("message {} of {}", printable(id), printable(queue)),
            messages => {
                let mut queues: Vec<String> = messages.iter().map(|(q, _)| printable(q)).collect();
                queues.dedup();
                let ids: Vec<String> = messages.iter().map(|(_, id)| printable(id)).collect();
                let count = plural(messages.len() as u64, "message");
                cut(
                    &format!("{count} of {}: {}", queues.join(", "), ids.join(", ")),
                    2000,
                )
            }
        }
    }

    /// Returns the page of the message, or of the queue.
    pub fn back(&self) -> String {
        let query = Query::default();
        match &self.messages[..] {
            [(queue, id)] => query.with("queue", queue).with("id", id).link("message"),
            [(queue, _), ..] => query.with("queue", queue).link("queue"),
            [] => "./".to_owned(),
        }
    }

    /// Returns the page of the queue, if the message is gone afterwards.
    pub fn leads_to(&self) -> Option<String> {
        match (&self.messages[..], self.act) {
            ([(queue, _)], OneAct::Purge) => Some(link("queue", "queue", queue)),
            _ => None,
        }
    }

    /// Applies the action to each message. With several, those that have changed meanwhile are
    /// counted.
    pub fn execute(&self, server: &mut Server, job: &Job) -> Result<String, Failure> {
        if let [(queue, id)] = &self.messages[..] {
            let done = one(server, queue, id, self.act)?;
            job.add(1);
            return Ok(done);
        }
        let mut why = None;
        for (queue, id) in &self.messages {
            match one(server, queue, id, self.act) {
                Ok(_) => job.add(1),
                Err(Failure::Mistake(words)) => why = Some(words),
                Err(failure) => return Err(failure),
            }
        }
        let done = format!("{}: {}", plural(job.changed(), "message"), self.act.word());
        let left = self.messages.len() as u64 - job.changed();
        Ok(match why {
            Some(why) => format!("{done}; {left} not: {why}"),
            None => done,
        })
    }
}

/// Applies the action to a message. Returns a sentence about the result.
fn one(server: &mut Server, queue: &[u8], id: &[u8], act: OneAct) -> Result<String, Failure> {
    let done = |changed: u64, done: &str, not: &str| match changed {
        0 => Err(Failure::mistake(not)),
        _ => Ok(done.to_owned()),
    };
    match act {
        OneAct::Redrive => {
            let mut cmd = verb("DQ.REDRIVE", queue);
            cmd.arg("IDS").arg(1).arg(id);
            let redriven = integer(&server.call(&cmd)?)?;
            done(redriven, "It is pending again.", "it is not dead any more")
        }
        OneAct::Cancel => cancel(server, queue, id),
        OneAct::Purge => {
            let place = Place::of(queue, &get(server, queue, id)?.text("state"))?;
            let filter = Filter {
                id: Some(glob(id)),
                ..Filter::of_state(place.state)?
            };
            let mut removed = 0;
            let mut step = Step::first(1000);
            loop {
                let (next, more) = find::act(server, &place, &filter, &step, Act::Purge)?;
                removed += more;
                match next.filter(|_| removed == 0) {
                    Some(cursor) => step.cursor = Some(cursor),
                    None => break,
                }
            }
            done(
                removed,
                "It is removed.",
                "it has changed its state meanwhile",
            )
        }
        OneAct::Now => {
            let mut cmd = verb("DQ.RESCHEDULE", queue);
            cmd.arg(id).arg("DELAY").arg(0);
            let changed = integer(&server.call(&cmd)?)?;
            done(changed, "It is due now.", "it is running or has ended")
        }
        OneAct::EndLease => {
            let message = get(server, queue, id)?;
            let receipt = message.number("receipt").filter(|receipt| *receipt > 0);
            let receipt = receipt.ok_or_else(|| Failure::mistake("it is not running any more"))?;
            let mut cmd = verb("DQ.NACK", queue);
            cmd.arg(receipt).arg("SILENT");
            let ended = integer(&server.call(&cmd)?)?;
            done(ended, "Its lease has ended.", "it is not running any more")
        }
        OneAct::Duplicate => MessageCopy::of(server, queue, id)?.send(server, queue),
    }
}

fn get(server: &mut Server, queue: &[u8], id: &[u8]) -> Result<Record, Failure> {
    let mut cmd = verb("DQ.GET", queue);
    cmd.arg(id);
    let message = Record::maybe(server.call(&cmd)?)?;
    message.ok_or_else(|| Failure::mistake("there is no such message any more"))
}

fn cancel(server: &mut Server, queue: &[u8], id: &[u8]) -> Result<String, Failure> {
    let mut cmd = verb("DQ.CANCEL", queue);
    cmd.arg(id);
    let Value::Array(states) = server.call(&cmd)? else {
        return Err(unexpected());
    };
    match states.first().and_then(bytes) {
        None => Err(Failure::mistake("there is no such message any more")),
        Some(b"finished" | b"cancelled") => Err(Failure::mistake("it had ended before")),
        Some(state) => Ok(format!("It was {}, and is cancelled.", printable(state))),
    }
}
