//! The rules for each state of the world.

use super::{queue, Fault};
use crate::world::World;
use dq_queue::message::kin::Wait;
use dq_queue::message::state::StoredState;
use dq_queue::Queue;

/// Checks a state.
pub fn check(world: &World, past: u64) -> Vec<Fault> {
    let mut faults = Vec::new();
    for place in world.places.values() {
        faults.extend(queue::check(&place.queue, world.moment(), past));
    }
    parents(world, &mut faults);
    if let Err(why) = world.check_told() {
        faults.push(Fault::new("events", why));
    }
    if let Err(why) = world.check_models() {
        faults.push(Fault::new("model", why));
    }
    for (key, id) in &world.watching {
        let queue = world.queue(key);
        let seq = queue.and_then(|queue| queue.find(id));
        let ended = queue.zip(seq).and_then(|(queue, seq)| queue.ended(seq));
        if seq.is_none() || ended.is_some() {
            let id = String::from_utf8_lossy(id);
            faults.push(Fault::new(
                "wait",
                format!("{id} has ended, and WAIT was not told"),
            ));
        }
    }
    faults
}

/// A parent is held as long as its children have not ended, and no longer.
fn parents(world: &World, faults: &mut Vec<Fault>) {
    for place in world.places.values() {
        for numbered in place.queue.parts().messages() {
            let held = numbered.message.stored == StoredState::Held;
            let children = numbered.message.children();
            let Some(children) = children.filter(|children| held && children.wait == Wait::Now)
            else {
                continue;
            };
            if children.have_ended() && !is_due(&place.queue, world) {
                let id = place.queue.id_of(numbered.seq, numbered.message).to_box();
                let name = String::from_utf8_lossy(&id);
                let text = format!("{name} is held, and its children have ended");
                faults.push(Fault::new("parents", text));
            }
        }
    }
}

fn is_due(queue: &Queue, world: &World) -> bool {
    queue.has_work(queue.time(world.moment()))
}
