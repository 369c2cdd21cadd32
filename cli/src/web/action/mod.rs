//! The changes that can be made from a page: the number of messages that one would change
//! is counted before, and each action is written to the audit log.

pub mod chosen;
mod copy;
mod form;
pub mod found;
pub mod schedule;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::model::change::{what, Change, Target};
use crate::model::count::{self, Count};
use crate::model::find::{Act, Filter};
use crate::model::keys;
use crate::model::limit;
use crate::model::queue::{Queue, STATES};
use crate::model::record::integer;
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{parse_span, span};
use crate::web::address::{filter, of_target, queue, target};
use crate::web::answer::HttpError;
use crate::web::jobs::Job;
use crate::web::query::{link, Query};
use crate::web::site::Site;
use crate::web::visitor::Visitor;
use chosen::{Chosen, OneAct};
pub use form::{Change as SettingChange, Form, Kind as FormKind};

/// Something that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Pause or resume.
    Change(Change),
    /// Redrive, cancel or remove all messages that are found.
    Found(Target, Box<Filter>, Act),
    /// Do something with messages that were chosen one by one.
    Chosen(Chosen),
    /// Remove all messages and records of a queue.
    Empty(Vec<u8>),
    /// Remove a queue with all that is in it.
    Delete(Vec<u8>),
    /// Send the message of a schedule now.
    Fire(Vec<u8>, Vec<u8>),
    /// Remove a schedule.
    Unschedule(Vec<u8>, Vec<u8>),
    /// Remove a limit with a name.
    Unlimit(Vec<u8>, Vec<u8>),
    /// Pause or resume a schedule.
    HoldSchedule(Vec<u8>, Vec<u8>, bool),
    /// The request of a form with fields.
    Form(Form),
}

impl Action {
    /// Reads the action of an address or a form.
    pub fn parse(query: &Query) -> Result<Action, HttpError> {
        let group = query.get("group").map(<[u8]>::to_vec);
        let schedule = || {
            let name = query.get("schedule").map(<[u8]>::to_vec);
            name.ok_or_else(|| HttpError::mistake("the address has no schedule"))
        };
        if let Some(act) = OneAct::of(query.text("act")) {
            return Chosen::parse(query, act).map(Action::Chosen);
        }
        if let Some(form) = Form::parse(query)? {
            return Ok(Action::Form(form));
        }
        Ok(match query.text("act") {
            "pause" => {
                let time = match query.text("for").trim() {
                    "" => None,
                    text => Some(parse_span(text).map_err(|why| HttpError::mistake(&why))?),
                };
                Action::Change(Change::Pause(target(query)?, group, time))
            }
            "resume" => Action::Change(Change::Resume(target(query)?, group)),
            "empty" => Action::Empty(queue(query)?),
            "delete" => Action::Delete(queue(query)?),
            "fire" => Action::Fire(queue(query)?, schedule()?),
            "unschedule" => Action::Unschedule(queue(query)?, schedule()?),
            "unlimit" => {
                let name = query.get("limit").map(<[u8]>::to_vec);
                let name = name.ok_or_else(|| HttpError::mistake("the address has no limit"))?;
                Action::Unlimit(queue(query)?, name)
            }
            "pause-schedule" => Action::HoldSchedule(queue(query)?, schedule()?, true),
            "resume-schedule" => Action::HoldSchedule(queue(query)?, schedule()?, false),
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

    /// Returns the word for the audit log, for buttons and for questions.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Change(Change::Pause(..)) | Action::HoldSchedule(_, _, true) => "pause",
            Action::Change(Change::Resume(..)) | Action::HoldSchedule(_, _, false) => "resume",
            Action::Change(Change::Redrive(..)) => "redrive",
            Action::Found(_, _, act) => verb_of(*act),
            Action::Chosen(chosen) => chosen.act.word(),
            Action::Empty(_) | Action::Unschedule(..) | Action::Unlimit(..) => "remove",
            Action::Delete(_) => "delete",
            Action::Fire(..) => "run now",
            Action::Form(form) => form.word(),
        }
    }

    /// Returns the target of the action, in words.
    pub fn what(&self) -> String {
        let schedule = |queue: &[u8], name: &[u8]| {
            format!("schedule {} of {}", printable(name), printable(queue))
        };
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
            Action::Chosen(chosen) => chosen.what(),
            Action::Empty(queue) => {
                format!("all messages and records of {}", printable(queue))
            }
            Action::Delete(queue) => {
                let queue = printable(queue);
                format!("the queue {queue}, with its messages, groups, schedules and settings")
            }
            Action::Fire(queue, name)
            | Action::Unschedule(queue, name)
            | Action::HoldSchedule(queue, name, _) => schedule(queue, name),
            Action::Unlimit(queue, name) => {
                format!("limit {} of {}", printable(name), printable(queue))
            }
            Action::Form(form) => form.what(),
        }
    }

