//! What must hold for one queue, whatever else there is.

use dq_queue::message::state::State;
use dq_queue::op::Fetch;
use dq_queue::queue::inspect::explain::Code;
use dq_queue::queue::inspect::list::Listing;
use dq_queue::queue::rebuild::validate;
use dq_queue::settings::Clock;
use dq_queue::{Done, Millis, Moment, Op, Queue};

use super::Fault;

/// Steps of time after which a queue must have come to rest, unless a schedule goes on.
const MOST_TIMES: usize = 200;

/// A whole snapshot of a queue.
pub fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.save(&mut |block| bytes.extend_from_slice(block));
    bytes
}

/// Loads a queue from its snapshot.
///
/// # Errors
/// A sentence that says why the bytes are no snapshot.
pub fn loaded(bytes: &[u8]) -> Result<Queue, String> {
    let mut blocks = bytes.chunks(4096);
    Queue::load(Queue::VERSION, &mut || blocks.next().map(<[u8]>::to_vec))
}

/// Checks one queue at a moment of the server.
pub fn check(queue: &Queue, moment: Moment, past: Millis) -> Vec<Fault> {
    let mut faults = Vec::new();
    let now = queue.time(moment);
    if let Err(why) = validate(queue) {
        faults.push(Fault::new("validate", why));
        // What stands on broken indexes would say the same again, or not end.
        return faults;
    }
    if queue.owes() {
        faults.push(Fault::new("nothing owed", "something is owed behind a command"));
    }
    counts(queue, now, &mut faults);
    ids(queue, &mut faults);
    snapshot(queue, moment, past, &mut faults);
    if let Err(why) = validate(&queue.copy()) {
        faults.push(Fault::new("copy", why));
    }
    fetches(queue, moment, &mut faults);
    time_ends(queue, now, &mut faults);
    faults
}

fn counts(queue: &Queue, now: Millis, faults: &mut Vec<Fault>) {
    for state in State::ALL {
        let listing = Listing {
            state,
            cursor: None,
            reverse: false,
            count: 1000,
            group: None,
            label: None,
        };
        let (_, listed) = queue.list(listing, now);
        let listed = listed.len() as u64;
        let counted = queue.count(state);
        if counted != listed && !queue.has_work(now) {
            let text = format!("{counted} are {}, and the list has {listed}", state.name());
            faults.push(Fault::new("counts", text));
        }
    }
}

fn ids(queue: &Queue, faults: &mut Vec<Fault>) {
    for numbered in queue.parts().messages() {
        let id = queue.id_of(numbered.seq, numbered.message).to_box();
        if queue.find(&id) != Some(numbered.seq) {
            let id = String::from_utf8_lossy(&id);
            faults.push(Fault::new("ids", format!("{id} does not lead to its message")));
        }
    }
}

fn snapshot(queue: &Queue, moment: Moment, past: Millis, faults: &mut Vec<Fault>) {
    let bytes = saved(queue);
    let again = match loaded(&bytes) {
        Ok(again) => again,
        Err(why) => return faults.push(Fault::new("load", why)),
    };
    if saved(&again) != bytes {
        faults.push(Fault::new("load", "the loaded queue has another snapshot"));
    }
    let now = queue.time(moment);
    if queue.shape_without_notes(now, past) != again.shape_without_notes(now, past) {
        faults.push(Fault::new("load", "the loaded queue has another shape"));
    }
    if let Err(why) = validate(&again) {
        faults.push(Fault::new("load", why));
    }
    let (mut one, mut other) = (queue.clone(), again);
    // A loaded queue looks for what is due next. The other one may wake early, never late.
    let due = other.clone().advance(now, u64::MAX).steps > 0;
    if due && !queue.has_work(now) && queue.clock() == Clock::Server {
        faults.push(Fault::new("wakes", "something is due, and the queue does not know it"));
    }
    let mut calm = other.clone();
    calm.advance(now, u64::MAX);
    let (wake, known) = (queue.next_wake(now, false), calm.next_wake(now, false));
    if !due && known.is_some_and(|known| wake.is_none_or(|wake| wake > known)) {
        let text = format!("it wakes at {wake:?}, and {known:?} is due");
        faults.push(Fault::new("wakes", text));
    }
    if drained(&mut one, moment) != drained(&mut other, moment) {
        faults.push(Fault::new("load", "the loaded queue gives in another order"));
    }
}

