//! How many messages a change in bulk is about.

use std::time::{Duration, Instant};

use super::find::{self, Filter, Step};
use super::record::integer;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::plural;

/// Number of messages that one step counts. The server serves others between two steps.
const STEP: usize = 200;

/// Maximum time for which messages are counted.
const COUNTING: Duration = Duration::from_millis(1500);

/// How many messages a change is about.
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
