//! The transitions that a queue notes describe the fate of each message: one for each step of
//! its life, in order, none missing and none twice, and the same on a replica.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::primary::{creation, history, Primary};
use crate::codec::log_entry::{Creation, LogEntry};
use crate::message::state::StoredState;
use crate::settings::Settings;
use crate::transition::{Kind, Transition};
use crate::Queue;

/// The state of a message by its transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Waits,
    Ready,
    Running,
    Finished,
    Dead,
    Cancelled,
}

impl Told {
    fn of(stored: StoredState) -> Told {
        match stored {
            StoredState::Delayed | StoredState::Retry | StoredState::Held => Told::Waits,
            StoredState::Due => Told::Ready,
            StoredState::Running => Told::Running,
            StoredState::Finished => Told::Finished,
            StoredState::Dead | StoredState::Leaving => Told::Dead,
            StoredState::Cancelled => Told::Cancelled,
        }
    }

    fn has_ended(self) -> bool {
        matches!(self, Told::Finished | Told::Dead | Told::Cancelled)
    }
}

type States = BTreeMap<Box<[u8]>, Told>;

/// Follows one transition. Errors: it cannot come in this state.
fn follow(states: &mut States, transition: &Transition) -> Result<(), String> {
    let before = states.get(&transition.id).copied();
    let (may_come, after) = match transition.kind {
        // A record that is kept no longer leaves its id.
        Kind::Sent => (before.is_none_or(Told::has_ended), Some(Told::Waits)),
        // A message that was delivered with one that failed comes back without any other.
        Kind::Ready => (
            matches!(before, Some(Told::Waits | Told::Running)),
            Some(Told::Ready),
        ),
        Kind::Delivered => (before == Some(Told::Ready), Some(Told::Running)),
        Kind::Acked => (before == Some(Told::Running), Some(Told::Finished)),
        Kind::Nacked | Kind::Timeout => (before == Some(Told::Running), Some(Told::Waits)),
        Kind::Dead => (
            before.is_some_and(|before| !before.has_ended()),
            Some(Told::Dead),
        ),
        Kind::Cancelled => (
            before.is_some_and(|before| !matches!(before, Told::Finished | Told::Cancelled)),
            Some(Told::Cancelled),
        ),
        Kind::Released => (before == Some(Told::Waits), Some(Told::Waits)),
        Kind::Noted => (before == Some(Told::Running), before),
        Kind::Redriven => (before == Some(Told::Dead), Some(Told::Waits)),
        Kind::Rescheduled => (
            matches!(before, Some(Told::Waits | Told::Ready)),
            Some(Told::Waits),
        ),
        Kind::Replaced | Kind::Purged if transition.id.is_empty() => {
            states.clear();
            return Ok(());
        }
        Kind::Replaced => (before.is_some(), None),
        Kind::Purged => (before.is_some(), None),
    };
    match after {
        Some(after) => states.insert(transition.id.clone(), after),
        None => states.remove(&transition.id),
    };
    match may_come {
        true => Ok(()),
        false => Err(format!("{transition:?} came in the state {before:?}")),
    }
}

/// Compares the noted transitions with the state of the queue. Ended messages may have left no
/// record.
fn compare(states: &mut States, queue: &Queue) -> Result<(), String> {
    states.retain(|id, told| !told.has_ended() || queue.find(id).is_some());
    let mut there = States::new();
    for numbered in queue.parts().messages() {
        let id = queue.id_of(numbered.seq, numbered.message).to_box();
        there.insert(id, Told::of(numbered.message.stored));
    }
    match *states == there {
        true => Ok(()),
        false => Err(format!("{states:?} in place of {there:?}")),
    }
}

fn with_events(creation: &Creation) -> Creation {
    Creation {
        settings: Settings {
            events: Some(b"stream"[..].into()),
            ..creation.settings.clone()
        },
        ..creation.clone()
    }
}

proptest! {
    #[test]
    fn transitions_tell_the_state_of_every_message_on_a_replica_too(
        creation in creation(),
        acts in history(80),
    ) {
        let mut primary = Primary::new(&with_events(&creation));
        let mut replica: Option<Queue> = None;
        let mut states = States::new();
        let mut told = 0;
        for act in &acts {
            primary.act(act);
            if primary.queue.settings().events.is_none() {
                // A cut has ended the stream.
                break;
            }
            let transitions = std::mem::take(&mut primary.transitions);
            for transition in &transitions {
                let followed = follow(&mut states, transition);
                prop_assert!(followed.is_ok(), "{followed:?}");
            }
            let compared = compare(&mut states, &primary.queue);
            prop_assert!(compared.is_ok(), "{compared:?}");
            let mut on_replica = Vec::new();
            for news in &primary.told[told..] {
                let bytes = news.record(&primary.queue);
                if let Some(creation) = LogEntry::decode(&bytes).unwrap().created {
                    replica = Some(creation.queue());
                }
                if let Some(queue) = &mut replica {
                    let bytes = news.record(queue);
                    let record = LogEntry::decode(&bytes).unwrap();
                    prop_assert!(record.replay(queue).is_ok());
                    let told = queue.take_effects().told;
                    on_replica.extend(told.map(|told| told.transitions).unwrap_or_default());
                }
            }
            told = primary.told.len();
            prop_assert_eq!(on_replica, transitions);
        }
    }

    #[test]
    fn a_queue_without_an_event_stream_notes_nothing(
        creation in creation(),
        acts in history(30),
    ) {
        let mut primary = Primary::new(&creation);
        for act in &acts {
            primary.act(act);
        }
        prop_assert!(primary.transitions.is_empty());
    }
}
