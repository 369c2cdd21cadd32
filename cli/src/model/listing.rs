//! Listings of what a queue has, of which the first page is enough.

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
