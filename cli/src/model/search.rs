//! The search for a message by its id, over all queues.

use std::time::{Duration, Instant};

use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};

/// Number of queues that are asked in one round trip.
const CHUNK: usize = 32;

/// Maximum time for which it is searched.
const PATIENCE: Duration = Duration::from_secs(3);

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The queues that have such a message, or a record of it.
    pub messages: Vec<(Vec<u8>, Record)>,
    /// The number of queues that were asked.
    pub asked: usize,
}

/// Asks these queues for a message, for a limited time.
pub fn by_id(server: &mut Server, queues: &[Vec<u8>], id: &[u8]) -> Result<Found, Failure> {
    let begun = Instant::now();
    let mut found = Found::default();
    for chunk in queues.chunks(CHUNK * server.nodes().len().max(1)) {
        let get = |name: &Vec<u8>| {
            let mut cmd = verb("DQ.GET", name);
            cmd.arg(id);
            cmd
        };
        let cmds: Vec<_> = chunk.iter().map(get).collect();
        for (name, reply) in chunk.iter().zip(server.pipeline(&cmds)?) {
            // A queue that is gone by now, or that the user may not read.
            if let Some(message) = reply.ok().and_then(|reply| Record::maybe(reply).ok()?) {
                found.messages.push((name.clone(), message));
            }
        }
        found.asked += chunk.len();
        if begun.elapsed() > PATIENCE {
            break;
        }
    }
    Ok(found)
}
