//! The children of a message.

use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};

/// Fetches up to `most` children of a message, page by page: a page may have none. Returns whether
/// there are more.
pub fn fetch(
    server: &mut Server,
    queue: &[u8],
    id: &[u8],
    most: usize,
) -> Result<(Vec<Record>, bool), Failure> {
    let mut found: Vec<Record> = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let mut cmd = verb("DQ.CHILDREN", queue);
        cmd.arg(id).arg("CURSOR").arg(&cursor);
        cmd.arg("COUNT")
            .arg(most.saturating_sub(found.len()).max(1));
        let (next, page) = Record::page(server.call(&cmd)?)?;
        found.extend(page);
        match next {
            None => return Ok((found, false)),
            Some(_) if found.len() >= most => return Ok((found, true)),
            Some(next) => cursor = next,
        }
    }
}
