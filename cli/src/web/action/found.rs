//! Actions on all messages that are found: counting them before, and changing them in steps.

use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::record::integer;
use crate::server::{verb, Server};
use crate::text::plural;
use crate::web::jobs::Job;

/// Number of messages that one step changes or counts. The server serves others between
/// two steps.
const STEP: usize = 200;

/// Maximum time for which messages are counted before an action.
const COUNTING: Duration = Duration::from_millis(1500);

/// How many messages an action is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number that was found.
    pub found: u64,
    /// Whether there may be more, because counting took too long.
    pub more: bool,
}

impl Count {
    /// Returns the count in words.
    pub fn words(self) -> String {
        let found = plural(self.found, "message");
        match self.more {
            true => format!("at least {found} (not all were counted)"),
            false => found,
        }
    }
}

/// Counts the messages of these queues that a filter finds, for a limited time.
pub fn count(server: &mut Server, queues: &[Vec<u8>], filter: &Filter) -> Result<Count, Failure> {
    let begun = Instant::now();
    let mut found = 0;
    for queue in queues {
        if filter.is_whole_state() {
            let mut cmd = verb("DQ.LEN", queue);
            cmd.arg(&filter.state);
            found += integer(&server.call(&cmd)?)?;
            continue;
        }
        let mut step = Step::first(STEP);
        loop {
            let (next, more) = find::count(server, queue, filter, &step)?;
            found += more;
            let Some(cursor) = next else {
                break;
            };
            if begun.elapsed() > COUNTING {
                return Ok(Count { found, more: true });
            }
            step.cursor = Some(cursor);
        }
    }
    Ok(Count { found, more: false })
}

/// Does something with all of them. The job tells how far it is, and can stop it.
pub fn change(
    server: &mut Server,
    queues: &[Vec<u8>],
    filter: &Filter,
    act: Act,
    job: &Job,
) -> Result<(), Failure> {
    for queue in queues {
        let mut step = Step::first(STEP);
        loop {
            if job.is_stopped() {
                return Ok(());
            }
            let (next, changed) = find::act(server, queue, filter, &step, act)?;
            job.add(changed);
            match next {
                Some(cursor) => step.cursor = Some(cursor),
                None => break,
            }
        }
    }
    Ok(())
}
