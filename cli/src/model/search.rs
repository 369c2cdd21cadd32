//! Looking for messages in many queues, in steps.

use std::time::Duration;

use super::find::{Filter, Step};
use super::keys;
use super::queue::{Queue, STATES};
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};

/// The word for all states.
pub const ANY: &str = "any";

/// Maximum time for which a message is searched for by its id.
const PATIENCE: Duration = Duration::from_secs(3);

/// A place where messages are looked for: a state of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The queue.
    pub queue: Vec<u8>,
    /// The state.
    pub state: &'static str,
}

impl Place {
    /// Creates the place of a queue and the word of a state. Fails if it is the word of none.
    pub fn of(queue: &[u8], state: &str) -> Result<Place, Failure> {
        let state = STATES.into_iter().find(|known| *known == state);
        let state = state.ok_or_else(|| {
            let known = STATES.join(", ");
            Failure::mistake(format!("the states are {known}"))
        })?;
        let queue = queue.to_vec();
        Ok(Place { queue, state })
    }

    /// Returns the places of a queue in which there is anything, for the word of a state or `any`.
    pub fn all_of(queue: &Queue, state: &str) -> Vec<Place> {
        let wanted = |known: &&str| (state == ANY || state == *known) && queue.count(known) > 0;
        let place = |state| Place {
            queue: queue.name.clone(),
            state,
        };
        STATES.into_iter().filter(wanted).map(place).collect()
    }
}

/// Asks queues for the places in which there is anything. One queue with one state is not asked.
/// Of several queues those that are gone or that the user may not read have none.
pub fn places(server: &mut Server, queues: &[Vec<u8>], state: &str) -> Result<Vec<Place>, Failure> {
    if let ([queue], true) = (queues, state != ANY) {
        return Ok(vec![Place::of(queue, state)?]);
    }
    let mut places = Vec::new();
    let mut refused = None;
    for (queue, reply) in queues.iter().zip(keys::infos(server, queues)?) {
        match reply {
            Ok(info) => places.append(&mut Place::all_of(&Queue::of(queue, info)?, state)),
            Err(failure) => refused = Some(failure),
        }
    }
    match refused {
        Some(failure) if places.is_empty() => Err(failure),
        _ => Ok(places),
    }
}

/// The way over places: where it is, and where the next step begins.
#[derive(Debug)]
pub struct Walk {
    places: Vec<Place>,
    at: usize,
    step: Step,
}

impl Walk {
    /// Creates the way from the first place on.
    pub fn new(places: Vec<Place>, step: Step) -> Walk {
        Walk {
            places,
            at: 0,
            step,
        }
    }

    /// Creates the way from a place on, or from the next one if it is there no more. The places
    /// are put into their order.
    pub fn from(mut places: Vec<Place>, begin: &Place, step: Step) -> Walk {
        places.sort();
        let at = places.partition_point(|place| place < begin);
        let mut walk = Walk { places, at, step };
        if walk.places.get(at) != Some(begin) {
            walk.step.cursor = None;
        }
        walk
    }

    /// Returns the place and the step that come next. `None` at the end.
    pub fn now(&self) -> Option<(&Place, &Step)> {
        Some((self.places.get(self.at)?, &self.step))
    }

    /// Goes on with the cursor that a step has replied, or to the next place.
    pub fn go_on(&mut self, next: Option<Vec<u8>>) {
        self.at += usize::from(next.is_none());
        self.step.cursor = next;
    }

    /// Returns how many places are behind, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.at, self.places.len())
    }
}

/// The messages of an id.
#[derive(Debug, Default)]
pub struct Found {
    /// The queues that have such a message, or a record of it.
    pub messages: Vec<(Vec<u8>, Record)>,
    /// The number of queues that were asked.
    pub asked: usize,
}

/// Returns the id if the filter asks for one whole id in all states, and for nothing else. Then
/// `by_id` finds it much faster.
pub fn whole_id(filter: &Filter) -> Option<&[u8]> {
    let id = filter.id.as_deref()?;
    let alone = Filter {
        state: ANY.to_owned(),
        id: Some(id.to_vec()),
        ..Filter::default()
    };
    (*filter == alone && !id.iter().any(|byte| b"*?[\\".contains(byte))).then_some(id)
}

/// Asks these queues for a message, for a limited time.
pub fn by_id(server: &mut Server, queues: &[Vec<u8>], id: &[u8]) -> Result<Found, Failure> {
    let replies = keys::each(server, queues, PATIENCE, |queue| {
        let mut cmd = verb("DQ.GET", queue);
        cmd.arg(id);
        cmd
    })?;
    let asked = replies.len();
    // A queue may be gone by now, or closed to the user.
    let message = |(queue, reply): (&Vec<u8>, Result<_, _>)| {
        Some((queue.clone(), Record::maybe(reply.ok()?).ok()??))
    };
    let messages = queues.iter().zip(replies).filter_map(message).collect();
    Ok(Found { messages, asked })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, states: &[&str]) -> Queue {
        let mut queue = Queue {
            name: name.as_bytes().to_vec(),
            ..Queue::default()
        };
        for (state, count) in STATES.iter().zip(&mut queue.counts) {
            *count = u64::from(states.contains(state));
        }
        queue
    }

    #[test]
    fn a_walk_skips_what_is_empty_and_begins_where_the_last_one_ended() {
        let queues = [queue("b", &["dead", "ready"]), queue("a", &["ready"])];
        let places = |state| -> Vec<Place> {
            let places = queues.iter().flat_map(|queue| Place::all_of(queue, state));
            places.collect()
        };
        assert_eq!(places("dead").len(), 1);
        assert_eq!(places("held").len(), 0);
        let shown = |walk: &Walk| {
            let (place, step) = walk.now()?;
            let queue = String::from_utf8_lossy(&place.queue).into_owned();
            Some((queue, place.state, step.cursor.is_some()))
        };
        let mut walk = Walk::from(places(ANY), &Place::default(), Step::first(5));
        let mut seen = Vec::new();
        for next in [Some(b"7".to_vec()), None, None, None] {
            seen.push(shown(&walk));
            walk.go_on(next);
        }
        let of = |queue: &str, state, goes_on| Some((queue.to_owned(), state, goes_on));
        let all = [
            of("a", "ready", false),
            of("a", "ready", true),
            of("b", "dead", false),
            of("b", "ready", false),
        ];
        assert_eq!(seen, all);
        assert_eq!((shown(&walk), walk.progress()), (None, (3, 3)));
        // The cursor of a place that is there no more is of no use in another one.
        let step = Step {
            cursor: Some(b"7".to_vec()),
            ..Step::first(5)
        };
        let begin = |state| Walk::from(places(ANY), &Place::of(b"b", state).unwrap(), step.clone());
        assert_eq!(shown(&begin("ready")), of("b", "ready", true));
        assert_eq!(shown(&begin("delayed")), of("b", "ready", false));
        assert!(Place::of(b"q", ANY).is_err());
    }

    #[test]
    fn only_a_whole_id_alone_is_asked_for_by_id() {
        let filter = |id: &str| Filter {
            id: Some(id.as_bytes().to_vec()),
            ..Filter::of_state(ANY).unwrap()
        };
        assert_eq!(whole_id(&filter("o-7")), Some(&b"o-7"[..]));
        assert_eq!(whole_id(&filter("o-*")), None);
        let mut more = filter("o-7");
        more.group = Some(b"g".to_vec());
        assert_eq!(whole_id(&more), None);
    }
}
