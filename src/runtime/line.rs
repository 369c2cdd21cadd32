//! The line of those who wait for messages of one queue.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::rc::Rc;

/// Where someone stands: who came earlier has the lower one. Above 0.
pub type Ticket = u64;

/// What decides whether a queue has anything for a consumer. All of one class
/// can be served or none: where the first is refused, no other is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// Of which group it takes messages, if not of any.
    pub group: Option<Rc<[u8]>>,
    /// Whether it takes them without a lease, which MAXRUNNING does not limit.
    pub no_ack: bool,
}

/// Those who wait, in the order they came.
#[derive(Debug)]
pub struct Line<T> {
    members: BTreeMap<(Class, Ticket), T>,
    /// The first of each class.
    firsts: BTreeMap<Ticket, Class>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line {
            members: BTreeMap::new(),
            firsts: BTreeMap::new(),
        }
    }
}

impl<T> Line<T> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Someone comes, with a ticket above all others. O(log n).
    pub fn join(&mut self, class: Class, ticket: Ticket, member: T) {
        if self.first_of(&class).is_none() {
            self.firsts.insert(ticket, class.clone());
        }
        self.members.insert((class, ticket), member);
    }

    /// Someone goes. O(log n).
    pub fn leave(&mut self, class: &Class, ticket: Ticket) {
        self.members.remove(&(class.clone(), ticket));
        if self.firsts.remove(&ticket).is_some() {
            if let Some(first) = self.first_of(class) {
                self.firsts.insert(first, class.clone());
            }
        }
    }

    /// The next to be asked after all classes up to the one whose first has
    /// the ticket `after` were refused (0: none). O(log n).
    pub fn next(&self, after: Ticket) -> Option<(Ticket, &T)> {
        let (ticket, class) = self.firsts.range((Excluded(after), Unbounded)).next()?;
        let member = self.members.get(&(class.clone(), *ticket))?;
        Some((*ticket, member))
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
        Class { group, no_ack }
    }

    #[test]
    fn they_are_asked_in_order_and_a_refused_class_once() {
        let any = class(None, false);
        let (a, b) = (class(Some(b"a"), false), class(Some(b"b"), false));
        let mut line = Line::default();
        for (ticket, class) in [(1, &any), (2, &a), (3, &any), (4, &b), (5, &a)] {
            line.join(class.clone(), ticket, ticket * 10);
        }
        assert_eq!(line.len(), 5);
        // The first is served, so its class is asked again in its next's turn.
        assert_eq!(line.next(0), Some((1, &10)));
        line.leave(&any, 1);
        // The class of 2 is refused, so 5 is not asked.
        assert_eq!(line.next(0), Some((2, &20)));
        assert_eq!(line.next(2), Some((3, &30)));
        assert_eq!(line.next(3), Some((4, &40)));
        assert_eq!(line.next(4), None);
        // Who gives up in the middle is not in the way of those behind.
        line.leave(&a, 2);
        assert_eq!(line.next(4), Some((5, &50)));
        line.leave(&any, 3);
        line.leave(&b, 4);
        line.leave(&a, 5);
        line.leave(&a, 5);
        assert!(line.is_empty());
        assert_eq!(line.next(0), None);
    }

    #[test]
    fn who_takes_without_a_lease_is_a_class_of_its_own() {
        let mut line = Line::default();
        line.join(class(None, false), 1, "lease");
        line.join(class(None, true), 2, "none");
        assert_eq!(line.next(1), Some((2, &"none")));
    }
}
