//! Leases that are tied to a connection.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::core::op::Receipts;
use crate::core::Receipt;

use super::index::Place;

/// Below this many receipts of a connection, those that have ended are not
/// looked for.
const FEW: usize = 64;

#[derive(Default)]
struct Receipted {
    receipts: Vec<Receipt>,
    /// At so many, those that have ended are sorted out.
    full: usize,
}

#[derive(Default)]
struct Bound {
    by_client: HashMap<u64, HashMap<Place, Receipted>>,
    /// Of connections that are closed.
    released: Vec<(Place, Receipts)>,
}

thread_local! {
    static BOUND: RefCell<Bound> = RefCell::default();
}

/// Ties leases to the connection of a client. `is_running` tells which of the
/// earlier ones are still on.
pub fn bind(
    client: u64,
    db: i32,
    key: &[u8],
    receipts: impl Iterator<Item = Receipt>,
    is_running: impl Fn(Receipt) -> bool,
) {
    BOUND.with_borrow_mut(|bound| {
        let places = bound.by_client.entry(client).or_default();
        let tied = places.entry((db, key.into())).or_default();
        tied.receipts.extend(receipts);
        if tied.receipts.len() >= tied.full.max(FEW) {
            tied.receipts.retain(|receipt| is_running(*receipt));
            tied.full = tied.receipts.len() * 2;
        }
    });
}

/// The connection of a client is closed; whether leases were tied to it.
pub fn closed(client: u64) -> bool {
    BOUND.with_borrow_mut(|bound| {
        let Some(places) = bound.by_client.remove(&client) else {
            return false;
        };
        for (place, tied) in places {
            bound.released.push((place, tied.receipts.into()));
        }
        !bound.released.is_empty()
    })
}

/// Leases to be ended: of which queue, and which.
pub fn next_released() -> Option<(Place, Receipts)> {
    BOUND.with_borrow_mut(|bound| bound.released.pop())
}

/// Whether there are leases to be ended.
pub fn any_released() -> bool {
    BOUND.with_borrow(|bound| !bound.released.is_empty())
}
