//! Actions that were begun, with their progress and results. An action on very
//! many messages goes on in steps while pages show its progress.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::text::plural;

/// Maximum number of actions that are remembered.
const MOST: usize = 200;

/// An action that was begun.
pub struct Job {
    /// Its number.
    pub id: u64,
    /// A sentence that says what the action does.
    pub words: String,
    /// The user who began it.
    pub user: String,
    /// The address of the page to go back to.
    pub back: String,
    changed: AtomicU64,
    stopped: AtomicBool,
    outcome: Mutex<Option<Result<String, String>>>,
}

impl Job {
    /// Counts messages that were changed.
    pub fn add(&self, changed: u64) {
        self.changed.fetch_add(changed, Ordering::Relaxed);
    }

    /// Returns how many messages were changed so far.
    pub fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    /// Asks the action to end after its current step.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the job, with a sentence about its result, or the reason of its failure.
    pub fn end(&self, outcome: Result<String, String>) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    /// Returns the result, once the action has ended.
    pub fn outcome(&self) -> Option<Result<String, String>> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.clone()
    }

    /// Returns a sentence about the progress.
    pub fn progress(&self) -> String {
        match self.outcome() {
            None => format!("{} so far", plural(self.changed(), "message")),
            Some(Ok(done)) => done,
            Some(Err(why)) if self.changed() == 0 => format!("Not done: {why}"),
            Some(Err(why)) => {
                let changed = plural(self.changed(), "message");
                format!("Ended after {changed}: {why}")
            }
        }
    }
}

/// The last actions.
#[derive(Default)]
pub struct Jobs(Mutex<(u64, VecDeque<Arc<Job>>)>);

impl Jobs {
    /// Begins an action.
    pub fn begin(&self, words: String, user: &str, back: String) -> Arc<Job> {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.0 += 1;
        let job = Arc::new(Job {
            id: jobs.0,
            words,
            user: user.to_owned(),
            back,
            changed: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            outcome: Mutex::new(None),
        });
        if jobs.1.len() == MOST {
            jobs.1.pop_front();
        }
        jobs.1.push_back(Arc::clone(&job));
        job
    }

    /// Returns the action of this number.
    pub fn get(&self, id: u64) -> Option<Arc<Job>> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.1.iter().find(|job| job.id == id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_actions_are_remembered() {
        let jobs = Jobs::default();
        let first = jobs.begin("purge".to_owned(), "ann", "queue".to_owned());
        first.add(2);
        assert_eq!(first.progress(), "2 messages so far");
        first.end(Err("NOPERM".to_owned()));
        assert_eq!(first.progress(), "Ended after 2 messages: NOPERM");
        for _ in 0..MOST {
            jobs.begin(String::new(), "", String::new());
        }
        assert!(jobs.get(first.id).is_none());
        assert!(jobs.get(first.id + 1).is_some());
    }
}
