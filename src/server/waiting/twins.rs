//! Blocked clients with equal requests: fetches of one consumer with the same token. A worker that
//! has lost its connection leaves one behind when it calls again. The other clients get the same
//! reply as the first, as if they had called again after that.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use super::blocked_fetch::BlockedFetch;
use crate::server::address::QueueAddress;

/// The object that a client waits for: a queue, or a family with the rights of a user.
#[derive(PartialEq, Eq, Hash)]
enum Awaited {
    Queue(QueueAddress),
    Family(i32, Rc<[u8]>, Rc<[u8]>),
}

/// The object that is awaited, the name of the consumer, and the token.
type Asked = (Awaited, Box<[u8]>, Box<[u8]>);

thread_local! {
    /// The last client that was blocked with a token.
    static LAST: RefCell<HashMap<Asked, Weak<BlockedFetch>>> = RefCell::default();
}

/// The fetches of a client, one for each of its queues. A client without a token has none here.
fn asked(client: &BlockedFetch) -> Vec<Asked> {
    let fetch = &client.request.fetch;
    let (Some(consumer), Some(token)) = (&fetch.consumer, &fetch.token) else {
        return Vec::new();
    };
    let queues = client.keys.iter();
    let queues = queues.map(|key| Awaited::Queue((client.db, Rc::clone(key))));
    let family = client.family.iter();
    let family = family
        .map(|family| Awaited::Family(client.db, Rc::clone(&family.name), Rc::clone(&family.user)));
    let awaited = queues.chain(family);
    awaited
        .map(|awaited| (awaited, (**consumer).into(), (**token).into()))
        .collect()
}

/// Notes that a client is blocked. Clients without a token have no twins.
pub fn joined(client: &Rc<BlockedFetch>) {
    for asked in asked(client) {
        let earlier = LAST.with_borrow_mut(|last| last.insert(asked, Rc::downgrade(client)));
        if let Some(earlier) = earlier.and_then(|earlier| earlier.upgrade()) {
            earlier.twin.replace(Some(Rc::clone(client)));
        }
    }
}

/// Notes that a client is no longer blocked.
pub fn left(client: &BlockedFetch) {
    for asked in asked(client) {
        LAST.with_borrow_mut(|last| {
            let is_last = |last: &Weak<BlockedFetch>| std::ptr::eq(last.as_ptr(), client);
            if last.get(&asked).is_some_and(is_last) {
                last.remove(&asked);
            }
        });
    }
}
