//! Clients that wait for messages: their requests, the queues that they wait for, and their order.
//!
//! `blocked_fetch.rs` has the client, `wait_list.rs` the wait list of each queue, `classes.rs` the order
//! of the clients in one list, and `twins.rs` the clients that get what others get. Nothing here
//! changes a queue: that is `serving/`.

pub mod blocked_fetch;
mod classes;
pub mod twins;
pub mod wait_list;

use std::borrow::Cow;
use std::rc::Rc;

use dq_queue::op::{Fetch, Receipts};

use super::delivery_reply::DeliveryReply;
use classes::Class;

/// The request of a blocked client, and the form of its reply.
pub struct Request {
    /// The request, without acks: those are done.
    pub fetch: Fetch<'static>,
    /// The form of its reply.
    pub delivery: DeliveryReply,
}

impl Request {
    pub fn new(fetch: Fetch<'_>, delivery: DeliveryReply) -> Request {
        Request {
            fetch: without_acks(fetch),
            delivery,
        }
    }

    /// The class of the client. It contains every option that decides whether
    /// [`Queue::can_serve`](dq_queue::Queue::can_serve) the request.
    pub fn class(&self) -> Class {
        Class {
            group: self.fetch.group.as_deref().map(Rc::from),
            no_ack: self.fetch.no_ack,
            user: None,
        }
    }
}

/// Makes a copy that owns its memory. It has no acks, because they are already done.
fn without_acks(fetch: Fetch<'_>) -> Fetch<'static> {
    let own = |name: Cow<'_, [u8]>| Cow::Owned(name.into_owned());
    Fetch {
        consumer: fetch.consumer.map(own),
        group: fetch.group.map(own),
        acks: Receipts::new(),
        results: Vec::new(),
        count: fetch.count,
        lease: fetch.lease,
        per_group: fetch.per_group,
        max_bytes: fetch.max_bytes,
        no_ack: fetch.no_ack,
        token: fetch.token.map(own),
    }
}
