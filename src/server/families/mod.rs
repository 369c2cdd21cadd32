//! The families of queues on this server: which queues each has, and whose turn it is.
//!
//! NFETCH takes from the queue of a family that has not given for the longest time. So the queues
//! that may be able to give are kept in the order of their last turns, for each user, without those
//! that the user may not take from. A queue enters and leaves this order when it changes, so the
//! cost of an NFETCH does not grow with the number of queues.
//!
//! All of this is a hint, as the [due index](super::due_index) is: whoever takes from a queue opens
//! its key by name. No state is kept before the first command asks for a family.

mod queue_name;
pub mod tokens;
mod turns;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::redis::{clock, Context, Name, Value};
use dq_queue::{family, Millis};

use super::address::QueueAddress;
use super::{own_slots, rights, wakeups};
pub use queue_name::QueueName;
use rights::FamilyCall;
use turns::Candidate;
use turns::{Families, Member};
pub use turns::{Gives, Query};

/// The rights of a user that was refused are read again after this time, in ms.
const RIGHTS_MS: u64 = 100;

thread_local! {
    static FAMILIES: RefCell<Families> = RefCell::default();
}

/// Whether any command has asked for a family.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// Grows whenever a queue may have another name, or its stored state has changed in another way
/// than by [`note`]. Earlier notes of queues are void then.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// Whether any queue was ever refused to a user.
static ANY_REFUSED: AtomicBool = AtomicBool::new(false);

/// Records whether a queue may be able to give messages, if it belongs to a family. Returns whether
/// it does. The queue remembers what was recorded, so an unchanged queue is not looked up.
#[inline]
pub fn note(ctx: &Context, key: Name<'_>, queue: &mut Value, now: Millis) -> bool {
    let epoch = EPOCH.load(Relaxed);
    let note_of = |gives: Option<Gives>| match gives {
        Some([to_leases, to_no_ack]) => {
            epoch << 3 | 1 << 2 | u64::from(to_leases) << 1 | u64::from(to_no_ack)
        }
        None => epoch << 3,
    };
    let noted = queue.notes.gives;
    if noted == note_of(None) {
        return false;
    }
    let is_noted = noted >> 3 == epoch;
    if !is_noted && family::of_key(key.bytes()).is_none() {
        queue.notes.gives = note_of(None);
        return false;
    }
    let gives = queue.gives(now);
    if noted != note_of(Some(gives)) {
        update(ctx.db(), key.bytes(), gives);
        queue.notes.gives = note_of(Some(gives));
    }
    true
}

fn notes_are_void() {
    EPOCH.fetch_add(1, Relaxed);
}

/// Whether families are kept.
#[inline]
pub fn is_active() -> bool {
    IS_ACTIVE.load(Relaxed)
}

/// Keeps families from now on. The first call goes over all queues of families.
pub fn activate() {
    if IS_ACTIVE.swap(true, Relaxed) {
        return;
    }
    // The queues get their first turns by their names.
    let addresses: Vec<QueueAddress> =
        wakeups::with_index(|index| index.of_families().cloned().collect());
    for (db, key) in addresses {
        arrived(db, &key);
    }
}

/// A queue has changed: `gives` says whether it may be able to give messages. Does nothing for a
/// queue without a family. O(users of the family * log n).
fn update(db: i32, key: &[u8], gives: Gives) {
    FAMILIES.with_borrow_mut(|families| families.update(db, key, gives));
}

/// Notes that there may be a queue of this name now.
pub fn arrived(db: i32, key: &[u8]) {
    if is_active() {
        notes_are_void();
        update(db, key, [true; 2]);
    }
}

/// Notes that a queue was tried and has no message: for clients with a lease, nor, if `no_ack` is
/// set, for those with NOACK.
pub fn cannot_give(db: i32, key: &[u8], no_ack: bool) {
    notes_are_void();
    change(db, key, |member| {
        let [_, without_lease] = member.gives;
        member.gives = [false, without_lease && !no_ack];
    });
}

