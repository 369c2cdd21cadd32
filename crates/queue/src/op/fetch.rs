//! A FETCH: which messages to deliver, and on which terms.

use std::borrow::Cow;

use super::Receipts;
use crate::Millis;

/// The messages to deliver, and the terms of the deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch<'a> {
    /// The most messages to deliver; at least 1.
    pub count: u64,
    /// The lease of these deliveries in ms; `None` uses that of each message.
    pub lease: Option<Millis>,
    /// The name of the consumer that fetches.
    pub consumer: Option<Cow<'a, [u8]>>,
    /// Deliver only messages of this group.
    pub group: Option<Cow<'a, [u8]>>,
    /// The most messages in a row from one group; at least 1.
    pub per_group: u64,
    /// The most payload bytes of the batch. A message that would exceed it ends
    /// the batch, unless it is the first.
    pub max_bytes: Option<u64>,
    /// Deliveries to ack before anything is delivered.
    pub acks: Receipts,
    /// The result text of each of these deliveries, in the same order; empty if
    /// there are none.
    pub results: Vec<Cow<'a, [u8]>>,
    /// Whether delivered messages count as finished at once, without an ack.
    pub no_ack: bool,
    /// Names this delivery of the consumer. Then a consumer must be given. If its last
    /// delivery had the same token and a message of it still runs, that delivery is
    /// repeated.
    pub token: Option<Cow<'a, [u8]>>,
}

impl Fetch<'_> {
    /// One message of any group, with its own lease.
    pub fn one() -> Fetch<'static> {
        Fetch {
            count: 1,
            lease: None,
            consumer: None,
            group: None,
            per_group: 1,
            max_bytes: None,
            acks: Receipts::new(),
            results: Vec::new(),
            no_ack: false,
            token: None,
        }
    }
}
