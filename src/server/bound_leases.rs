//! Leases that are bound to a connection (BIND) and end with it, or some time later (GRACE). The binding follows the queue when
//! its key is renamed or moved.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use dq_queue::op::Receipts;
use dq_queue::{Millis, Receipt};

use super::address::QueueAddress;

/// A binding with at least this many receipts is cleared of ended leases.
const MIN_CLEANUP: usize = 64;

/// The current address of a queue with bound leases, shared by all its bindings. `None` once
/// another queue has replaced the queue.
#[derive(Clone)]
struct SharedAddress(Rc<RefCell<Option<QueueAddress>>>);

impl SharedAddress {
    fn at(address: QueueAddress) -> SharedAddress {
        SharedAddress(Rc::new(RefCell::new(Some(address))))
    }

    fn address(&self) -> Option<QueueAddress> {
        self.0.borrow().clone()
    }

    fn set(&self, address: Option<QueueAddress>) {
        self.0.replace(address);
    }

    /// A number that identifies the queue as long as any of its bindings exists.
    fn number(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }

    /// Whether this is the last binding: apart from it, only the table of addresses refers to the
    /// address.
    fn is_last(&self) -> bool {
        Rc::strong_count(&self.0) <= 2
    }
}

/// The owner of a lease that is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The id of the client whose connection it is.
    pub client: u64,
    /// How long after the connection has closed the lease ends, in ms.
    pub grace: Millis,
}

/// Leases of a queue that a closed connection has released, and their grace in ms.
type Released<Q> = (Q, Receipts, Millis);

/// The leases of one queue that are bound to one connection.
struct BoundReceipts {
    queue: SharedAddress,
    receipts: Vec<Receipt>,
    /// The number of receipts at which ended leases are removed.
    cleanup_at: usize,
}

#[derive(Default)]
struct Bound {
    /// The bound leases, by connection, by the number of the queue and by grace.
    by_client: HashMap<u64, HashMap<(usize, Millis), BoundReceipts>>,
    /// The last bindings of leases that may have had another one, by the number of the queue and
    /// the receipt. It is the last binding that counts.
    rebound: HashMap<(usize, Receipt), Binding>,
    /// The queues that have bound leases, by their current address.
    queues: HashMap<QueueAddress, SharedAddress>,
    /// The leases of closed connections, which must be ended.
    released: Vec<Released<SharedAddress>>,
    /// The old address of the queue that is about to arrive at a new one.
    leaving: Option<QueueAddress>,
}

impl Bound {
    fn queue_at(&mut self, address: QueueAddress) -> SharedAddress {
        let queue = self.queues.entry(address);
        queue
            .or_insert_with_key(|address| SharedAddress::at(address.clone()))
            .clone()
    }

    /// Whether the end of this binding concerns a lease that had it: not if the lease was bound anew.
    fn released_by(&mut self, binding: Binding, queue: usize, receipt: Receipt) -> bool {
        match self.rebound.get(&(queue, receipt)) {
            Some(last) if *last != binding => false,
            Some(_) => self.rebound.remove(&(queue, receipt)).is_some(),
            None => true,
        }
    }

