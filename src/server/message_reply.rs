//! Writes messages in replies.

use crate::redis::Reply;
use dq_queue::message::state::State;
use dq_queue::message::{Header, Message};
use dq_queue::op::Delivered;
use dq_queue::queue::inspect::view::View;
use dq_queue::Queue;

/// Writes one delivery: id, receipt, attempt, payload, and with `with_meta` a map.
pub fn delivery(reply: Reply<'_>, queue: &Queue, delivered: &Delivered, with_meta: bool) {
    let (message, content) = match (&delivered.gone, queue.message(delivered.seq)) {
        (Some(gone), _) => (&gone.message, gone.content()),
        (None, Some(message)) => (message, queue.content(message)),
        (None, None) => return reply.null(),
    };
    reply.array(if with_meta { 5 } else { 4 });
    let id = queue.id_with(delivered.seq, message, content);
    reply.bulk(id.as_bytes());
    reply.unsigned(delivered.receipt);
    reply.unsigned(u64::from(delivered.attempt));
    reply.bulk(&content.payload.bytes());
    if with_meta {
        // There always is a view, because the message was found above.
        if let Some(view) = queue.view_delivered(delivered, queue.last_seen()) {
            meta(reply, &view);
        }
    }
}

/// Writes how a message has ended: its state, and its result or error if it has one.
pub fn ending(reply: Reply<'_>, state: State, text: Option<&[u8]>) {
    reply.array(2);
    reply.value(state.name());
    reply.value(text);
}

fn meta(reply: Reply<'_>, view: &View<'_>) {
    reply.map(15);
    routing(reply, view);
    reply.field("sent-at", view.message.sent_at);
    reply.field("due-at", view.message.due_at());
    reply.field("lease-until", view.lease_until());
    reply.field("retries-left", view.retries_left);
    reply.field("note", view.message.note());
    reply.field("signal", view.message.signal());
    batches(reply, view);
    kin(reply, view);
}

/// Writes the two fields batch and after.
fn batches(reply: Reply<'_>, view: &View<'_>) {
    reply.field("batch", view.batch);
    reply.name("after");
    let Some((batch, counts)) = view.after else {
        return reply.null();
    };
    reply.map(5);
    reply.field("batch", batch);
    for (name, count) in [
        ("pending", counts.pending),
        ("finished", counts.finished),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
    ] {
        reply.field(name, count);
    }
}

/// Writes the two fields parent and children.
fn kin(reply: Reply<'_>, view: &View<'_>) {
    reply.name("parent");
    match view.parent {
        None => reply.null(),
        Some(parent) => {
            reply.map(3);
            reply.field("key", &parent.key);
            reply.field("id", &parent.id);
            reply.field("ondead", parent.on_dead.name());
        }
    }
    reply.name("children");
    let Some(children) = view.message.children() else {
        return reply.null();
    };
    let counts = &children.counts;
    reply.map(6);
    for (name, count) in [
        ("total", children.total),
        ("pending", children.pending()),
        ("finished", counts.finished),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
        ("removed", counts.removed),
    ] {
        reply.field(name, count);
    }
}

/// Writes the five fields group, score, priority, type and headers.
fn routing(reply: Reply<'_>, view: &View<'_>) {
    reply.field("group", view.group);
    reply.field("score", view.score);
    reply.field("priority", i64::from(view.message.priority));
    let choices = view.message.choices();
    reply.field("type", choices.and_then(|choices| choices.label.as_deref()));
    reply.name("headers");
    headers(reply, view.message);
}

fn headers(reply: Reply<'_>, message: &Message) {
    let headers: &[Header] = message.choices().map_or(&[], |choices| &choices.headers);
    if headers.is_empty() {
        return reply.null();
    }
    reply.map(headers.len());
    for (field, value) in headers {
        reply.bulk(field);
        reply.bulk(value);
    }
}

/// Writes all fields of a message, as a map.
pub fn message(reply: Reply<'_>, view: &View<'_>) {
    let ended = view.message.texts();
    reply.map(35);
    reply.field("id", view.id.as_bytes());
    reply.field("status", view.state.status());
    reply.field("state", view.state.name());
    reply.field("payload", &*view.payload.bytes());
    reply.field("attempt", u64::from(view.attempt()));
    reply.field("failures", u64::from(view.message.failures()));
    reply.field("timeouts", u64::from(view.timeouts()));
    reply.field("retries-left", view.retries_left);
    routing(reply, view);
    reply.field("sent-at", view.message.sent_at);
    reply.field("due-at", view.message.due_at());
    reply.field("first-started-at", view.first_started_at());
    reply.field("started-at", view.started_at());
    reply.field("lease-until", view.lease_until());
    reply.field("finished-at", view.ended_at());
    reply.field("consumer", view.consumer);
    let receipt = view.message.receipt();
    reply.field("receipt", (receipt != 0).then_some(receipt));
    reply.field("error", ended.and_then(|notes| notes.error.as_deref()));
    reply.field("result", ended.and_then(|notes| notes.result.as_deref()));
    reply.field("reason", view.reason().map(|reason| reason.name()));
    reply.field("note", view.message.note());
    reply.field("signal", view.message.signal());
    batches(reply, view);
    kin(reply, view);
    reply.field("first-sent-at", view.first_sent_at);
    reply.field("rerun", view.message.rerun().is_some());
    limits(reply, view.message);
    errors(reply, view.message);
}

/// Writes the two fields limits and cost.
fn limits(reply: Reply<'_>, message: &Message) {
    let limited = message.limited();
    reply.name("limits");
    let names = limited.map_or(&[][..], |limited| &limited.names);
    reply.array(names.len());
    for name in names {
        reply.bulk(name);
    }
    reply.field("cost", limited.map(|limited| limited.cost));
}

/// Writes the field errors: the failed attempts that ERRORS keeps.
fn errors(reply: Reply<'_>, message: &Message) {
    reply.name("errors");
    reply.array(message.errors().len());
    for failed in message.errors() {
        reply.array(4);
        reply.unsigned(failed.attempt.into());
        reply.unsigned(failed.at);
        reply.value(failed.consumer.as_deref());
        reply.bulk(&failed.text);
    }
}
