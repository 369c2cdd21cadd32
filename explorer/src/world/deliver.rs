//! What a change of one queue owes to others: reports to the parents of its children, and dead
//! messages for the queue of DEADTO. It is delivered behind the command.

use std::collections::btree_map::Entry;
use std::collections::BTreeMap;

use super::begin::Begun;
use super::commit::creation;
use super::{Key, Step, World};
use dq_queue::dead_letters::{Letter, Moved, Stays};
use dq_queue::message::kin::News;
use dq_queue::message::Choices;
use dq_queue::op::{AckSend, Counted, CountedOne, Ending, Send, Sent, Told};
use dq_queue::settings::{Changes, Clock};
use dq_queue::transition::Transition;
use dq_queue::{Done, Error, Moment, Op, Queue, Seq};

/// In a row of parents that are children of each other, the number of them that one change lets
/// die.
const MOST_DEATHS: usize = 8;

/// The consequences of the changes of one queue for other keys.
#[derive(Debug, Default)]
pub struct Outbox {
    letters: Option<Letters>,
    children: BTreeMap<Seq, News>,
    /// The transitions of messages, for the queue's event stream.
    pub transitions: Vec<Transition>,
    /// How many messages were to go to another queue when they died.
    pub deaths: usize,
}

/// The dead messages that a change leaves for another queue.
#[derive(Debug)]
struct Letters {
    to: Key,
    letters: Vec<Letter>,
    stays: Option<Stays>,
    moment: Moment,
}

impl Outbox {
    /// Adds what a change has told. Returns the ends of messages that clients wait for.
    pub fn add(&mut self, key: &[u8], queue: &Queue, told: Told, moment: Moment) -> Vec<Ending> {
        self.transitions.extend(told.transitions);
        self.deaths += told.moving.len();
        if let Some(dead_to) = &queue.settings().dead_to {
            let (letters, stays) = queue.letters(&told.moving, key);
            if !letters.is_empty() || stays.is_some() {
                self.letters.get_or_insert(Letters {
                    to: dead_to.key.clone(),
                    letters,
                    stays,
                    moment,
                });
            }
        }
        for (set, news) in told.children {
            match self.children.entry(set) {
                Entry::Vacant(entry) => drop(entry.insert(news)),
                Entry::Occupied(mut entry) => entry.get_mut().delta.add(&news.delta),
            }
        }
        told.endings
    }
}

impl World {
    /// Delivers what the changes of the queue in `key` owe to others.
    pub(super) fn deliver(&mut self, key: &[u8], outbox: Outbox, step: &mut Step) {
        self.deliver_from(key, outbox, 0, step);
    }

    fn deliver_from(&mut self, key: &[u8], outbox: Outbox, depth: usize, step: &mut Step) {
        self.note_transitions(key, &outbox.transitions, step);
        self.report(key, outbox.children, depth, step);
        let letters = outbox.letters.as_ref();
        let found = letters.map_or(0, |letters| letters.letters.len());
        let stays = letters.is_some_and(|letters| letters.stays.is_some());
        if found < outbox.deaths && !stays {
            let text = format!(
                "{} deaths are owed to DEADTO, and {found} letters go",
                outbox.deaths
            );
            step.faults.push(format!("a dead letter is lost: {text}"));
        }
        if let Some(letters) = outbox.letters {
            self.send_letters(key, letters, step);
        }
    }

    fn report(&mut self, from: &[u8], news: BTreeMap<Seq, News>, depth: usize, step: &mut Step) {
        let mut of_queues: BTreeMap<Key, Vec<CountedOne<'static>>> = BTreeMap::new();
        for News { key, id, delta } in news.into_values() {
            of_queues.entry(key).or_default().push(CountedOne {
                id: id.into_vec().into(),
                delta,
                dies_later: depth >= MOST_DEATHS,
            });
        }
        for (key, of) in of_queues {
            if !self.places.contains_key(&key) {
                continue;
            }
            let op = Op::Children(Counted {
                from: from.into(),
                of,
            });
            let begun = self.begin_without_events(&key);
            let mut outbox = Outbox::default();
            let _ = self.apply(&key, begun, &op, &mut outbox, step);
            self.deliver_from(&key, outbox, depth + 1, step);
        }
    }