    /// Drops a binding to a queue. Returns the queue's address, unless the queue was replaced.
    fn unbind(&mut self, queue: SharedAddress) -> Option<QueueAddress> {
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

/// Binds leases to the connection of a client. `is_running` returns whether a lease is still
/// running. It is used to remove bindings whose lease has ended. O(1) amortised for each receipt.
pub fn bind(
    binding: Binding,
    db: i32,
    key: &[u8],
    receipts: impl Iterator<Item = Receipt>,
    is_running: impl Fn(Receipt) -> bool,
) {
    BOUND.with_borrow_mut(|bound| {
        let queue = bound.queue_at((db, key.into()));
        let number = queue.number();
        let of_client = bound.by_client.entry(binding.client).or_default();
        let of_queue = of_client
            .entry((number, binding.grace))
            .or_insert_with(|| BoundReceipts {
                queue,
                receipts: Vec::new(),
                cleanup_at: 0,
            });
        of_queue.receipts.extend(receipts);
        if of_queue.receipts.len() >= of_queue.cleanup_at.max(MIN_CLEANUP) {
            of_queue.receipts.sort_unstable();
            of_queue.receipts.dedup();
            of_queue.receipts.retain(|receipt| {
                let keeps = is_running(*receipt);
                if !keeps && !bound.rebound.is_empty() {
                    bound.rebound.remove(&(number, *receipt));
                }
                keeps
            });
            of_queue.cleanup_at = of_queue.receipts.len() * 2;
        }
    });
}

/// Makes this binding of leases the valid one. The binding follows (see [`bind`]).
pub fn rebind(binding: Binding, db: i32, key: &[u8], receipts: impl Iterator<Item = Receipt>) {
    BOUND.with_borrow_mut(|bound| {
        let number = bound.queue_at((db, key.into())).number();
        bound
            .rebound
            .extend(receipts.map(|receipt| ((number, receipt), binding)));
    });
}

/// A key is about to be renamed or moved. Its event at the new address follows next (see
/// [`key_arrived`]).
pub fn key_leaves(db: i32, key: &[u8]) {
    BOUND.with_borrow_mut(|bound| {
        let is_any = !bound.queues.is_empty();
        bound.leaving = is_any.then(|| (db, key.into()));
    });
}

/// Notes that the key which has left its old address is here now. Its bindings follow it.
/// Bindings to the queue that was here before are dropped, because that queue is gone. O(1).
pub fn key_arrived(db: i32, key: &[u8]) {
    BOUND.with_borrow_mut(|bound| {
        let Some(from) = bound.leaving.take() else {
            return;
        };
        let here: QueueAddress = (db, key.into());
        if let Some(before) = bound.queues.remove(&here) {
            before.set(None);
        }
        if let Some(queue) = bound.queues.remove(&from) {
            queue.set(Some(here.clone()));
            bound.queues.insert(here, queue);
        }
    });
}

/// Notes that two databases were swapped, so the queues in them have new addresses. O(queues
/// with bound leases).
pub fn databases_swapped(first: i32, second: i32) {
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

/// The connection of a client is closed: releases the leases that are bound to it. Returns whether
/// there are leases to end.
pub fn connection_closed(client: u64) -> bool {
    BOUND.with_borrow_mut(|bound| {
        let Some(of_client) = bound.by_client.remove(&client) else {
            return false;
        };
        for ((number, grace), of_queue) in of_client {
            let binding = Binding { client, grace };
            let mut receipts: Receipts = of_queue.receipts.into();
            if !bound.rebound.is_empty() {
                receipts.retain(|receipt| bound.released_by(binding, number, *receipt));
            }
            match receipts.is_empty() {
                true => drop(bound.unbind(of_queue.queue)),
                false => bound.released.push((of_queue.queue, receipts, grace)),
            }
        }
        !bound.released.is_empty()
    })
}

/// Takes released leases of one queue, which must be ended, if `may_be` holds for its address. Returns
/// the queue's address, the receipts, and how much later the leases end, in ms.
pub fn next_released(may_be: impl Fn(&QueueAddress) -> bool) -> Option<Released<QueueAddress>> {
    BOUND.with_borrow_mut(|bound| loop {
        let (queue, ..) = bound.released.last()?;
        if queue.address().is_some_and(|address| !may_be(&address)) {
            return None;
        }
        let (queue, receipts, grace) = bound.released.pop()?;
        if let Some(address) = bound.unbind(queue) {
            return Some((address, receipts, grace));
        }
    })
}

/// Notes that these leases of a queue were given once more, so they are not ended because of a
/// connection that was closed before.
pub fn keep(db: i32, key: &[u8], receipts: impl Iterator<Item = Receipt> + Clone) {
    BOUND.with_borrow_mut(|bound| {
        let address: QueueAddress = (db, key.into());
        for (queue, released, _) in &mut bound.released {
            if queue.address().as_ref() == Some(&address) {
                released.retain(|receipt| !receipts.clone().any(|kept| kept == *receipt));
            }
        }
    });
}

/// The number of queues that have leases to end, counted once for each closed connection.
pub fn count_released() -> usize {
    BOUND.with_borrow(|bound| bound.released.len())
}

/// Whether there are leases to end.
pub fn any_released() -> bool {
    BOUND.with_borrow(|bound| !bound.released.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind_one(client: u64, db: i32, key: &[u8], receipt: Receipt) {
        let binding = Binding { client, grace: 0 };
        bind(binding, db, key, [receipt].into_iter(), |_| true);
    }

    fn bind_again(client: u64, grace: Millis, key: &[u8], receipt: Receipt) {
        let binding = Binding { client, grace };
        rebind(binding, 0, key, [receipt].into_iter());
        bind(binding, 0, key, [receipt].into_iter(), |_| true);
    }

    fn rename(from: (i32, &[u8]), to: (i32, &[u8])) {
        key_leaves(from.0, from.1);
        key_arrived(to.0, to.1);
    }

    /// Closes these connections. Returns the leases that must be ended.
    fn ended(clients: &[u64]) -> Vec<(i32, Vec<u8>, Vec<Receipt>)> {
        clients.iter().for_each(|client| {
            connection_closed(*client);
        });
        let mut ended: Vec<_> = std::iter::from_fn(|| next_released(|_| true))
            .map(|((db, key), receipts, _)| (db, key.to_vec(), receipts.to_vec()))
            .collect();
        ended.sort();
        ended
    }

    fn nothing_is_bound() -> bool {
        BOUND.with_borrow(|bound| {
            bound.queues.is_empty() && bound.by_client.is_empty() && bound.rebound.is_empty()
        })
    }

    #[test]
    fn leases_follow_their_queue_when_it_is_renamed() {
        bind_one(1, 0, b"a", 10);
        rename((0, b"a"), (0, b"b"));
        bind_one(1, 0, b"b", 11);
        bind_one(1, 0, b"a", 12);
        rename((0, b"b"), (3, b"b"));
        let expected = [
            (0, b"a".to_vec(), vec![12]),
            (3, b"b".to_vec(), vec![10, 11]),
        ];
        assert_eq!(ended(&[1]), expected);
        assert!(nothing_is_bound());
    }

    #[test]
    fn leases_of_a_queue_that_was_replaced_are_not_ended() {
        bind_one(1, 0, b"a", 10);
        bind_one(1, 0, b"b", 20);
        rename((0, b"a"), (0, b"b"));
        assert_eq!(ended(&[1]), [(0, b"b".to_vec(), vec![10])]);
        bind_one(2, 0, b"b", 30);
        rename((0, b"unbound"), (0, b"b"));
        assert_eq!(ended(&[2]), []);
        assert!(nothing_is_bound());
    }

    #[test]
    fn leases_of_a_closed_connection_follow_their_queue_until_they_are_ended() {
        bind_one(1, 0, b"a", 10);
        bind_one(2, 0, b"a", 20);
        assert!(connection_closed(1));
        rename((0, b"a"), (0, b"b"));
        let expected = [(0, b"b".to_vec(), vec![10]), (0, b"b".to_vec(), vec![20])];
        assert_eq!(ended(&[2]), expected);
        assert!(nothing_is_bound());
    }

    #[test]
    fn leases_follow_their_queues_when_databases_are_swapped() {
        bind_one(1, 0, b"a", 10);
        bind_one(1, 1, b"a", 20);
        bind_one(1, 2, b"a", 30);
        databases_swapped(0, 1);
        let expected = [
            (0, b"a".to_vec(), vec![20]),
            (1, b"a".to_vec(), vec![10]),
            (2, b"a".to_vec(), vec![30]),
        ];
        assert_eq!(ended(&[1]), expected);
        assert!(nothing_is_bound());
    }

    #[test]
    fn a_lease_that_was_bound_anew_ends_with_its_last_connection() {
        bind_one(1, 0, b"a", 10);
        bind_one(1, 0, b"a", 11);
        bind_again(2, 5, b"a", 10);
        bind_again(2, 5, b"a", 10);
        rename((0, b"a"), (0, b"b"));
        assert_eq!(ended(&[1]), [(0, b"b".to_vec(), vec![11])]);
        bind_again(3, 7, b"b", 10);
        assert_eq!(ended(&[2]), []);
        connection_closed(3);
        let released =
            next_released(|_| true).map(|(_, receipts, grace)| (receipts.to_vec(), grace));
        assert_eq!(released, Some((vec![10], 7)));
        assert!(nothing_is_bound());
    }

    #[test]
    fn a_lease_that_was_given_once_more_is_not_ended_by_an_earlier_close() {
        bind_one(1, 0, b"a", 10);
        bind_one(1, 0, b"a", 11);
        assert!(connection_closed(1));
        keep(0, b"a", [10].into_iter());
        assert_eq!(ended(&[]), [(0, b"a".to_vec(), vec![11])]);
        assert!(nothing_is_bound());
    }
}
