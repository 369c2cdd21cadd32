//! How deliveries are handed over: what is written, and to which connection
//! their leases are tied.

use crate::command::write;
use crate::ffi::{Context, Name, Reply};
use crate::runtime::bound;
use dq_queue::op::Delivered;
use dq_queue::Queue;

/// How one consumer is handed its deliveries.
#[derive(Debug, Clone, Copy)]
pub struct Handover {
    with_meta: bool,
    with_key: bool,
    /// The connection that its leases are to be tied to, and the database.
    tie: Option<(u64, i32)>,
}

impl Handover {
    /// To the client of this call.
    pub fn to(ctx: &Context, with_key: bool, with_meta: bool, bind: bool) -> Handover {
        Handover {
            with_meta,
            with_key,
            tie: bind.then(|| (ctx.client_id(), ctx.db())),
        }
    }

    /// Writes deliveries and ties their leases.
    pub fn give(self, reply: Reply<'_>, key: Name<'_>, queue: &Queue, given: &[Delivered]) {
        if self.with_key {
            reply.array(2);
            reply.bulk(key.bytes());
        }
        reply.array(given.len());
        for delivered in given {
            write::delivery(reply, queue, delivered, self.with_meta);
        }
        if let Some((client, db)) = self.tie {
            let receipts = given.iter().map(|delivered| delivered.receipt);
            bound::bind(client, db, key.bytes(), receipts, |receipt| {
                queue.is_running(receipt)
            });
        }
    }

    /// Writes that there is nothing.
    pub fn give_nothing(self, reply: Reply<'_>) {
        match self.with_key {
            true => reply.null_array(),
            false => reply.array(0),
        }
    }
}
