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
    reply.bulk(content.payload);
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
    reply.bulk(state.name().as_bytes());
    match text {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
}

fn meta(reply: Reply<'_>, view: &View<'_>) {
    reply.map(15);
    routing(reply, view);
    field(reply, "sent-at");
    reply.unsigned(view.message.sent_at);
    field(reply, "due-at");
    reply.unsigned(view.message.due_at());
    field(reply, "lease-until");
    time(reply, view.lease_until());
    field(reply, "retries-left");
    reply.integer(view.retries_left);
    field(reply, "note");
    text(reply, view.message.note());
    field(reply, "signal");
    text(reply, view.message.signal());
    batches(reply, view);
    kin(reply, view);
}

/// Writes the two fields batch and after.
fn batches(reply: Reply<'_>, view: &View<'_>) {
    field(reply, "batch");
    text(reply, view.batch);
    field(reply, "after");
    let Some((batch, counts)) = view.after else {
        return reply.null();
    };
    reply.map(5);
    field(reply, "batch");
    reply.bulk(batch);
    for (name, count) in [
        ("pending", counts.pending),
        ("finished", counts.finished),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
    ] {
        field(reply, name);
        reply.unsigned(count);
    }
}

/// Writes the two fields parent and children.
fn kin(reply: Reply<'_>, view: &View<'_>) {
    field(reply, "parent");
    match view.parent {
        None => reply.null(),
        Some(parent) => {
            reply.map(3);
            field(reply, "key");
            reply.bulk(&parent.key);
            field(reply, "id");
            reply.bulk(&parent.id);
            field(reply, "ondead");
            reply.bulk(parent.on_dead.name().as_bytes());
        }
    }
    field(reply, "children");
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
        field(reply, name);
        reply.unsigned(count);
    }
}

/// Writes the five fields group, score, priority, type and headers.
fn routing(reply: Reply<'_>, view: &View<'_>) {
    field(reply, "group");
    text(reply, view.group);
    field(reply, "score");
    match view.score {
        Some(score) => reply.score(score),
        None => reply.null(),
    }
    field(reply, "priority");
    reply.integer(i64::from(view.message.priority));
    field(reply, "type");
    let choices = view.message.choices();
    text(reply, choices.and_then(|choices| choices.label.as_deref()));
    field(reply, "headers");
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
    field(reply, "id");
    reply.bulk(view.id.as_bytes());
    field(reply, "status");
    reply.bulk(view.state.status().as_bytes());
    field(reply, "state");
    reply.bulk(view.state.name().as_bytes());
    field(reply, "payload");
    reply.bulk(view.payload);
    field(reply, "attempt");
    reply.unsigned(u64::from(view.attempt()));
    field(reply, "failures");
    reply.unsigned(u64::from(view.message.failures()));
    field(reply, "timeouts");
    reply.unsigned(u64::from(view.timeouts()));
    field(reply, "retries-left");
    reply.integer(view.retries_left);
    routing(reply, view);
    field(reply, "sent-at");
    reply.unsigned(view.message.sent_at);
    field(reply, "due-at");
    reply.unsigned(view.message.due_at());
    field(reply, "first-started-at");
    time(reply, view.first_started_at());
    field(reply, "started-at");
    time(reply, view.started_at());
    field(reply, "lease-until");
    time(reply, view.lease_until());
    field(reply, "finished-at");
    time(reply, view.ended_at());
    field(reply, "consumer");
    text(reply, view.consumer);
    field(reply, "receipt");
    match view.message.receipt() {
        0 => reply.null(),
        receipt => reply.unsigned(receipt),
    }
    field(reply, "error");
    text(reply, ended.and_then(|notes| notes.error.as_deref()));
    field(reply, "result");
    text(reply, ended.and_then(|notes| notes.result.as_deref()));
    field(reply, "reason");
    text(reply, view.reason().map(|reason| reason.name().as_bytes()));
    field(reply, "note");
    text(reply, view.message.note());
    field(reply, "signal");
    text(reply, view.message.signal());
    batches(reply, view);
    kin(reply, view);
    field(reply, "first-sent-at");
    time(reply, view.first_sent_at);
    field(reply, "rerun");
    reply.boolean(view.message.rerun().is_some());
    limits(reply, view.message);
    errors(reply, view.message);
}

/// Writes the two fields limits and cost.
fn limits(reply: Reply<'_>, message: &Message) {
    let limited = message.limited();
    field(reply, "limits");
    let names = limited.map_or(&[][..], |limited| &limited.names);
    reply.array(names.len());
    for name in names {
        reply.bulk(name);
    }
    field(reply, "cost");
    match limited {
        Some(limited) => reply.unsigned(limited.cost),
        None => reply.null(),
    }
}

/// Writes the field errors: the failed attempts that ERRORS keeps.
fn errors(reply: Reply<'_>, message: &Message) {
    field(reply, "errors");
    reply.array(message.errors().len());
    for failed in message.errors() {
        reply.array(4);
        reply.unsigned(failed.attempt.into());
        reply.unsigned(failed.at);
        text(reply, failed.consumer.as_deref());
        reply.bulk(&failed.text);
    }
}

/// Writes the name of a field of a map. The caller must then write its value.
pub fn field(reply: Reply<'_>, name: &str) {
    reply.bulk(name.as_bytes());
}

/// Writes a text, or null.
pub fn text(reply: Reply<'_>, text: Option<&[u8]>) {
    match text {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
}

/// Writes a time in Unix milliseconds, or null.
pub fn time(reply: Reply<'_>, at: Option<u64>) {
    match at {
        Some(at) => reply.unsigned(at),
        None => reply.null(),
    }
}
