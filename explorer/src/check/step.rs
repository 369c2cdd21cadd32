//! The rules for each step from one state to another.

use std::collections::BTreeMap;

use super::Fault;
use crate::lists::List;
use crate::world::{saved, Key, Step, World};
use dq_queue::message::after::OnFail;
use dq_queue::message::kin::Wait;
use dq_queue::message::state::{State, StoredState};
use dq_queue::Queue;

/// Checks a step: an action in `before` that has led to `after`.
pub fn check(list: &List, before: &World, action: &str, after: &World, step: &Step) -> Vec<Fault> {
    let mut faults = Vec::new();
    for text in &step.faults {
        let rule = match text.split(' ').next() {
            Some("events:") => "events",
            Some("reach:") => "reach",
            Some("model:") => "model",
            Some("effects:") => "effects",
            Some("the") => "replica",
            _ => "letters",
        };
        faults.push(Fault::new(rule, text.clone()));
    }
    if step.reply.starts_with("ERR ") {
        faults.push(Fault::new("list", step.reply.clone()));
    }
    for (key, place) in &after.places {
        let replica = place.replica.as_ref();
        if replica.is_some_and(|replica| saved(replica) != saved(&place.queue)) {
            let key = String::from_utf8_lossy(key);
            faults.push(Fault::new(
                "replica",
                format!("the replica of {key} differs"),
            ));
        }
        if let Some(was) = before.places.get(key) {
            letters(&was.queue, &place.queue, action, &mut faults);
            reruns(&was.queue, &place.queue, action, &mut faults);
        }
    }
    parents(before, action, after, &mut faults);
    effects(before, action, after, &mut faults);
    if list.is_confluent {
        confluent(list, before, action, after, step, &mut faults);
    }
    faults
}

fn replaces_queues(action: &str) -> bool {
    ["COPY", "RENAME", "DEL"]
        .iter()
        .any(|verb| action.starts_with(verb))
}

/// The counter `n` has the messages that were acknowledged with an effect on it, and the replica has
/// the same keys.
fn effects(before: &World, action: &str, after: &World, faults: &mut Vec<Fault>) {
    let (keys, of_replica) = after.plain_keys();
    if of_replica.is_some_and(|others| others != keys) {
        faults.push(Fault::new("replica", "the replica has other plain keys"));
    }
    if replaces_queues(action) {
        return;
    }
    let acked = |world: &World| {
        let queues = world.places.values();
        let acked = queues.map(|place| place.queue.totals().acked.get());
        acked.sum::<u64>()
    };
    let expected = match action.contains("INCRBY n 1") {
        true => acked(after) - acked(before),
        false => 0,
    };
    let counted = keys.count(b"n") - before.plain.count(b"n");
    if u64::try_from(counted) != Ok(expected) {
        let text = format!("{expected} messages are acknowledged, and {counted} counted");
        faults.push(Fault::new("effects", text));
    }
}

/// Each message that dies where DEADTO takes it has gone, or stays dead for a reason.
fn letters(was: &Queue, is: &Queue, action: &str, faults: &mut Vec<Fault>) {
    let takes_all = |queue: &Queue| {
        let dead_to = queue.settings().dead_to.as_ref();
        dead_to.is_some_and(|dead_to| dead_to.reasons == 0)
    };
    if replaces_queues(action) || !takes_all(was) || !takes_all(is) {
        return;
    }
    let moved = |queue: &Queue| {
        queue
            .dead_letters()
            .map_or(0, |letters| letters.moved.get())
    };
    let stays = is
        .dead_letters()
        .is_some_and(|letters| letters.stays.is_some());
    let deaths = is.totals().deaths - was.totals().deaths;
    let gone = moved(is).saturating_sub(moved(was));
    if !stays && deaths != gone {
        let text = format!("{deaths} have died, and {gone} have gone to DEADTO");
        faults.push(Fault::new("letters", text));
    }
}

/// A RERUN is sent when the run has ended, whatever that end was.
fn reruns(was: &Queue, is: &Queue, action: &str, faults: &mut Vec<Fault>) {
    let takes = [
        "SEND", "CANCEL", "PURGE", "FIND", "ACKSEND", "UPDATE", "TIMER",
    ];
    if replaces_queues(action)
        || takes.iter().any(|verb| action.starts_with(verb)) && !is_timer_only(action)
    {
        return;
    }
    for numbered in was.parts().messages() {
        let Some(rerun) = numbered.message.rerun() else {
            continue;
        };
        let id = was.id_of(numbered.seq, numbered.message).to_box();
        let found = is.find(&id).and_then(|seq| is.message(seq));
        let has = found.is_some_and(|message| {
            let waits = message.rerun().map(|rerun| &*rerun.payload);
            waits == Some(&*rerun.payload) || *is.content(message).payload.bytes() == *rerun.payload
        });
        if !has {
            let id = String::from_utf8_lossy(&id);
            faults.push(Fault::new(
                "reruns",
                format!("what waits for the run of {id} is lost"),
            ));
        }
    }
}

