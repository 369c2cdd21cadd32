//! How many messages a change in bulk is about.

use std::time::{Duration, Instant};

use super::find::{self, Act, Filter, Step};
use super::record::integer;
use super::search::{self, Walk};
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::plural;

/// Number of messages that one step counts. The server serves others between two steps.
const STEP: usize = 200;

/// Maximum time for which messages are counted.
const COUNTING: Duration = Duration::from_millis(700);

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

/// Counts the messages of these queues that an action would change, for a limited time.
pub fn count(
    server: &mut Server,
    queues: &[Vec<u8>],
    filter: &Filter,
    act: Act,
) -> Result<Count, Failure> {
    let begun = Instant::now();
    let mut found = 0;
    let places = search::places(server, queues, &filter.state)?;
    let fits = places.into_iter().filter(|place| act.fits(place.state));
    let mut walk = Walk::new(fits.collect(), Step::first(STEP));
    while let Some((place, step)) = walk.now() {
        if begun.elapsed() > COUNTING {
            return Ok(Count { found, more: true });
        }
        if filter.is_whole_state() {
            let mut cmd = verb("DQ.LEN", &place.queue);
            cmd.arg(place.state);
            found += integer(&server.call(&cmd)?)?;
            walk.go_on(None);
            continue;
        }
        let (next, more) = find::count(server, place, filter, step)?;
        found += more;
        walk.go_on(next);
    }
    Ok(Count { found, more: false })
}
