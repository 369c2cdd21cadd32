//! Listings of what a queue has, of which the first page is enough.

use redis::Cmd;

use super::queue::Queue;
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};

/// Fetches up to `most` records of a listing (`DQ.BATCHES`, `DQ.LIMITS`), in one call. Returns
/// whether there are more.
pub fn first(
    server: &mut Server,
    name: &str,
    queue: &[u8],
    most: u64,
) -> Result<(Vec<Record>, bool), Failure> {
    let mut cmd = verb(name, queue);
    cmd.arg("COUNT").arg(most);
    let (next, records) = Record::page(server.call(&cmd)?)?;
    Ok((records, next.is_some()))
}

/// Fetches the first page of a listing of each queue for which there is a command, in one round
/// trip. A queue that is gone, or that the user may not ask about, has no records.
pub fn of_queues(
    server: &mut Server,
    queues: &[Queue],
    cmd: impl Fn(&Queue) -> Option<Cmd>,
) -> Result<Vec<Vec<Record>>, Failure> {
    let cmds: Vec<_> = queues.iter().map(cmd).collect();
    let asked: Vec<Cmd> = cmds.iter().flatten().cloned().collect();
    let mut replies = server.pipeline(&asked)?.into_iter();
    let page = |cmd: &Option<Cmd>| match cmd.as_ref().and_then(|_| replies.next()) {
        None | Some(Err(Failure::Refused(_))) => Ok(Vec::new()),
        Some(reply) => Ok(Record::page(reply?)?.1),
    };
    cmds.iter().map(page).collect()
}