/// The dead children that do this with their parent, by the key and the id of the parent.
fn dead_children(world: &World, on_dead: OnFail) -> BTreeMap<(Key, Key), u64> {
    let mut kept = BTreeMap::new();
    for place in world.places.values() {
        let sets = place
            .queue
            .siblings()
            .into_iter()
            .flat_map(|all| all.iter());
        for (_, set) in sets.filter(|(_, set)| set.parent.on_dead == on_dead) {
            let parent = (set.parent.key.clone(), set.parent.id.clone());
            *kept.entry(parent).or_default() += set.dead;
        }
    }
    kept
}

/// The parents that children hold: their numbers and the dead children that they count.
fn counting(world: &World) -> BTreeMap<(Key, Key), (u64, u64)> {
    let mut counting = BTreeMap::new();
    for (key, place) in &world.places {
        for numbered in place.queue.parts().messages() {
            let children = numbered.message.children();
            let is_held = numbered.message.stored == StoredState::Held;
            if let Some(children) = children.filter(|of| is_held && of.wait == Wait::Now) {
                let id = place.queue.id_of(numbered.seq, numbered.message).to_box();
                counting.insert((key.clone(), id), (numbered.seq, children.counts.kept));
            }
        }
    }
    counting
}

/// A parent that has counted its dead children goes on to do so, and dies with a child of ONDEAD DIE.
fn parents(before: &World, action: &str, after: &World, faults: &mut Vec<Fault>) {
    let goes = |world: &World| {
        let mut queues = world.places.values();
        queues.any(|place| place.queue.settings().dead_to.is_some())
    };
    if replaces_queues(action) || goes(before) || goes(after) {
        return;
    }
    let [were, are] = [before, after].map(|world| dead_children(world, OnFail::Hold));
    let [killed, kill] = [before, after].map(|world| dead_children(world, OnFail::Die));
    let (counted, counts) = (counting(before), counting(after));
    for (parent, (seq, kept)) in counts {
        let known = |all: &BTreeMap<(Key, Key), u64>| all.get(&parent).copied().unwrap_or(0);
        let is_same = counted.get(&parent).is_some_and(|(was, _)| *was == seq);
        if is_same && known(&kill) > known(&killed) && !after.is_due(&parent.0) {
            let id = String::from_utf8_lossy(&parent.1);
            faults.push(Fault::new(
                "parents",
                format!("{id} is held, and its child has died"),
            ));
        }
        if counted.get(&parent) == Some(&(seq, known(&were))) && kept != known(&are) {
            let (id, dead) = (String::from_utf8_lossy(&parent.1), known(&are));
            let text = format!("{dead} dead children hold {id}, which counts {kept}");
            faults.push(Fault::new("parents", text));
        }
    }
}

fn is_timer_only(action: &str) -> bool {
    action.starts_with("TIMER")
}

/// A command that comes before the timer does what it does behind it. That is so for the queue of
/// the command: what is due in others may come before or behind.
fn confluent(
    list: &List,
    before: &World,
    action: &str,
    after: &World,
    step: &Step,
    faults: &mut Vec<Fault>,
) {
    // WAIT only reads, and looks at what the timer has left.
    let others = [
        "CLOCK",
        "MS",
        "TIMER",
        "BACK",
        "STANDSTILL",
        "TURN",
        "WAIT",
        "CLOSE",
    ];
    let is_other = others.iter().any(|verb| action.starts_with(verb));
    let key = action.split(' ').nth(1).unwrap_or_default().as_bytes();
    if is_other || replaces_queues(action) || !before.is_due(key) || before.has_plans() {
        return;
    }
    let mut other = before.clone();
    other.settle_queue(key);
    let Some(behind) = other.act(action) else {
        return;
    };
    let mut one = after.clone();
    if one.has_plans() || other.has_plans() {
        return;
    }
    one.settle();
    other.settle();
    if behind.reply != step.reply {
        let text = format!(
            "behind the timer it replies {}, and before it {}",
            behind.reply, step.reply
        );
        return faults.push(Fault::new("timer first", text));
    }
    if one.shape(list.past) != other.shape(list.past) {
        faults.push(Fault::new("timer first", difference(&one, &other)));
    }
}

fn difference(one: &World, other: &World) -> String {
    let told = |world: &World| {
        let queues = world.places.iter();
        let queues =
            queues.map(|(key, place)| format!("{}: {}", name(key), seen(&place.queue, world)));
        queues.collect::<Vec<_>>().join("; ")
    };
    format!(
        "before the timer: {}. Behind it: {}",
        told(one),
        told(other)
    )
}

fn name(key: &Key) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// The messages of a queue, in words.
fn seen(queue: &Queue, world: &World) -> String {
    let now = queue.time(world.moment());
    let told = queue.parts();
    let told = told.messages().map(|numbered| {
        let id = queue.id_of(numbered.seq, numbered.message).to_box();
        let state = match numbered.message.stored {
            StoredState::Running => "running",
            _ => queue
                .view(numbered.seq, now)
                .map_or("gone", |view| State::name(view.state)),
        };
        let payload = numbered.content.payload.bytes();
        let payload = String::from_utf8_lossy(&payload);
        format!("{} {payload} {state}", String::from_utf8_lossy(&id))
    });
    told.collect::<Vec<_>>().join(", ")
}
