//! What can be changed from a page: what it would change is counted before, and each
//! action is written to the audit log.

pub mod found;
mod message;
pub mod schedule;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::model::change::{what, Change, Target};
use crate::model::count::{self, Count};
use crate::model::find::{Act, Filter};
use crate::model::keys;
use crate::model::queue::{Queue, STATES};
use crate::model::record::integer;
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{parse_span, span};
use crate::web::access::Visitor;
use crate::web::address::{filter, of_target, queue, target};
use crate::web::answer::HttpError;
use crate::web::jobs::Job;
use crate::web::query::{link, Query};
use crate::web::site::Site;

/// Something that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Pause or resume.
    Change(Change),
    /// Redrive, cancel or purge all messages that are found.
    Found(Target, Box<Filter>, Act),
    /// Redrive or cancel one message.
    One(Vec<u8>, Vec<u8>, Act),
    /// Remove all messages and records of a queue.
    Empty(Vec<u8>),
    /// Send what a schedule sends, now.
    Fire(Vec<u8>, Vec<u8>),
    /// Send a message.
    Send(Vec<u8>, Query),
}

impl Action {
    /// Reads the action of an address or a form.
    pub fn parse(query: &Query) -> Result<Action, HttpError> {
        let group = query.get("group").map(<[u8]>::to_vec);
        let name = |field: &str| {
            let name = query.get(field).map(<[u8]>::to_vec);
            name.ok_or_else(|| HttpError::mistake(&format!("the address has no {field}")))
        };
        Ok(match query.text("act") {
            "pause" => {
                let time = match query.text("for").trim() {
                    "" => None,
                    text => Some(parse_span(text).map_err(|why| HttpError::mistake(&why))?),
                };
                Action::Change(Change::Pause(target(query)?, group, time))
            }
            "resume" => Action::Change(Change::Resume(target(query)?, group)),
            "redrive-one" => Action::One(queue(query)?, name("id")?, Act::Redrive),
            "cancel-one" => Action::One(queue(query)?, name("id")?, Act::Cancel),
            "empty" => Action::Empty(queue(query)?),
            "fire" => Action::Fire(queue(query)?, name("schedule")?),
            "send" => Action::Send(queue(query)?, query.clone()),
            word => {
                let act = Act::of(word).ok_or_else(|| HttpError::mistake("no such action"))?;
                let filter = filter(query)?;
                if !act.fits(&filter.state) {
                    let why = format!("{word} does nothing to messages that are {}", filter.state);
                    return Err(HttpError::mistake(&why));
                }
                Action::Found(target(query)?, Box::new(filter), act)
            }
        })
    }

