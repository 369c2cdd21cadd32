//! Sends dead messages to the queue of DEADTO.
//!
//! A message that dies becomes a dead record of its own queue, as any other. When that queue is
//! closed again, the message is sent to the other one, and then the record is removed. All three
//! are log entries of one replicated command, so a torn log, a replica and a crash have all of them
//! or none. A message that cannot be sent stays a dead record.

use std::mem;

use crate::redis::{Context, Name, OwnedName, Value};
use dq_queue::dead_letters::{Letter, Moved, Stays};
use dq_queue::family::slot_of_key;
use dq_queue::message::Choices;
use dq_queue::op::{AckSend, Send, Sent};
use dq_queue::settings::{Changes, Clock};
use dq_queue::{Done, Error, Op};

use super::outbox::{Letters, Others};
use super::{begin_without_events, change_silently, creation, renewing, Begun, Slot};
use crate::server::{clock, wakeups};

impl Letters {
    /// Sends the messages, and removes those that were accepted from their queue, `key`.
    /// Says in `others` what has happened in the other queue.
    #[cold]
    pub fn deliver(self, ctx: &mut Context, key: Name<'_>, others: &mut Others) {
        let name = OwnedName::new(&self.to);
        let to = name.name();
        let mut moved = Moved {
            gone: Vec::new(),
            stays: self.stays,
        };
        if *self.to == *key.bytes() {
            moved.stays = Some(Stays::Itself);
        } else if ctx.is_in_cluster() && slot_of_key(&self.to) != slot_of_key(key.bytes()) {
            moved.stays = Some(Stays::Slot);
        } else if !self.letters.is_empty() {
            let sent = change_silently(ctx, to, |slot| send(slot, &self.letters, &mut moved));
            match sent {
                Ok(((), mut aftermath)) => {
                    aftermath.tell(ctx);
                    let happened = aftermath.happened;
                    others.streams.extend(aftermath.take_streams());
                    others.queues.push((OwnedName::new(&self.to), happened));
                }
                Err(_) => moved.stays = Some(Stays::Type),
            }
        }
        let moved = Op::Moved(moved);
        let removed = change_silently(ctx, key, |slot| {
            slot.apply(Begun::at(self.moment), &moved, |_, _, _| ())
        });
        // The type of the key was right a moment ago. If the queue is gone, its records are gone,
        // too.
        if let Ok((_, mut aftermath)) = removed {
            aftermath.tell(ctx);
        }
    }
}

/// Sends the messages to the queue in an open key, as many as that queue accepts.
fn send(slot: &mut Slot<'_>, letters: &[Letter], moved: &mut Moved<'static>) {
    let server = slot.moment(clock::now());
    // The due events of the other queue are left to the timer, because they may let messages of
    // that queue die, which are then sent on.
    let mut begun = match slot.split().1 {
        Some(queue) => begin_without_events(queue, server),
        None => Begun::at(server),
    };
    if send_together(slot, &mut begun, letters, moved).is_err() {
        for letter in letters.chunks(1) {
            if let Err(error) = send_together(slot, &mut begun, letter, moved) {
                moved.stays = Some(match error {
                    Error::Closed => Stays::Closed,
                    _ => Stays::Full,
                });
            }
        }
    }
    if !begun.before.is_nothing() {
        // A Tick is never refused.
        let _ = slot.apply(begun, &Op::Tick, |_, _, _| ());
    }
}

/// Sends all of these messages, or none.
///
/// Error: the queue refuses them.
fn send_together(
    slot: &mut Slot<'_>,
    begun: &mut Begun,
    letters: &[Letter],
    moved: &mut Moved<'static>,
) -> Result<(), Error> {
    let moment = begun.moment;
    let queue = slot.split().1;
    let sends = letters.iter().map(|letter| {
        let is_taken = queue
            .as_ref()
            .is_some_and(|queue| queue.is_taken(&letter.id, queue.now(moment)));
        send_of(letter, is_taken)
    });
    let op = AckSend {
        signals: Vec::new(),
        receipt: None,
        result: None,
        sends: sends.collect(),
    };
    if let Some(queue) = &queue {
        queue.can_ack_send(&op, moment)?;
    }
    let op = Op::AckSend(op);
    let renewed = queue.as_ref().and_then(|queue| renewing(queue, &op));
    let is_new = queue.is_none();
    let op = renewed.as_ref().unwrap_or(&op);
    let note = |_: &Context, queue: &mut Value, done: &Done| {
        if renewed.is_some() {
            queue.notes.salt_term = wakeups::term();
        }
        if let Done::AckSent(Some(sent)) = done {
            for (letter, sent) in letters.iter().zip(sent) {
                let Sent::Added(seq) = sent else {
                    continue;
                };
                let message = queue.message(*seq);
                let id = message.map(|message| queue.id_of(*seq, message).to_box());
                let new_id = id.filter(|id| *id != letter.id);
                moved
                    .gone
                    .push((letter.seq, new_id.map(|id| id.into_vec().into())));
            }
        }
    };
    match is_new {
        true => {
            let creation = creation(&Changes::default(), Clock::Server);
            slot.apply_to_new(creation, op, moment, note)
        }
        false => {
            let begun = Begun {
                moment,
                before: mem::take(&mut begun.before),
            };
            slot.apply(begun, op, note).map(|_| ())
        }
    }
}

fn send_of(letter: &Letter, is_taken: bool) -> Send<'_> {
    Send {
        id: (!is_taken).then(|| (&*letter.id).into()),
        group: letter.group.as_deref().map(Into::into),
        choices: Choices {
            label: letter.label.clone(),
            headers: letter.headers.clone(),
            ..Choices::default()
        },
        ..Send::plain(&letter.payload)
    }
}