/// The slot of a queue is not this node's: the queue is passed over until the slots change.
pub fn not_ours(ctx: &Context, db: i32, key: &[u8]) {
    change(db, key, |member| member.is_foreign = true);
    own_slots::expect(ctx);
}

fn change(db: i32, key: &[u8], change: impl FnOnce(&mut Member)) {
    if let Some(name) = family::of_key(key) {
        FAMILIES.with_borrow_mut(|families| {
            if let Some(family) = families.get(db, name) {
                family.change(key, change);
            }
        });
    }
}

/// Notes that a queue of the family has given messages to an NFETCH: all others come before it now.
pub fn gave(db: i32, family: &[u8], key: &[u8]) {
    FAMILIES.with_borrow_mut(|families| {
        families.last_turn += 1;
        let turn = families.last_turn;
        if let Some(family) = families.get(db, family) {
            family.change(key, |member| member.turn = turn);
        }
    });
}

/// Notes that there is no queue of this name any more.
pub fn forget(db: i32, key: &[u8]) {
    notes_are_void();
    FAMILIES.with_borrow_mut(|families| families.forget(db, key));
}

/// Forgets all queues of a database, or of all databases.
pub fn forget_db(db: Option<i32>) {
    notes_are_void();
    FAMILIES.with_borrow_mut(|families| match db {
        Some(db) => _ = families.by_db.remove(&db),
        None => families.by_db.clear(),
    });
}

/// Two databases were swapped.
pub fn swap(first: i32, second: i32) {
    notes_are_void();
    FAMILIES.with_borrow_mut(|families| {
        let one = families.by_db.remove(&first);
        let other = families.by_db.remove(&second);
        families.by_db.extend(one.map(|of_db| (second, of_db)));
        families.by_db.extend(other.map(|of_db| (first, of_db)));
    });
}

/// The slots of this node have changed. Returns the queues that were not this node's, which may be
/// now.
pub fn slots_changed() -> Vec<QueueAddress> {
    FAMILIES.with_borrow_mut(|families| {
        let mut again = Vec::new();
        for (db, of_db) in &mut families.by_db {
            for family in of_db.values_mut() {
                let foreign = family.members.values().filter(|member| member.is_foreign);
                let keys: Vec<QueueName> = foreign.map(|member| member.key.clone()).collect();
                for key in keys {
                    family.change(key.bytes(), |member| member.is_foreign = false);
                    again.push((*db, key.bytes().into()));
                }
            }
        }
        again
    })
}

/// The queue that is next to be tried, behind `after`. O(users + log n), but O(n) the first time that
/// a user asks for the family.
pub fn next(query: Query<'_>, after: Option<&Candidate>) -> Option<Candidate> {
    FAMILIES.with_borrow_mut(|families| families.next(query, after))
}

/// The names of all queues of a family. O(n).
pub fn members(db: i32, family: &[u8]) -> Vec<QueueName> {
    FAMILIES.with_borrow_mut(|families| {
        let family = families.get(db, family);
        family.map_or(Vec::new(), |family| {
            family.members.keys().cloned().collect()
        })
    })
}

/// Whether this node serves the queue and the user may take from it. If not, the queue is passed
/// over until the slots of this node or the rights of the user have changed.
pub fn may_take(ctx: &Context, query: Query<'_>, queue: &QueueName) -> bool {
    let is_ours = own_slots::is_ours(ctx, queue.name(), || queue.slot());
    if is_ours && rights::may_have(ctx, query.user, FamilyCall::Fetch, queue.name()) {
        return true;
    }
    if !is_ours {
        not_ours(ctx, query.db, queue.bytes());
        return false;
    }
    FAMILIES.with_borrow_mut(|families| {
        let Some(family) = families.get(query.db, query.family) else {
            return;
        };
        let Some(member) = family.members.get(queue.bytes()) else {
            return;
        };
        if let Some(view) = family.views.of(query.user) {
            if view.refused.is_empty() {
                view.rights = None;
            }
            ANY_REFUSED.store(true, Relaxed);
            view.refused.insert(member.key.clone());
            view.remove(member);
        }
    });
    false
}

