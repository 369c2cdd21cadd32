//! Delivery replies: what is written, and which connection the leases are bound to.

use crate::redis::{Context, Name, Reply};
use dq_queue::op::Delivered;
use dq_queue::Queue;

use super::{bound_leases, message_reply};

/// The form of the reply to one FETCH or MFETCH.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryReply {
    with_meta: bool,
    with_key: bool,
    /// The connection that the leases are bound to, and the database.
    binding: Option<(u64, i32)>,
}

impl DeliveryReply {
    /// A reply to the client of this call. `bind` binds the leases to its connection.
    pub fn to(ctx: &Context, with_key: bool, with_meta: bool, bind: bool) -> DeliveryReply {
        DeliveryReply {
            with_meta,
            with_key,
            binding: bind.then(|| (ctx.client_id(), ctx.db())),
        }
    }

    /// Writes deliveries, and binds their leases if asked to.
    pub fn write(self, reply: Reply<'_>, key: Name<'_>, queue: &Queue, delivered: &[Delivered]) {
        if self.with_key {
            reply.array(2);
            reply.bulk(key.bytes());
        }
        reply.array(delivered.len());
        for one in delivered {
            message_reply::delivery(reply, queue, one, self.with_meta);
        }
        if let Some((client, db)) = self.binding {
            let receipts = delivered.iter().map(|one| one.receipt);
            bound_leases::bind(client, db, key.bytes(), receipts, |receipt| {
                queue.is_running(receipt)
            });
        }
    }

    /// Writes the reply for no deliveries.
    pub fn write_nothing(self, reply: Reply<'_>) {
        match self.with_key {
            true => reply.null_array(),
            false => reply.array(0),
        }
    }
}
