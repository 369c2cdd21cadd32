//! The running messages that each consumer holds.

use std::collections::HashMap;

use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::time_text::Millis;

/// Maximum number of running messages that are looked at. Their payloads come with them.
const MOST: usize = 50;

/// A running message: its id, and since when it runs.
pub type Held = (Vec<u8>, Option<Millis>);

/// The running messages of consumers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holdings {
    by_consumer: HashMap<String, Vec<Held>>,
    /// Whether there are more that were not looked at.
    pub more: bool,
}

impl Holdings {
    /// Returns the messages that a consumer of this printable name holds, in the order in
    /// which their leases end.
    pub fn of(&self, consumer: &str) -> &[Held] {
        self.by_consumer.get(consumer).map_or(&[], Vec::as_slice)
    }
}

/// Looks at the first running messages of a queue. There are none for a user who may not see
/// them.
pub fn fetch(server: &mut Server, queue: &[u8]) -> Result<Holdings, Failure> {
    let mut cmd = verb("DQ.LIST", queue);
    cmd.arg("running").arg("COUNT").arg(MOST);
    let (next, messages) = match server.call(&cmd) {
        Err(Failure::Refused(_)) => return Ok(Holdings::default()),
        reply => Record::page(reply?)?,
    };
    let mut holdings = Holdings {
        more: next.is_some(),
        ..Holdings::default()
    };
    for message in messages {
        let id = message.bytes("id").unwrap_or_default().to_vec();
        let held = holdings.by_consumer.entry(message.text("consumer"));
        held.or_default().push((id, message.number("started-at")));
    }
    Ok(holdings)
}
