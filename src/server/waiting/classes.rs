//! The clients that wait for messages of one queue, by class.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::rc::Rc;

/// The position of a client in the wait lists, from 1. A client that came earlier has a lower one.
pub type Ticket = u64;

/// The options of a client that decide whether a queue has messages for it. All clients of a class
/// can be served, or none: if the first gets nothing, the others are not tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// The group whose messages the client takes. `None`: any group.
    pub group: Option<Rc<[u8]>>,
    /// Whether the client takes messages without a lease (NOACK). MAXRUNNING does not limit those.
    pub no_ack: bool,
    /// The user, if the client waits for a family: users may take from different queues of it.
    pub user: Option<Rc<[u8]>>,
}

/// The clients that wait for messages of one queue, in the order in which they came.
#[derive(Debug)]
pub struct Classes<T> {
    members: BTreeMap<(Class, Ticket), T>,
    /// The first client of each class.
    firsts: BTreeMap<Ticket, Class>,
}

impl<T> Default for Classes<T> {
    fn default() -> Self {
        Classes {
            members: BTreeMap::new(),
            firsts: BTreeMap::new(),
        }
    }
}

impl<T> Classes<T> {
    /// The number of clients.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a client. Its ticket must be above those of all other clients. O(log n).
    pub fn join(&mut self, class: Class, ticket: Ticket, member: T) {
        if self.first_of(&class).is_none() {
            self.firsts.insert(ticket, class.clone());
        }
        self.members.insert((class, ticket), member);
    }

    /// Removes a client. O(log n).
    pub fn leave(&mut self, class: &Class, ticket: Ticket) {
        self.members.remove(&(class.clone(), ticket));
        if self.firsts.remove(&ticket).is_some() {
            if let Some(first) = self.first_of(class) {
                self.firsts.insert(first, class.clone());
            }
        }
    }

    /// The next client to try: the first one of the first class whose first client has a ticket
    /// above `after`. All classes before it got nothing; 0 if none was tried. O(log n).
    pub fn next(&self, after: Ticket) -> Option<(Ticket, &T)> {
        let (ticket, class) = self.firsts.range((Excluded(after), Unbounded)).next()?;
        let member = self.members.get(&(class.clone(), *ticket))?;
        Some((*ticket, member))
    }

    /// All clients, by class.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.members.values()
    }

    /// The first client of each class, in the order in which they came.
    pub fn firsts(&self) -> impl Iterator<Item = &T> {
        let firsts = self.firsts.iter();
        firsts.filter_map(|(ticket, class)| self.members.get(&(class.clone(), *ticket)))
    }

    fn first_of(&self, class: &Class) -> Option<Ticket> {
        let first = (class.clone(), 0);
        let ((of, ticket), _) = self.members.range(first..).next()?;
        (of == class).then_some(*ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(group: Option<&[u8]>, no_ack: bool) -> Class {
        let group = group.map(Rc::from);
        Class {
            group,
            no_ack,
            user: None,
        }
    }

    #[test]
    fn clients_are_tried_in_order_and_each_class_without_messages_only_once() {
        let any = class(None, false);
        let (a, b) = (class(Some(b"a"), false), class(Some(b"b"), false));
        let mut classes = Classes::default();
        for (ticket, class) in [(1, &any), (2, &a), (3, &any), (4, &b), (5, &a)] {
            classes.join(class.clone(), ticket, ticket * 10);
        }
        assert_eq!(classes.len(), 5);
        // The first client is served, so the next client of its class is tried in its turn.
        assert_eq!(classes.next(0), Some((1, &10)));
        classes.leave(&any, 1);
        // The class of client 2 gets nothing, so client 5 is not tried.
        assert_eq!(classes.next(0), Some((2, &20)));
        assert_eq!(classes.next(2), Some((3, &30)));
        assert_eq!(classes.next(3), Some((4, &40)));
        assert_eq!(classes.next(4), None);
        // A client that leaves does not block the clients of its class behind it.
        classes.leave(&a, 2);
        assert_eq!(classes.next(4), Some((5, &50)));
        classes.leave(&any, 3);
        classes.leave(&b, 4);
        classes.leave(&a, 5);
        classes.leave(&a, 5);
        assert!(classes.is_empty());
        assert_eq!(classes.next(0), None);
    }

    #[test]
    fn clients_with_noack_are_in_a_class_of_their_own() {
        let mut classes = Classes::default();
        classes.join(class(None, false), 1, "lease");
        classes.join(class(None, true), 2, "none");
        assert_eq!(classes.next(1), Some((2, &"none")));
    }
}