    /// Returns the meaning of the action, for the page that asks for confirmation.
    pub fn meaning(&self) -> &'static str {
        match self {
            Action::Change(Change::Pause(..)) => {
                "Nothing is delivered while it is paused. Sends and acks go on."
            }
            Action::Change(Change::Resume(..)) => "Its messages are delivered again.",
            Action::Found(_, _, Act::Redrive) => {
                "They are pending again, due now, with their attempts and failures at zero."
            }
            Action::Found(_, _, Act::Cancel) => {
                "They are not delivered any more. The receipts of running ones are stale."
            }
            Action::Found(_, _, Act::Purge) | Action::Empty(_) => {
                "They are removed for good, and leave no record."
            }
            Action::Chosen(chosen) => chosen.act.meaning(),
            Action::Delete(_) => {
                "All of it is removed for good. A producer that sends to this name makes a new \
                 queue with the settings of the server."
            }
            Action::Fire(..) => {
                "A copy of the message that the schedule sent last is sent now. The schedule \
                 itself goes on as before."
            }
            Action::Unschedule(..) => "It sends no more. What it has sent stays.",
            Action::Unlimit(..) => "Messages that name it are not limited by it any more.",
            Action::HoldSchedule(_, _, true) => "It sends nothing until it is resumed.",
            Action::HoldSchedule(_, _, false) => "It sends again at its times.",
            Action::Change(Change::Redrive(..)) | Action::Form(_) => "",
        }
    }

    /// Returns the address of the page to go back to, if the visitor came from none.
    pub fn back(&self) -> String {
        match self {
            Action::Change(
                Change::Pause(target, ..) | Change::Resume(target, _) | Change::Redrive(target, _),
            ) => of_target(target).link(page_of(target)),
            Action::Found(Target::Several(_), ..) => "errors".to_owned(),
            Action::Found(target, filter, _) => of_target(target)
                .with("state", filter.state.as_bytes())
                .link("messages"),
            Action::Chosen(chosen) => chosen.back(),
            Action::Delete(_) => "./".to_owned(),
            Action::Empty(queue)
            | Action::Fire(queue, _)
            | Action::Unschedule(queue, _)
            | Action::Unlimit(queue, _)
            | Action::HoldSchedule(queue, ..) => link("queue", "queue", queue),
            Action::Form(form) => form.back(),
        }
    }

    /// Returns the page to go to after the action, if the action removes the page before it.
    pub fn leads_to(&self) -> Option<String> {
        match self {
            Action::Delete(_) => Some("./".to_owned()),
            Action::Chosen(chosen) => chosen.leads_to(),
            _ => None,
        }
    }

    /// Counts the messages that the action would change, for a limited time. `None` if it
    /// is not about messages.
    pub fn count(&self, server: &mut Server) -> Result<Option<Count>, Failure> {
        match self {
            Action::Found(target, filter, act) => {
                let queues = target.queues(server)?;
                count::count(server, &queues, filter, *act).map(Some)
            }
            Action::Empty(name) | Action::Delete(name) => {
                let info = Queue::of(name, server.call(&verb("DQ.INFO", name))?)?;
                let found = STATES.map(|state| info.count(state)).iter().sum();
                Ok(Some(Count { found, more: false }))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether it makes sense though it is about no messages.
    pub fn is_for_none(&self) -> bool {
        matches!(self, Action::Delete(_))
    }

    /// Begins the action. A long action continues in a separate thread, and the job has
    /// its progress.
    pub fn begin(self, site: &Arc<Site>, visitor: &Visitor) -> Arc<Job> {
        let words = format!("{} {}", self.word(), self.what());
        let job = site.jobs.begin(words, &visitor.user, self.back());
        let (site, visitor, begun) = (Arc::clone(site), visitor.clone(), Arc::clone(&job));
        let run = move || {
            let scope = &visitor.rights.scope;
            let outcome = site.change(scope, |server| self.execute(server, &begun));
            let outcome = outcome.map_err(|failure| failure.to_string());
            begun.end(outcome);
            site.audit
                .write(&visitor, self.word(), &self.what(), &begun.progress());
        };
        let thread = thread::spawn(run);
        // Most actions end at once, and then their page shows the result.
        let patience = Instant::now() + Duration::from_millis(500);
        while !thread.is_finished() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(2));
        }
        job
    }

    fn execute(&self, server: &mut Server, job: &Job) -> Result<String, Failure> {
        match self {
            Action::Change(change) => {
                // DQ.PAUSE would create the queue.
                if let Change::Pause(Target::Queue(queue), ..)
                | Change::Resume(Target::Queue(queue), _) = change
                {
                    keys::must_exist(server, queue)?;
                }
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
            Action::Chosen(chosen) => chosen.execute(server, job),
            Action::Empty(queue) => {
                let removed = integer(&server.call(&verb("DQ.PURGE", queue))?)?;
                Ok(format!("{} removed", plural(removed, "message")))
            }
            Action::Delete(queue) => {
                // Only a queue is deleted, whatever key has this name by now.
                keys::must_exist(server, queue)?;
                server.call(&verb("UNLINK", queue))?;
                Ok(format!("{} is deleted", printable(queue)))
            }
            Action::Fire(queue, name) => schedule::fire(server, queue, name),
            Action::Unschedule(queue, name) => schedule::remove(server, queue, name),
            Action::Unlimit(queue, name) => {
                let old = limit::find(server, queue, name)?;
                let old = old.ok_or_else(|| Failure::mistake("there is no such limit any more"))?;
                let mut cmd = verb("DQ.LIMIT", queue);
                cmd.arg(name);
                server.call(&cmd)?;
                Ok(format!(
                    "The limit {} is removed; it was {}",
                    printable(name),
                    old.words()
                ))
            }
            Action::HoldSchedule(queue, name, held) => schedule::hold(server, queue, name, *held),
            Action::Form(form) => form.execute(server),
        }
    }
}

/// Returns the word for the action on messages that are found.
pub fn verb_of(act: Act) -> &'static str {
    match act {
        Act::Redrive => "redrive",
        Act::Cancel => "cancel",
        Act::Purge => "remove",
    }
}

fn page_of(target: &Target) -> &'static str {
    match target {
        Target::Queue(_) => "queue",
        Target::Family(_) => "family",
        Target::Several(_) | Target::Matching(_) => "errors",
    }
}

#[cfg(test)]
mod tests;