/// If queues were refused to a user, checks now and then whether the user's rights have changed
/// since. Returns the queues that must be tried again because of it.
pub fn check_rights(ctx: &Context, db: i32, family: &[u8], user: &[u8]) -> Vec<QueueName> {
    if !ANY_REFUSED.load(Relaxed) {
        return Vec::new();
    }
    let now = clock::monotonic_us() / 1000;
    let is_due = FAMILIES.with_borrow_mut(|families| {
        let family = families.get(db, family);
        let view = family.and_then(|family| family.views.of(user));
        view.is_some_and(|view| {
            let is_due = !view.refused.is_empty() && view.read_at + RIGHTS_MS <= now;
            if is_due {
                view.read_at = now;
            }
            is_due
        })
    });
    if !is_due {
        return Vec::new();
    }
    let rights = ctx.rights_of(user);
    FAMILIES.with_borrow_mut(|families| {
        let Some(family) = families.get(db, family) else {
            return Vec::new();
        };
        let Some(view) = family.views.of(user) else {
            return Vec::new();
        };
        if view.rights.replace(rights) == Some(rights) {
            return Vec::new();
        }
        let again: Vec<QueueName> = std::mem::take(&mut view.refused).into_iter().collect();
        for key in &again {
            if let Some(member) = family.members.get(key) {
                view.update(member);
            }
        }
        again
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Gives = [true; 2];

    fn query(family: &[u8]) -> Query<'_> {
        Query {
            db: 0,
            family,
            user: b"u",
            no_ack: false,
        }
    }

    /// The queue whose turn it is.
    fn first(family: &[u8]) -> Option<Vec<u8>> {
        next(query(family), None).map(|(_, key)| key.bytes().to_vec())
    }

    #[test]
    fn a_queue_that_has_given_comes_after_all_others() {
        for key in [b"f:{1}", b"f:{2}", b"f:{3}"] {
            update(0, key, BOTH);
        }
        let order: Vec<_> = (0..6)
            .map(|_| {
                let key = first(b"f").unwrap();
                gave(0, b"f", &key);
                key
            })
            .collect();
        let expected = [b"f:{1}", b"f:{2}", b"f:{3}", b"f:{1}", b"f:{2}", b"f:{3}"];
        assert_eq!(order, expected);
        // A queue that could not deliver for a while has not lost its turn.
        cannot_give(0, b"f:{1}", false);
        assert_eq!(first(b"f").unwrap(), b"f:{2}");
        update(0, b"f:{1}", BOTH);
        assert_eq!(first(b"f").unwrap(), b"f:{1}");
        // A new queue is at the end.
        update(0, b"f:{0}", BOTH);
        forget(0, b"f:{1}");
        let (second, third) = (next(query(b"f"), None), b"f:{3}");
        assert_eq!(next(query(b"f"), second.as_ref()).unwrap().1.bytes(), third);
    }

    #[test]
    fn databases_families_and_other_keys_are_kept_apart() {
        update(0, b"f:{1}", BOTH);
        update(1, b"f:{2}", BOTH);
        update(0, b"g:{1}", [false, true]);
        update(0, b"f", BOTH);
        assert_eq!(first(b"f").unwrap(), b"f:{1}");
        assert_eq!(first(b"g"), None);
        let no_ack = Query {
            no_ack: true,
            ..query(b"g")
        };
        assert_eq!(next(no_ack, None).unwrap().1.bytes(), b"g:{1}");
        swap(0, 1);
        assert_eq!(first(b"f").unwrap(), b"f:{2}");
        forget_db(Some(0));
        assert_eq!(first(b"f"), None);
        assert_eq!(members(1, b"f").len(), 1);
        forget_db(None);
        assert_eq!(members(1, b"f").len(), 0);
    }
}
