//! The queue of the last delivery of a consumer that asked a family for it with a token.
//!
//! This is a note of this server. A consumer that it does not know is looked for in all queues of
//! the family, once.

use std::cell::RefCell;
use std::collections::HashMap;

use dq_queue::op::Fetch;

use super::{members, QueueName};

/// If there are more consumers than this, all of them are forgotten, so that names that are
/// never used again need no memory.
const MOST_CONSUMERS: usize = 10_000;

/// A database, the name of a family, and the name of a consumer.
type Asker = (i32, Box<[u8]>, Box<[u8]>);

/// The token, if there was one, and the name of the queue.
type Last = (Option<Box<[u8]>>, QueueName);

thread_local! {
    static LAST: RefCell<HashMap<Asker, Last>> = RefCell::default();
}

fn asker(db: i32, family: &[u8], fetch: &Fetch<'_>) -> Option<Asker> {
    let consumer = fetch.consumer.as_deref()?;
    Some((db, family.into(), consumer.into()))
}

/// Notes that a queue of a family has delivered to this fetch.
pub fn gave(db: i32, family: &[u8], fetch: &Fetch<'_>, key: &[u8]) {
    if fetch.token.is_none() && LAST.with_borrow(HashMap::is_empty) {
        return;
    }
    let Some(asker) = asker(db, family, fetch) else {
        return;
    };
    note(asker, (fetch.token.as_deref().map(Into::into), key.into()));
}

/// Notes that this fetch repeats no delivery, so that the delivery of its consumer is not searched
/// again.
pub fn not_found(db: i32, family: &[u8], fetch: &Fetch<'_>) {
    if fetch.token.is_none() {
        return;
    }
    let is_known = |asker: &Asker| LAST.with_borrow(|last| last.contains_key(asker));
    if let Some(asker) = asker(db, family, fetch).filter(|asker| !is_known(asker)) {
        note(asker, (None, QueueName::from(&[][..])));
    }
}

fn note(asker: Asker, delivery: Last) {
    LAST.with_borrow_mut(|last| {
        if last.len() >= MOST_CONSUMERS && !last.contains_key(&asker) {
            last.clear();
        }
        last.insert(asker, delivery);
    });
}

/// The queues in which the delivery may be that this fetch repeats. O(1), but O(queues of the
/// family) for a consumer that is not known.
pub fn candidates(db: i32, family: &[u8], fetch: &Fetch<'_>) -> Vec<QueueName> {
    let Some(token) = fetch.token.as_deref() else {
        return Vec::new();
    };
    let Some(asker) = asker(db, family, fetch) else {
        return Vec::new();
    };
    let known = LAST.with_borrow(|last| {
        last.get(&asker).map(|(last, key)| {
            let is_same = last.as_deref() == Some(token);
            is_same.then(|| key.clone())
        })
    });
    match known {
        Some(key) => key.into_iter().collect(),
        None => members(db, family),
    }
}
