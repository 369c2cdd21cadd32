//! Leases that are bound to a connection (BIND). They follow their queue to another name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use dq_queue::op::Receipts;
use dq_queue::Receipt;

use super::Address;

/// Below this many receipts of a connection, those that have ended are not
/// looked for.
const FEW: usize = 64;

/// Where a queue is to which leases are tied; nowhere once another queue was
/// put in its place. All ties to the queue share it.
#[derive(Clone)]
struct Whereabouts(Rc<RefCell<Option<Address>>>);

impl Whereabouts {
    fn at(address: Address) -> Whereabouts {
        Whereabouts(Rc::new(RefCell::new(Some(address))))
    }

    fn address(&self) -> Option<Address> {
        self.0.borrow().clone()
    }

    fn set(&self, address: Option<Address>) {
        self.0.replace(address);
    }

    /// Tells queues apart as long as any tie to them is kept.
    fn number(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }

    /// Whether nobody else but the table of addresses has it.
    fn is_last(&self) -> bool {
        Rc::strong_count(&self.0) <= 2
    }
}

/// The leases of one queue that are tied to one connection.
struct Tied {
    queue: Whereabouts,
    receipts: Vec<Receipt>,
    /// At so many, those that have ended are sorted out.
    full: usize,
}

#[derive(Default)]
struct Bound {
    /// By connection, and by the number of the queue.
    by_client: HashMap<u64, HashMap<usize, Tied>>,
    /// The queues, by where they are now.
    queues: HashMap<Address, Whereabouts>,
    /// Of connections that are closed.
    released: Vec<(Whereabouts, Receipts)>,
    /// Where the queue came from that will be at its new address next.
    leaving: Option<Address>,
}

impl Bound {
    fn queue_at(&mut self, address: Address) -> Whereabouts {
        let queue = self.queues.entry(address);
        queue
            .or_insert_with_key(|address| Whereabouts::at(address.clone()))
            .clone()
    }

    /// Gives up a tie to a queue.
    fn untie(&mut self, queue: Whereabouts) -> Option<Address> {
        let address = queue.address();
        if let Some(address) = address.as_ref().filter(|_| queue.is_last()) {
            self.queues.remove(address);
        }
        address
    }
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
        let queue = bound.queue_at((db, key.into()));
        let of_client = bound.by_client.entry(client).or_default();
        let tied = of_client.entry(queue.number()).or_insert_with(|| Tied {
            queue,
            receipts: Vec::new(),
            full: 0,
        });
        tied.receipts.extend(receipts);
        if tied.receipts.len() >= tied.full.max(FEW) {
            tied.receipts.retain(|receipt| is_running(*receipt));
            tied.full = tied.receipts.len() * 2;
        }
    });
}

/// A key is about to appear at another address, under which its event follows
/// next (see [`arrives`]).
pub fn leaves(db: i32, key: &[u8]) {
    BOUND.with_borrow_mut(|bound| {
        let is_any = !bound.queues.is_empty();
        bound.leaving = is_any.then(|| (db, key.into()));
    });
}

/// The key that has left another address is here now: its ties come with it, and
/// those to what was here before have nothing left to end. O(1).
pub fn arrives(db: i32, key: &[u8]) {
    BOUND.with_borrow_mut(|bound| {
        let Some(from) = bound.leaving.take() else {
            return;
        };
        let here: Address = (db, key.into());
        if let Some(before) = bound.queues.remove(&here) {
            before.set(None);
        }
        if let Some(queue) = bound.queues.remove(&from) {
            queue.set(Some(here.clone()));
            bound.queues.insert(here, queue);
        }
    });
}

/// Two databases were exchanged. O(queues that have ties).
pub fn swapped(first: i32, second: i32) {
    BOUND.with_borrow_mut(|bound| {
        let queues = std::mem::take(&mut bound.queues).into_iter();
        bound.queues = queues
            .map(|((db, key), queue)| {
                let address = match db {
                    db if db == first => (second, key),
                    db if db == second => (first, key),
                    db => (db, key),
                };
                queue.set(Some(address.clone()));
                (address, queue)
            })
            .collect();
    });
}

