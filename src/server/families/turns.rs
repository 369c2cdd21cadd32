//! The order of turns: for each family and user, the queues that may be able to give.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::rc::Rc;

use dq_queue::family;
use dq_queue::message::id::NameHasher;

use super::queue_name::QueueName;

/// A queue in the order of turns: the turn in which it has last given, and its name.
pub type Candidate = (u64, QueueName);

/// Whether a queue may be able to give messages: to clients with a lease, and to those with NOACK.
pub type Gives = [bool; 2];

/// Queues by their turns, which differ.
type Ready = BTreeMap<u64, QueueName>;

/// One queue of a family.
pub(super) struct Member {
    pub key: QueueName,
    /// The turn in which it has last given, or in which it came.
    pub turn: u64,
    pub gives: Gives,
    /// Whether its slot is not this node's.
    pub is_foreign: bool,
}

/// The queues of a family that a user may take from, as far as the rights are known.
#[derive(Default)]
pub(super) struct View {
    /// The queues that may be able to give, for each of [`Gives`]. `None` until they are asked for.
    ready: [Option<Ready>; 2],
    /// The queues that the user may not take from.
    pub refused: HashSet<QueueName>,
    /// The rights of the user when they were last read; `None` since a queue was refused first.
    pub rights: Option<u64>,
    /// When they were last read, in ms of the monotonic clock.
    pub read_at: u64,
}

impl View {
    /// Adds a member to the right lists, and removes it from the others.
    pub fn update(&mut self, member: &Member) {
        let is_open = self.is_open(member);
        for (ready, gives) in self.ready.iter_mut().zip(member.gives) {
            let Some(ready) = ready else {
                continue;
            };
            match gives && is_open {
                true => ready.insert(member.turn, member.key.clone()),
                false => ready.remove(&member.turn),
            };
        }
    }

    pub fn remove(&mut self, member: &Member) {
        self.ready.iter_mut().flatten().for_each(|ready| {
            ready.remove(&member.turn);
        });
    }

    fn is_open(&self, member: &Member) -> bool {
        !member.is_foreign && !self.refused.contains(&member.key)
    }
}

/// The views of all users that have asked for a family, in a list: few users take from one family,
/// and every change of a queue goes over all of them.
#[derive(Default)]
pub(super) struct Views(Vec<(Rc<[u8]>, View)>);

impl Views {
    /// The view of a user, if the user has asked for the family. O(users).
    pub fn of(&mut self, user: &[u8]) -> Option<&mut View> {
        let known = self.0.iter_mut().find(|(name, _)| **name == *user);
        known.map(|(_, view)| view)
    }

    fn of_or_new(&mut self, user: &[u8]) -> Option<&mut View> {
        if self.of(user).is_none() {
            self.0.push((user.into(), View::default()));
        }
        self.of(user)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut View> {
        self.0.iter_mut().map(|(_, view)| view)
    }
}

/// One family on this server, in one database.
#[derive(Default)]
pub(super) struct Family {
    pub members: HashMap<QueueName, Member, NameHasher>,
    pub views: Views,
}

impl Family {
    /// The queues that may be able to give to a user, with or without leases.
    fn ready(&mut self, user: &[u8], no_ack: bool) -> Option<&Ready> {
        let view = self.views.of_or_new(user)?;
        let kind = usize::from(no_ack);
        if view.ready.get(kind)?.is_none() {
            let members = self.members.values();
            let open = members.filter(|member| member.gives.get(kind) == Some(&true));
            let open = open.filter(|member| view.is_open(member));
            let ready = open.map(|member| (member.turn, member.key.clone()));
            let ready = ready.collect();
            *view.ready.get_mut(kind)? = Some(ready);
        }
        view.ready.get(kind)?.as_ref()
    }

    /// Changes a member, and its place in all views.
    pub fn change(&mut self, key: &[u8], change: impl FnOnce(&mut Member)) {
        let Some(member) = self.members.get_mut(key) else {
            return;
        };
        self.views.all().for_each(|view| view.remove(member));
        change(member);
        self.views.all().for_each(|view| view.update(member));
    }
}

#[derive(Default)]
pub(super) struct Families {
    pub by_db: BTreeMap<i32, HashMap<Rc<[u8]>, Family, NameHasher>>,
    pub last_turn: u64,
}

impl Families {
    pub fn get(&mut self, db: i32, family: &[u8]) -> Option<&mut Family> {
        self.by_db.get_mut(&db)?.get_mut(family)
    }

    pub fn update(&mut self, db: i32, key: &[u8], gives: Gives) {
        let Some(name) = family::of_key(key) else {
            return;
        };
        let of_db = self.by_db.entry(db).or_default();
        if !of_db.contains_key(name) {
            of_db.insert(name.into(), Family::default());
        }
        let Some(family) = of_db.get_mut(name) else {
            return;
        };
        match family.members.get(key) {
            Some(member) if member.gives == gives => {}
            Some(_) => family.change(key, |member| member.gives = gives),
            None => {
                self.last_turn += 1;
                let key = QueueName::from(key);
                let member = Member {
                    key: key.clone(),
                    turn: self.last_turn,
                    gives,
                    is_foreign: false,
                };
                family.views.all().for_each(|view| view.update(&member));
                family.members.insert(key, member);
            }
        }
    }

    pub fn forget(&mut self, db: i32, key: &[u8]) {
        let (Some(name), Some(of_db)) = (family::of_key(key), self.by_db.get_mut(&db)) else {
            return;
        };
        let Some(family) = of_db.get_mut(name) else {
            return;
        };
        if let Some(member) = family.members.remove(key) {
            for view in family.views.all() {
                view.remove(&member);
                view.refused.remove(key);
            }
        }
        if family.members.is_empty() {
            of_db.remove(name);
        }
    }

    pub fn next(&mut self, query: Query<'_>, after: Option<&Candidate>) -> Option<Candidate> {
        let family = self.get(query.db, query.family)?;
        let ready = family.ready(query.user, query.no_ack)?;
        match after {
            Some((after, _)) => ready.range((Excluded(after), Unbounded)).next(),
            None => ready.first_key_value(),
        }
        .map(|(turn, key)| (*turn, key.clone()))
    }
}

/// The user, and the family whose messages are asked for.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The database.
    pub db: i32,
    /// The name of the family.
    pub family: &'a [u8],
    /// The name of the user.
    pub user: &'a [u8],
    /// Whether the messages are taken without leases.
    pub no_ack: bool,
}