/// What FETCH gives until nothing is left, at most as often as there are messages.
fn drained(queue: &mut Queue, moment: Moment) -> Vec<String> {
    let now = queue.time(moment);
    queue.advance(now, u64::MAX);
    let most = queue.live() + 2;
    let moment = queue.moment(moment);
    let given = (0..most).map_while(|_| {
        let done = queue.apply(&Op::fetch(Fetch::one()), moment);
        match done {
            Ok(Done::Fetched(given)) if !given.is_empty() => Some(format!("{given:?}")),
            _ => None,
        }
    });
    given.collect()
}

fn fetches(queue: &Queue, moment: Moment, faults: &mut Vec<Fault>) {
    let mut queue = queue.clone();
    queue.advance(queue.time(moment), u64::MAX);
    let now = queue.time(moment);
    explains(&queue, now, faults);
    let moment = queue.moment(moment);
    let mut left = queue.live() + 2;
    loop {
        let fetch = Fetch::one();
        let says = queue.can_serve(&fetch, now);
        let done = queue.apply(&Op::fetch(fetch), moment);
        let gives = matches!(&done, Ok(Done::Fetched(given)) if !given.is_empty());
        if says != gives {
            let text = format!("can_serve says {says}, and FETCH {gives}");
            faults.push(Fault::new("fetch", text));
        }
        left -= 1;
        if !gives || left == 0 {
            break;
        }
    }
    if left == 0 {
        faults.push(Fault::new("fetch", "FETCH gives more than there is"));
    }
}

/// What EXPLAIN says of each message agrees with what FETCH would do.
fn explains(queue: &Queue, now: Millis, faults: &mut Vec<Fault>) {
    let gives = queue.can_serve(&Fetch::one(), now);
    let mut is_next = false;
    for numbered in queue.parts().messages() {
        let id = queue.id_of(numbered.seq, numbered.message).to_box();
        match queue.explain(&id, now) {
            Some(explained) => is_next |= explained.code == Code::Next,
            None => {
                let id = String::from_utf8_lossy(&id);
                faults.push(Fault::new("explain", format!("{id} has no explanation")));
            }
        }
    }
    if is_next != gives {
        let text = format!("EXPLAIN says {is_next} of who is next, and FETCH can give: {gives}");
        faults.push(Fault::new("explain", text));
    }
}

/// Time goes on: each event moves the queue on, and then nothing is due.
fn time_ends(queue: &Queue, now: Millis, faults: &mut Vec<Fault>) {
    if matches!(queue.clock(), Clock::Manual(_)) {
        return;
    }
    let mut queue = queue.clone();
    let (mut at, mut left) = (now, MOST_TIMES);
    while let Some(wake) = queue.next_wake(at, false).filter(|_| left > 0) {
        if queue.schedules().next().is_some() && left < MOST_TIMES - 4 {
            return;
        }
        let is_again = wake <= at && left < MOST_TIMES;
        at = at.max(wake);
        let progress = queue.advance(at, u64::MAX);
        queue.take_effects();
        queue.free_garbage(usize::MAX);
        if !progress.caught_up || is_again && progress.steps == 0 && queue.next_wake(at, false) == Some(wake) {
            faults.push(Fault::new("time", format!("time does not go on at {at}")));
            return;
        }
        left -= 1;
    }
    if left == 0 {
        faults.push(Fault::new("time", "time does not end"));
    }
    if let Err(why) = validate(&queue) {
        faults.push(Fault::new("validate", format!("when time has ended: {why}")));
    }
}
