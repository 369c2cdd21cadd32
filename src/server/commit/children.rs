//! Counts the changes among children at their parents (PARENT).
//!
//! A queue tells of its children when a change is done, and when it is closed again their parents
//! count it. Both are log entries of one replicated command, so each child counts once, wherever
//! the log is torn. A parent that is gone, or that has been let go, counts nothing.

use std::collections::BTreeMap;

use crate::redis::{Context, Name, OwnedName};
use dq_queue::family::slot_of_key;
use dq_queue::message::kin::News;
use dq_queue::op::{Counted, CountedOne};
use dq_queue::{Op, Seq};

use super::outbox::Others;
use super::{begin_without_events, change_silently};
use crate::server::clock;

/// In a row of parents that are children of each other, the number of them that one change may let
/// die. The timer goes on with the others.
const MOST_DEATHS: usize = 8;

/// Sends the reports to the parents. Says in `others` what has happened in their queues. `depth`
/// is the number of changes that have led to each other before.
#[cold]
pub fn deliver(
    ctx: &mut Context,
    from: Name<'_>,
    children: BTreeMap<Seq, News>,
    depth: usize,
    others: &mut Others,
) {
    let mut of_queues: BTreeMap<Box<[u8]>, Vec<CountedOne<'static>>> = BTreeMap::new();
    for News { key, id, delta } in children.into_values() {
        let ones = of_queues.entry(key).or_default();
        ones.push(CountedOne {
            id: id.into_vec().into(),
            delta,
            dies_later: depth >= MOST_DEATHS,
        });
    }
    for (key, of) in of_queues {
        if ctx.is_in_cluster() && slot_of_key(&key) != slot_of_key(from.bytes()) {
            continue;
        }
        let name = OwnedName::new(&key);
        let op = Op::Children(Counted {
            from: from.bytes().into(),
            of,
        });
        let counted = change_silently(ctx, name.name(), |slot| {
            let server = slot.moment(clock::now());
            let Some(queue) = slot.split().1 else {
                return;
            };
            // The due events of the parent's queue are left to the timer: they may let messages of
            // that queue end, which are children of others.
            let begun = begin_without_events(queue, server);
            // The operation is never refused.
            let _ = slot.apply(begun, &op, |_, _, _| ());
        });
        // A key of another type has no parent.
        let Ok(((), mut aftermath)) = counted else {
            continue;
        };
        aftermath.tell_from(ctx, depth + 1);
        if let Some(rest) = aftermath.rest.take() {
            others.streams.extend(rest.others.streams);
            others.queues.extend(rest.others.queues);
            others.ended.extend(rest.others.ended);
            let ended = rest.ended.into_iter();
            let ended = ended.map(|ending| (OwnedName::new(&key), ending));
            others.ended.extend(ended);
        }
        let happened = aftermath.happened;
        others.queues.push((OwnedName::new(&key), happened));
    }
}
