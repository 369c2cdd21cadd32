//! Blocked clients that repeat each other: fetches of one consumer with the same token. A worker that
//! has lost its connection leaves one behind when it calls again. What the first of them gets, the
//! others get too, as if they had called again after that.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use dq_queue::op::Fetch;

use super::wait_list::BlockedFetch;
use crate::server::QueueAddress;

/// A queue, the name of the consumer, and the token.
type Asked = (QueueAddress, Box<[u8]>, Box<[u8]>);

thread_local! {
    /// The last client that was blocked with a token.
    static LAST: RefCell<HashMap<Asked, Weak<BlockedFetch>>> = RefCell::default();
}

fn asked(fetch: &Fetch<'_>, db: i32, key: &Rc<[u8]>) -> Option<Asked> {
    let (consumer, token) = (fetch.consumer.as_ref()?, fetch.token.as_ref()?);
    let address = (db, Rc::clone(key));
    Some((address, (**consumer).into(), (**token).into()))
}

/// Notes that a client was blocked on these queues. Clients without a token have no twins.
pub fn joined(client: &Rc<BlockedFetch>, db: i32, keys: &[Rc<[u8]>]) {
    for key in keys {
        let Some(asked) = asked(&client.request.fetch, db, key) else {
            return;
        };
        let earlier = LAST.with_borrow_mut(|last| last.insert(asked, Rc::downgrade(client)));
        if let Some(earlier) = earlier.and_then(|earlier| earlier.upgrade()) {
            earlier.twin.replace(Some(Rc::clone(client)));
        }
    }
}

/// Notes that a client is no longer blocked.
pub fn left(client: &BlockedFetch, db: i32, keys: &[Rc<[u8]>]) {
    for key in keys {
        let Some(asked) = asked(&client.request.fetch, db, key) else {
            return;
        };
        LAST.with_borrow_mut(|last| {
            let is_last = |last: &Weak<BlockedFetch>| std::ptr::eq(last.as_ptr(), client);
            if last.get(&asked).is_some_and(is_last) {
                last.remove(&asked);
            }
        });
    }
}
