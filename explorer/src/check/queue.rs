//! The rules for one queue, whatever else there is.

use dq_queue::dead_letters::Moved;
use dq_queue::message::state::State;
use dq_queue::op::Fetch;
use dq_queue::queue::inspect::explain::Code;
use dq_queue::queue::inspect::list::Listing;
use dq_queue::queue::rebuild::validate;
use dq_queue::settings::{Clock, Fair};
use dq_queue::{Done, Error, Millis, Moment, Op, Queue};

use super::Fault;
use crate::world::{loaded, saved};

/// Steps of time after which a queue must have come to rest, unless a schedule goes on.
const MOST_TIMES: usize = 200;
/// How often a FETCH may give nothing and change the line.
const MOST_PASSED: usize = 20;

/// Checks one queue at a moment of the server.
pub fn check(queue: &Queue, moment: Moment, past: Millis) -> Vec<Fault> {
    let mut faults = Vec::new();
    let now = queue.time(moment);
    if let Err(why) = validate(queue) {
        faults.push(Fault::new("validate", why));
        // Checks that stand on broken indexes would say the same again, or not end.
        return faults;
    }
    if queue.owes() {
        faults.push(Fault::new(
            "nothing owed",
            "something is owed behind a command",
        ));
    }
    counts(queue, now, &mut faults);
    ids(queue, &mut faults);
    snapshot(queue, moment, past, &mut faults);
    let copy = queue.copy();
    if let Err(why) = validate(&copy) {
        faults.push(Fault::new("copy", why));
    }
    if copy.count(State::Running) > 0 {
        faults.push(Fault::new("copy", "a message runs in a copy"));
    }
    for numbered in queue.parts().messages() {
        let id = queue.id_of(numbered.seq, numbered.message).to_box();
        if numbered.message.rerun().is_some() && copy.find(&id).is_none() {
            let id = String::from_utf8_lossy(&id);
            faults.push(Fault::new("copy", format!("{id} is not in the copy")));
        }
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
            faults.push(Fault::new(
                "ids",
                format!("{id} does not lead to its message"),
            ));
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
        faults.push(Fault::new(
            "wakes",
            "something is due, and the queue does not know it",
        ));
    }
    let mut calm = other.clone();
    catch_up(&mut calm, now);
    let (wake, known) = (queue.next_wake(now, false), calm.next_wake(now, false));
    if !due && known.is_some_and(|known| wake.is_none_or(|wake| wake > known)) {
        let text = format!("it wakes at {wake:?}, and {known:?} is due");
        faults.push(Fault::new("wakes", text));
    }
    // Only the first knows since when its clock is ahead.
    let moment = queue.moment(moment);
    if drained(&mut one, now, moment) != drained(&mut other, now, moment) {
        faults.push(Fault::new(
            "load",
            "the loaded queue gives in another order",
        ));
    }
}

/// The messages that FETCH gives until nothing is left, at most as often as there are messages.
fn drained(queue: &mut Queue, now: Millis, moment: Moment) -> Vec<String> {
    catch_up(queue, now);
    let most = queue.live() + 2;
    let given = (0..most).map_while(|_| {
        let given = (0..MOST_PASSED).find_map(|_| match fetch(queue, moment) {
            Ok(Done::Fetched(given)) if !given.is_empty() => Some(format!("{given:?}")),
            _ => None,
        });
        given
    });
    given.collect()
}

fn fetches(queue: &Queue, moment: Moment, faults: &mut Vec<Fault>) {
    let mut queue = queue.clone();
    let now = queue.time(moment);
    catch_up(&mut queue, now);
    let moment = queue.moment(moment);
    explains(&queue, now, moment, faults);
    let mut left = queue.live() + 2;
    while let Some(says_more) = next(&mut queue, now, moment) {
        if let Err(text) = says_more {
            return faults.push(Fault::new("fetch", text));
        }
        left -= 1;
        if left == 0 {
            return faults.push(Fault::new("fetch", "FETCH gives more than there is"));
        }
    }
}

/// One FETCH. `None` if nothing is left to be given.
///
/// A group that names several limits may come to be first in the line and then wait for another of
/// them. So a FETCH that could be served may give nothing, as long as it changes the line.
fn next(queue: &mut Queue, now: Millis, moment: Moment) -> Option<Result<(), String>> {
    for _ in 0..MOST_PASSED {
        let says = queue.can_serve(&Fetch::one(), now);
        queue.take_effects();
        let done = fetch(queue, moment);
        let gives = matches!(&done, Ok(Done::Fetched(given)) if !given.is_empty());
        let has_changed = queue.take_effects().changed;
        match (says, gives) {
            (true, true) => return Some(Ok(())),
            (false, false) => return None,
            (true, false) if has_changed => {}
            _ => return Some(Err(format!("can_serve says {says}, and FETCH {gives}"))),
        }
    }
    Some(Err("FETCH passes over groups and does not end".to_owned()))
}

/// EXPLAIN says of each message what FETCH would do, and PEEK which message it gives. With FAIR it
/// shows another order.
fn explains(queue: &Queue, now: Millis, moment: Moment, faults: &mut Vec<Fault>) {
    let done = queue.clone().apply(&Op::fetch(Fetch::one()), moment);
    let given = match &done {
        Ok(Done::Fetched(given)) => given.first().map(|one| one.seq),
        _ => None,
    };
    let peeked = queue.peek(1, now).first().copied();
    let is_in_order = queue.settings().fair == Fair::Count;
    if peeked.is_some() != given.is_some() || is_in_order && peeked != given {
        let text = format!("PEEK shows {peeked:?}, and FETCH gives {given:?}");
        faults.push(Fault::new("peek", text));
    }
    let gives = given.is_some();
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

/// Settles what a queue owes as if no other key could be reached. Returns whether it owed anything.
fn settle_alone(queue: &mut Queue) -> bool {
    let owed = queue.take_owed(b"q");
    if owed.as_ref().is_some_and(|owed| owed.letters.is_some()) {
        let moment = queue.last_moment();
        let _ = queue.apply(&Op::Moved(Moved::default()), moment);
        settle_alone(queue);
    }
    owed.is_some()
}

/// Processes what is due, and settles it.
fn catch_up(queue: &mut Queue, now: Millis) {
    while !queue.advance(now, u64::MAX).caught_up && settle_alone(queue) {}
    settle_alone(queue);
}

/// Fetches one message, and settles what that leaves.
fn fetch(queue: &mut Queue, moment: Moment) -> Result<Done, Error> {
    let done = queue.apply(&Op::fetch(Fetch::one()), moment);
    settle_alone(queue);
    done
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
        let owed = settle_alone(&mut queue);
        queue.take_effects();
        queue.free_garbage(usize::MAX);
        if !progress.caught_up && !owed
            || is_again && progress.steps == 0 && queue.next_wake(at, false) == Some(wake)
        {
            faults.push(Fault::new("time", format!("time does not go on at {at}")));
            return;
        }
        left -= 1;
    }
    if left == 0 {
        faults.push(Fault::new("time", "time does not end"));
    }
    if let Err(why) = validate(&queue) {
        faults.push(Fault::new(
            "validate",
            format!("when time has ended: {why}"),
        ));
        return;
    }
    let moment = Moment {
        us: at * 1000,
        ..queue.last_moment()
    };
    explains(&queue, at, moment, faults);
}
