//! The ties of a queue to other keys, where a client brings it by RESTORE or COPY: EVENTS, DEADTO
//! and the parents of its messages. No right of that client was checked for these keys. So where
//! some user may bring queues but not write to every key, the ties are cut (`dq.restore-ties`).
//!
//! The cut is made in the notification of the command, where nothing may be replicated. So the
//! queue notes it, and the next change of the queue replicates it before its own log entry; the
//! timer makes one soon. What is loaded, replayed, replicated or imported with its slot keeps its
//! ties.

use crate::redis::{warn, Context, Name, OwnedName};
use dq_queue::detached::Ties;
use dq_queue::family::slot_of_key;
use dq_queue::quote::quote;
use dq_queue::Op;

use super::config::{restore_ties, RestoreTies};

/// The commands with which a queue comes, with as many words as they need.
const BRINGING: [(&[u8], usize); 3] = [(b"RESTORE", 4), (b"RESTORE-ASKING", 4), (b"COPY", 3)];

/// A queue was put into a key by RESTORE or COPY: cuts its ties to other keys, if that has to be.
/// Without ties O(1), else O(users of the server and their rules).
pub fn arrived(ctx: &mut Context, key: Name<'_>) {
    if ctx.is_replay() || !ctx.is_primary() {
        return;
    }
    let Some((ties, copied)) = ties_in(ctx, key) else {
        return;
    };
    let cut = match !ties.is_nothing() && are_cut(ctx) && !is_imported(ctx, key) {
        true => ties.and(copied),
        false => copied,
    };
    let Ok(mut opened) = ctx.open_write(key) else {
        return;
    };
    let Some(queue) = opened.get_mut().filter(|_| !cut.is_nothing()) else {
        return;
    };
    // The cut is a part of the arrival and takes no time. A replica that copies the queue before it
    // learns of the cut then makes the same copy.
    let moment = queue.last_moment();
    // A cut is never refused.
    let _ = queue.apply(&Op::Detach(cut), moment);
    queue.take_effects();
    queue.notes.cut = Some((cut, moment));
    let words: Vec<_> = cut.words().collect();
    warn(&format!(
        "the queue {} came without its {}, because some user may bring queues but not write to \
         every key (dq.restore-ties)",
        quote(key.bytes()),
        words.join(", ")
    ));
}

/// The ties of the queue in a key, and those that were cut in the queue that it is a copy of, if
/// that is not replicated yet. `None` if there are none.
fn ties_in(ctx: &mut Context, key: Name<'_>) -> Option<(Ties, Ties)> {
    let mut opened = ctx.open_write(key).ok()?;
    let queue = opened.get_mut()?;
    let copied = queue.notes.cut.take();
    let copied = copied.map_or(Ties::default(), |(ties, _)| ties);
    let ties = queue.ties();
    (!ties.and(copied).is_nothing()).then_some((ties, copied))
}

/// Whether a queue comes with its slot: this node does not serve the slot yet.
fn is_imported(ctx: &Context, key: Name<'_>) -> bool {
    let slots = ctx.own_slots();
    slots.is_some_and(|slots| !slots.contains(slot_of_key(key.bytes()))) || !ctx.owns(key)
}

/// Whether ties are cut, by the setting and the users of the server.
fn are_cut(ctx: &Context) -> bool {
    match restore_ties() {
        RestoreTies::Keep => false,
        RestoreTies::Cut => true,
        RestoreTies::Auto => ctx.users().iter().any(|user| is_limited(ctx, user)),
    }
}

/// Whether a user may bring queues, but not write to every key.
fn is_limited(ctx: &Context, user: &[u8]) -> bool {
    let Some(rules) = ctx.rules_of(user) else {
        return false;
    };
    let calls = BRINGING.map(|(name, words)| (OwnedName::new(name), words));
    rules.is_enabled && rules.is_limited_to_keys(&calls)
}