    fn send_letters(&mut self, key: &[u8], letters: Letters, step: &mut Step) {
        let mut moved = Moved {
            gone: Vec::new(),
            stays: letters.stays,
        };
        if *letters.to == *key {
            moved.stays = Some(Stays::Itself);
        } else if !letters.letters.is_empty() {
            let mut outbox = Outbox::default();
            self.send_all(&letters.to, &letters.letters, &mut moved, &mut outbox, step);
            self.deliver_from(&letters.to.clone(), outbox, 0, step);
        }
        let mut outbox = Outbox::default();
        let moved = Op::Moved(moved);
        let _ = self.apply(key, Begun::at(letters.moment), &moved, &mut outbox, step);
        self.deliver_from(key, outbox, 0, step);
    }

    fn send_all(
        &mut self,
        to: &[u8],
        letters: &[Letter],
        moved: &mut Moved<'static>,
        outbox: &mut Outbox,
        step: &mut Step,
    ) {
        let mut begun = self.begin_without_events(to);
        if self
            .send_together(to, &mut begun, letters, moved, outbox, step)
            .is_ok()
        {
            return;
        }
        for letter in letters.chunks(1) {
            let sent = self.send_together(to, &mut begun, letter, moved, outbox, step);
            if let Err(error) = sent {
                moved.stays = Some(match error {
                    Error::Closed => Stays::Closed,
                    _ => Stays::Full,
                });
            }
        }
        if !begun.before.is_nothing() {
            let _ = self.apply(to, begun, &Op::Tick, outbox, step);
        }
    }

    fn send_together(
        &mut self,
        to: &[u8],
        begun: &mut Begun,
        letters: &[Letter],
        moved: &mut Moved<'static>,
        outbox: &mut Outbox,
        step: &mut Step,
    ) -> Result<(), Error> {
        let queue = self.queue(to);
        let moment = begun.moment;
        let sends = letters.iter().map(|letter| {
            let is_taken = queue.is_some_and(|queue| queue.is_taken(&letter.id, queue.now(moment)));
            send_of(letter, is_taken)
        });
        let op = AckSend {
            signals: Vec::new(),
            receipt: None,
            result: None,
            sends: sends.collect(),
        };
        if let Some(queue) = queue {
            queue.can_ack_send(&op, moment)?;
        }
        let op = Op::AckSend(op);
        let done = match self.places.contains_key(to) {
            false => {
                let creation = creation(&Changes::default(), Clock::Server);
                self.apply_to_new(to, creation, &op, outbox, step)?
            }
            true => {
                let now = Begun {
                    moment,
                    before: std::mem::take(&mut begun.before),
                };
                self.apply(to, now, &op, outbox, step)?
            }
        };
        let (Done::AckSent(Some(sent)), Some(queue)) = (done, self.queue(to)) else {
            return Ok(());
        };
        for (letter, sent) in letters.iter().zip(sent) {
            let Sent::Added(seq) = sent else {
                continue;
            };
            let message = queue.message(seq);
            let id = message.map(|message| queue.id_of(seq, message).to_box());
            let new_id = id.filter(|id| *id != letter.id);
            moved
                .gone
                .push((letter.seq, new_id.map(|id| id.into_vec().into())));
        }
        Ok(())
    }
}

fn send_of(letter: &Letter, is_taken: bool) -> Send<'_> {
    Send {
        id: (!is_taken).then(|| (&*letter.id).into()),
        group: letter.group.as_deref().map(Into::into),
        choices: Choices {
            label: letter.label.clone(),
            headers: letter.headers.clone(),
            ..Choices::default()
        },
        ..Send::plain(&letter.payload)
    }
}