/// The connection of a client is closed; whether leases were tied to it.
pub fn closed(client: u64) -> bool {
    BOUND.with_borrow_mut(|bound| {
        let Some(of_client) = bound.by_client.remove(&client) else {
            return false;
        };
        for tied in of_client.into_values() {
            bound.released.push((tied.queue, tied.receipts.into()));
        }
        !bound.released.is_empty()
    })
}

/// Leases to be ended: of which queue, and which.
pub fn next_released() -> Option<(Address, Receipts)> {
    BOUND.with_borrow_mut(|bound| loop {
        let (queue, receipts) = bound.released.pop()?;
        if let Some(address) = bound.untie(queue) {
            return Some((address, receipts));
        }
    })
}

/// Whether there are leases to be ended.
pub fn any_released() -> bool {
    BOUND.with_borrow(|bound| !bound.released.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tie(client: u64, db: i32, key: &[u8], receipt: Receipt) {
        bind(client, db, key, [receipt].into_iter(), |_| true);
    }

    fn rename(from: (i32, &[u8]), to: (i32, &[u8])) {
        leaves(from.0, from.1);
        arrives(to.0, to.1);
    }

    /// What is to be ended once these connections are closed.
    fn ended(clients: &[u64]) -> Vec<(i32, Vec<u8>, Vec<Receipt>)> {
        clients.iter().for_each(|client| {
            closed(*client);
        });
        let mut ended: Vec<_> = std::iter::from_fn(next_released)
            .map(|((db, key), receipts)| (db, key.to_vec(), receipts.to_vec()))
            .collect();
        ended.sort();
        ended
    }

    fn is_forgotten() -> bool {
        BOUND.with_borrow(|bound| bound.queues.is_empty() && bound.by_client.is_empty())
    }

    #[test]
    fn ties_follow_their_queue_and_later_ones_join_them() {
        tie(1, 0, b"a", 10);
        rename((0, b"a"), (0, b"b"));
        tie(1, 0, b"b", 11);
        tie(1, 0, b"a", 12);
        rename((0, b"b"), (3, b"b"));
        let expected = [
            (0, b"a".to_vec(), vec![12]),
            (3, b"b".to_vec(), vec![10, 11]),
        ];
        assert_eq!(ended(&[1]), expected);
        assert!(is_forgotten());
    }

    #[test]
    fn ties_to_a_queue_that_another_one_replaces_are_gone() {
        tie(1, 0, b"a", 10);
        tie(1, 0, b"b", 20);
        rename((0, b"a"), (0, b"b"));
        assert_eq!(ended(&[1]), [(0, b"b".to_vec(), vec![10])]);
        tie(2, 0, b"b", 30);
        rename((0, b"untied"), (0, b"b"));
        assert_eq!(ended(&[2]), []);
        assert!(is_forgotten());
    }

    #[test]
    fn ties_of_a_closed_connection_follow_until_they_are_ended() {
        tie(1, 0, b"a", 10);
        tie(2, 0, b"a", 20);
        assert!(closed(1));
        rename((0, b"a"), (0, b"b"));
        let expected = [(0, b"b".to_vec(), vec![10]), (0, b"b".to_vec(), vec![20])];
        assert_eq!(ended(&[2]), expected);
        assert!(is_forgotten());
    }

    #[test]
    fn ties_are_exchanged_with_their_databases() {
        tie(1, 0, b"a", 10);
        tie(1, 1, b"a", 20);
        tie(1, 2, b"a", 30);
        swapped(0, 1);
        let expected = [
            (0, b"a".to_vec(), vec![20]),
            (1, b"a".to_vec(), vec![10]),
            (2, b"a".to_vec(), vec![30]),
        ];
        assert_eq!(ended(&[1]), expected);
        assert!(is_forgotten());
    }
}
