//! Delivery replies: their content, and the connection to which the leases are bound.

use std::rc::Rc;

use crate::redis::{Context, Name, Reply};
use dq_queue::args::fetch::FetchRequest;
use dq_queue::effect::Outcomes;
use dq_queue::op::Delivered;
use dq_queue::Queue;

use super::bound_leases::{self, Binding};
use super::effects;
use super::message_reply;
use super::rights::Call;

/// The form of the reply to one FETCH or MFETCH.
#[derive(Debug, Clone)]
pub struct DeliveryReply {
    with_meta: bool,
    with_key: bool,
    /// The connection that the leases are bound to, and the database.
    binding: Option<(Binding, i32)>,
    /// The database, if the deliveries may be those of an earlier reply.
    repeats_in: Option<i32>,
    /// The effects that the call has applied, which come before the deliveries. The inner `None`:
    /// its receipt was stale.
    applied: Option<Option<Rc<Outcomes>>>,
}

impl DeliveryReply {
    /// A reply to the client of this call, which asks for it with `request`.
    pub fn to(ctx: &Context, with_key: bool, request: &FetchRequest<'_>) -> DeliveryReply {
        let binding = request.bind.map(|grace| Binding {
            client: ctx.client_id(),
            grace,
        });
        DeliveryReply {
            with_meta: request.with_meta,
            with_key,
            binding: binding.map(|binding| (binding, ctx.db())),
            repeats_in: request.fetch.token.as_ref().map(|_| ctx.db()),
            applied: None,
        }
    }

    /// Adds what the call has applied; `None` if its receipt was stale.
    pub fn add_applied(&mut self, applied: Option<Outcomes>) {
        self.applied = Some(applied.map(Rc::new));
    }

    /// Writes what stands before the deliveries.
    fn write_applied(&self, reply: Reply<'_>) {
        if let Some(applied) = &self.applied {
            reply.array(2);
            match applied {
                Some(outcomes) => effects::write(reply, outcomes),
                None => reply.null_array(),
            }
        }
    }

    /// The call that gets the reply, where that names its keys.
    pub fn call(&self) -> Call {
        match self.with_key {
            true => Call::MultiFetch,
            false => Call::Fetch,
        }
    }

    /// Writes deliveries, and binds their leases if asked to.
    pub fn write(&self, reply: Reply<'_>, key: Name<'_>, queue: &Queue, delivered: &[Delivered]) {
        self.write_applied(reply);
        if self.with_key {
            reply.array(2);
            reply.bulk(key.bytes());
        }
        reply.array(delivered.len());
        for one in delivered {
            message_reply::delivery(reply, queue, one, self.with_meta);
        }
        let receipts = delivered.iter().map(|one| one.receipt);
        if let Some(db) = self.repeats_in.filter(|_| bound_leases::any_released()) {
            bound_leases::keep(db, key.bytes(), receipts.clone());
        }
        if let Some((binding, db)) = self.binding {
            let is_running = |receipt| queue.is_running(receipt);
            if self.repeats_in.is_some() {
                bound_leases::rebind(binding, db, key.bytes(), receipts.clone());
            }
            bound_leases::bind(binding, db, key.bytes(), receipts, is_running);
        }
    }

    /// Writes the reply for no deliveries.
    pub fn write_nothing(&self, reply: Reply<'_>) {
        self.write_applied(reply);
        match self.with_key {
            true => reply.null_array(),
            false => reply.array(0),
        }
    }
}