    /// Returns the word for the audit log and for buttons.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Change(Change::Pause(..)) => "pause",
            Action::Change(Change::Resume(..)) => "resume",
            Action::Change(Change::Redrive(..)) => "redrive",
            Action::Found(_, _, act) | Action::One(_, _, act) => act.word(),
            Action::Empty(_) => "purge",
            Action::Fire(..) => "run schedule",
            Action::Send(..) => "send",
        }
    }

    /// Returns what it is about, in words.
    pub fn what(&self) -> String {
        match self {
            Action::Change(change) => match change {
                Change::Pause(target, group, time) => {
                    let time = time.map(|time| format!(", for {}", span(time)));
                    what(target, group.as_deref()) + &time.unwrap_or_default()
                }
                Change::Resume(target, group) => what(target, group.as_deref()),
                Change::Redrive(target, _) => target.shown(),
            },
            Action::Found(target, filter, _) => {
                format!("messages of {}: {}", target.shown(), filter.words())
            }
            Action::One(queue, id, _) => {
                format!("message {} of {}", printable(id), printable(queue))
            }
            Action::Empty(queue) => {
                format!("all messages and records of {}", printable(queue))
            }
            Action::Fire(queue, name) => {
                format!("schedule {} of {}", printable(name), printable(queue))
            }
            Action::Send(queue, form) => {
                let id = form.get("id").map(|id| format!(", id {}", printable(id)));
                format!(
                    "a message to {}{}",
                    printable(queue),
                    id.unwrap_or_default()
                )
            }
        }
    }

    /// Returns what it means, for the page that asks for confirmation.
    pub fn meaning(&self) -> &'static str {
        match self {
            Action::Change(Change::Pause(..)) => {
                "Nothing is delivered while it is paused. Sends and acks go on."
            }
            Action::Change(Change::Resume(..)) => "Its messages are delivered again.",
            Action::Found(_, _, Act::Redrive) | Action::One(_, _, Act::Redrive) => {
                "They are pending again, due now, with their attempts and failures at zero."
            }
            Action::Found(_, _, Act::Cancel) | Action::One(_, _, Act::Cancel) => {
                "They are not delivered any more. The receipts of running ones are stale."
            }
            Action::Found(_, _, Act::Purge) | Action::One(_, _, Act::Purge) | Action::Empty(_) => {
                "They are removed for good, and leave no record."
            }
            Action::Fire(..) => {
                "A copy of the message that the schedule sent last is sent now. The schedule \
                 itself goes on as before."
            }
            Action::Change(Change::Redrive(..)) | Action::Send(..) => "",
        }
    }

    /// Returns the address of the page to go back to.
    pub fn back(&self) -> String {
        match self {
            Action::Change(
                Change::Pause(target, ..) | Change::Resume(target, _) | Change::Redrive(target, _),
            ) => of_target(target).link(page_of(target)),
            Action::Found(target, filter, _) => of_target(target)
                .with("state", filter.state.as_bytes())
                .link("messages"),
            Action::One(queue, id, _) => link("message", "queue", queue) + "&" + &tail("id", id),
            Action::Empty(queue) | Action::Fire(queue, _) | Action::Send(queue, _) => {
                link("queue", "queue", queue)
            }
        }
    }

    /// Counts the messages that it would change, for a limited time. `None` if it is not
    /// about messages.
    pub fn count(&self, server: &mut Server) -> Result<Option<Count>, Failure> {
        match self {
            Action::Found(target, filter, _) => {
                let queues = target.queues(server)?;
                count::count(server, &queues, filter).map(Some)
            }
            Action::Empty(name) => {
                let info = Queue::of(name, server.call(&verb("DQ.INFO", name))?)?;
                let found = STATES.map(|state| info.count(state)).iter().sum();
                Ok(Some(Count { found, more: false }))
            }
            _ => Ok(None),
        }
    }

    /// Begins it. What takes long goes on in a thread of its own, and the job tells how
    /// far it is.
    pub fn begin(self, site: &Arc<Site>, visitor: &Visitor) -> Arc<Job> {
        let words = format!("{} {}", self.word(), self.what());
        let job = site.jobs.begin(words, &visitor.user, self.back());
        let (site, visitor, begun) = (Arc::clone(site), visitor.clone(), Arc::clone(&job));
        let run = move || {
            let outcome = site.change(|server| self.execute(server, &begun));
            let outcome = outcome.map_err(|failure| failure.to_string());
            begun.end(outcome);
            site.audit
                .write(&visitor, self.word(), &self.what(), &begun.progress());
        };
        let thread = thread::spawn(run);
        // Most are done at once, and their page tells what came of them.
        let patience = Instant::now() + Duration::from_millis(500);
        while !thread.is_finished() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(2));
        }
        job
    }

    fn execute(&self, server: &mut Server, job: &Job) -> Result<String, Failure> {
        match self {
            Action::Change(change) => {
                must_exist(server, change)?;
                let redriven = change.execute(server)?;
                Ok(change.done(redriven))
            }
            Action::Found(target, filter, act) => {
                let queues = target.queues(server)?;
                found::change(server, &queues, filter, *act, job)?;
                let done = format!("{} {}", plural(job.changed(), "message"), act.done());
                Ok(if job.is_stopped() {
                    done + ", then stopped"
                } else {
                    done
                })
            }
            Action::One(queue, id, act) => message::one(server, queue, id, *act),
            Action::Empty(queue) => {
                let removed = integer(&server.call(&verb("DQ.PURGE", queue))?)?;
                Ok(format!("{} removed", plural(removed, "message")))
            }
            Action::Fire(queue, name) => schedule::fire(server, queue, name),
            Action::Send(queue, form) => message::send(server, queue, form),
        }
    }
}

fn page_of(target: &Target) -> &'static str {
    match target {
        Target::Queue(_) => "queue",
        Target::Family(_) => "family",
    }
}

fn tail(name: &str, value: &[u8]) -> String {
    link("", name, value).trim_start_matches('?').to_owned()
}

/// Fails unless the queue exists: DQ.PAUSE would create it.
fn must_exist(server: &mut Server, change: &Change) -> Result<(), Failure> {
    let (Change::Pause(Target::Queue(queue), ..) | Change::Resume(Target::Queue(queue), _)) =
        change
    else {
        return Ok(());
    };
    keys::must_exist(server, queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Action, HttpError> {
        Action::parse(&Query::parse(text.as_bytes()))
    }

    #[test]
    fn actions_are_read_from_addresses() {
        let pause = parse("act=pause&queue=q&group=g%ff&for=5m").unwrap();
        assert_eq!(pause.what(), "group g\\xff of q, for 5m0s");
        assert_eq!(pause.back(), "queue?queue=q");
        let purge = parse("act=purge&family=f&state=dead&type=mail&since=2026-11-20").unwrap();
        assert_eq!(
            purge.what(),
            "messages of f:{*}: dead, type mail, since 2026-11-20 00:00:00.000Z"
        );
        assert_eq!(purge.back(), "messages?family=f&state=dead");
        let one = parse("act=cancel-one&queue=q&id=a%26b").unwrap();
        assert_eq!(one.back(), "message?queue=q&id=a%26b");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            "act=pause",
            "act=pause&queue=q&family=f",
            "act=pause&queue=q&for=soon",
            "act=redrive&queue=q&state=ready",
            "act=purge&queue=q",
            "act=purge&queue=q&state=dead&since=soon",
            "act=cancel-one&queue=q",
            "act=empty&family=f",
            "act=fly&queue=q",
            "",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
