//! Random operations on two queues with parents and children. Before each operation and behind it
//! the states of all children are looked at: what has become of them must be what the queue tells
//! their parents. And each parent must have counted what it was told, and be held no longer than
//! that says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::steps::{step, Step, IDS, KEYS, PARENTS};
use crate::message::after::OnFail;
use crate::message::kin::{ChildCounts, Children, Delta, News, Wait};
use crate::message::state::{Reason, State};
use crate::message::Message;
use crate::op::{Counted, CountedOne, NackKind, Op, Send};
use crate::queue::rebuild::validate;
use crate::queue::tests::properties::config;
use crate::queue::Queue;
use crate::settings::{Clock, Settings};
use crate::{Millis, Moment, Receipt, Seq};

/// A child, in its state at the last check.
#[derive(Debug, Clone)]
struct Seen {
    set: Seq,
    id: &'static str,
    on_dead: OnFail,
    /// `None` if the child is gone.
    state: Option<State>,
    /// Whether the message that waits for the end of its run is a child of the same parent.
    runs_again: bool,
    /// The counts that the parent has of its children.
    counted: [i64; 5],
}

struct World {
    queues: [Queue; 2],
    now: Millis,
    seen: [BTreeMap<Seq, Seen>; 2],
    running: Vec<(usize, Receipt)>,
    /// The counts that the parents that wait must have.
    counts: BTreeMap<Seq, ChildCounts>,
    /// The ids of the parents of the sets of siblings in each queue.
    parents: [BTreeMap<Seq, Box<[u8]>>; 2],
}

/// The counts of a child in this state.
fn of_state(state: State, on_dead: OnFail) -> [i64; 5] {
    match state {
        State::Finished => [1, 0, 0, 0, 0],
        State::Cancelled => [0, 1, 0, 0, 0],
        State::Dead => [0, 0, 1, 0, i64::from(on_dead == OnFail::Hold)],
        _ => [0; 5],
    }
}

fn children(queue: &Queue, seq: Seq) -> Option<&Children> {
    let waits = |children: &&Children| children.wait != Wait::Over;
    let message = queue.message(seq)?;
    message.children().filter(waits)
}

impl World {
    fn new() -> World {
        let settings = Settings {
            lease: 50,
            retries: 1,
            retain: 1_000_000,
            ..Settings::default()
        };
        World {
            queues: [1, 2].map(|salt| Queue::new(settings.clone(), Clock::Server, salt)),
            now: 1000,
            seen: Default::default(),
            running: Vec::new(),
            counts: BTreeMap::new(),
            parents: Default::default(),
        }
    }

    /// Applies an operation to a queue, compares its reports with the changes among its
    /// children, and counts them at their parents.
    fn apply(&mut self, queue: usize, op: &Op) {
        let moment = Moment::at_ms(self.now);
        let replaced = self.replaced(queue, op);
        let waiting: Vec<Seq> = self.counts.keys().copied().collect();
        let old: Vec<Option<ChildCounts>> = match op {
            Op::Send(send) => self.replaced_parent(queue, send).into_iter().collect(),
            _ => Vec::new(),
        };
        let mut told = self.advance(queue);
        let done = self.queues[queue].apply(op, moment).unwrap();
        told.extend(
            self.queues[queue]
                .take_owed(b"q")
                .unwrap_or_default()
                .reports,
        );
        told.extend(self.advance(queue));
        if let crate::op::Done::Fetched(given) = done {
            let given = given.iter().filter(|given| given.receipt > 0);
            self.running
                .extend(given.map(|given| (queue, given.receipt)));
        }
        validate(&self.queues[queue]).unwrap();
        let is_purge = matches!(op, Op::Purge { .. });
        let expected = self.look(queue, is_purge, replaced);
        if queue == 0 {
            self.note_parents(&waiting, old.into_iter().flatten().next());
        }
        let mut counts: BTreeMap<Box<[u8]>, [i64; 5]> = BTreeMap::new();
        for news in &told {
            let counts = counts.entry(news.id.clone()).or_default();
            for (count, by) in counts.iter_mut().zip(news.delta.counts()) {
                *count += by;
            }
        }
        counts.retain(|_, counts| *counts != [0; 5]);
        assert_eq!(counts, self.by_parent(queue, expected));
        if told.is_empty() {
            return;
        }
        let of = told.into_iter().map(|news| {
            assert_eq!(*news.key, *b"q");
            CountedOne {
                id: news.id.into_vec().into(),
                delta: news.delta,
                dies_later: news.delta.finished % 2 == 1,
            }
        });
        let of: Vec<CountedOne> = of.collect();
        for one in &of {
            self.count(&one.id, &one.delta);
        }
        let from = KEYS[queue].as_bytes().into();
        self.apply(0, &Op::Children(Counted { from, of }));
    }

    /// Runs the due events of a queue. Returns the reports to parents because of them.
    fn advance(&mut self, queue: usize) -> Vec<News> {
        let mut told = Vec::new();
        while !self.queues[queue].advance(self.now, u64::MAX).caught_up {
            told.extend(
                self.queues[queue]
                    .take_owed(b"q")
                    .unwrap_or_default()
                    .reports,
            );
        }
        told
    }

    /// The changes among children, by the ids of their parents.
    fn by_parent(
        &self,
        queue: usize,
        of_sets: BTreeMap<Seq, [i64; 5]>,
    ) -> BTreeMap<Box<[u8]>, [i64; 5]> {
        let mut counts: BTreeMap<Box<[u8]>, [i64; 5]> = BTreeMap::new();
        for (set, delta) in of_sets {
            let counts = counts.entry(self.parents[queue][&set].clone()).or_default();
            for (count, by) in counts.iter_mut().zip(delta) {
                *count += by;
            }
        }
        counts.retain(|_, counts| *counts != [0; 5]);
        counts
    }

    /// Children that this operation replaces by another child of the same parent.
    fn replaced(&self, queue: usize, op: &Op) -> Option<Seq> {
        let Op::Send(send) = op else {
            return None;
        };
        let seq = self.queues[queue].find(send.id.as_deref()?)?;
        let old = self.queues[queue].parent_of(seq)?;
        let same = send.choices.parent()?.is_same_message(old);
        let state = self.seen[queue].get(&seq)?.state?;
        (send.replace && same && state != State::Finished).then_some(seq)
    }

    /// Returns the counts of the pending parent that this SEND replaces, if it replaces one.
    fn replaced_parent(&self, queue: usize, send: &Send) -> Option<Option<ChildCounts>> {
        let seq = self.queues[queue].find(send.id.as_deref()?)?;
        let message = self.queues[queue].message(seq)?;
        let pending = send.replace && message.stored.is_pending();
        pending.then(|| message.children().map(|children| children.counts))
    }

    /// The changes among the children of a queue since the last call, by their sets.
    fn look(
        &mut self,
        queue: usize,
        is_purge: bool,
        replaced: Option<Seq>,
    ) -> BTreeMap<Seq, [i64; 5]> {
        let now = self.now;
        let (queue, seen, parents) = (
            &self.queues[queue],
            &mut self.seen[queue],
            &mut self.parents[queue],
        );
        let mut deltas: BTreeMap<Seq, [i64; 5]> = BTreeMap::new();
        for (seq, child) in seen.iter_mut() {
            let message = queue.message(*seq);
            let state = message.map(|message| queue.state_of(message, now));
            let counted = match (state, child.state) {
                (None, None) => continue,
                (Some(state), _) => of_state(state, child.on_dead),
                (None, _) if replaced == Some(*seq) => [0; 5],
                (None, Some(_)) if child.runs_again && !is_purge => [0; 5],
                (None, Some(State::Dead)) => [0, 0, 1, 0, 0],
                (None, Some(State::Finished | State::Cancelled)) => child.counted,
                (None, Some(_)) => [0, 0, 0, 1, 0],
            };
            let delta = deltas.entry(child.set).or_default();
            for (by, (new, old)) in delta.iter_mut().zip(counted.iter().zip(child.counted)) {
                *by += new - old;
            }
            child.counted = counted;
            child.state = state;
            let rerun = message
                .and_then(Message::rerun)
                .and_then(|rerun| rerun.choices.parent());
            let own = queue.parent_of(*seq);
            child.runs_again = own
                .zip(rerun)
                .is_some_and(|(own, new)| own.is_same_message(new));
        }
        let ids = IDS
            .iter()
            .filter_map(|id| Some((*id, queue.find(id.as_bytes())?)));
        for (id, seq) in ids {
            let Some(set) = queue.siblings().and_then(|all| all.number_of(seq)) else {
                continue;
            };
            seen.entry(seq).or_insert_with(|| {
                let state = queue
                    .message(seq)
                    .map(|message| queue.state_of(message, now));
                let parent = queue.parent_of(seq).unwrap();
                let on_dead = parent.on_dead;
                parents.insert(set, parent.id.clone());
                Seen {
                    set,
                    id,
                    on_dead,
                    state,
                    runs_again: false,
                    counted: [0; 5],
                }
            });
        }
        deltas.retain(|_, delta| *delta != [0; 5]);
        deltas
    }

    /// Notes which parents wait now. A new one has counted `taken_over`, if that is given.
    fn note_parents(&mut self, waited: &[Seq], taken_over: Option<ChildCounts>) {
        let queue = &self.queues[0];
        self.counts.retain(|seq, _| children(queue, *seq).is_some());
        for id in IDS {
            let seq = queue.find(id.as_bytes());
            let new = seq.filter(|seq| !waited.contains(seq) && children(queue, *seq).is_some());
            if let Some(seq) = new {
                self.counts.insert(seq, taken_over.unwrap_or_default());
            }
        }
        for (seq, counts) in &self.counts {
            let children = children(queue, *seq).unwrap();
            assert_eq!((children.counts, children.dies), (*counts, false));
            assert!(counts.ended() < children.total, "it is held for too long");
        }
    }

    /// Counts the changes at a parent, if it waits. It waits no longer if it is to die.
    fn count(&mut self, id: &[u8], delta: &Delta) {
        let seq = self.queues[0].find(id);
        if let Some(counts) = seq.and_then(|seq| self.counts.get_mut(&seq)) {
            counts.add(delta);
        }
    }

    /// Checks that each parent which waits no longer has a reason.
    fn check(&self) {
        for id in &IDS[..PARENTS.into()] {
            let Some(seq) = self.queues[0].find(id.as_bytes()) else {
                continue;
            };
            let message = self.queues[0].message(seq).unwrap();
            let Some(children) = message.children().filter(|of| of.wait == Wait::Over) else {
                continue;
            };
            let view = self.queues[0].view(seq, self.now).unwrap();
            let is_dead = view.reason() == Some(Reason::Children);
            let is_cancelled = view.state == State::Cancelled;
            let has_died = self.queues[0].totals().deaths.get() > 0;
            assert!(children.have_ended() || is_dead || is_cancelled || has_died);
        }
    }

    fn run(&mut self, step: &Step) {
        if let Some((queue, op)) = step.operation() {
            let is_foreign = match &op {
                Op::Send(send) => self.would_run_for_another(queue, send),
                _ => false,
            };
            if !is_foreign {
                self.apply(queue, &op);
            }
            return;
        }
        match step {
            Step::Wait(ms) => {
                self.now += ms;
                self.apply(0, &Op::Tick);
                self.apply(1, &Op::Tick);
            }
            Step::Ack(n) | Step::Nack(n, _) if !self.running.is_empty() => {
                let (queue, receipt) = self.running.remove(usize::from(*n) % self.running.len());
                let receipts = [receipt].into_iter().collect();
                let op = match step {
                    Step::Nack(_, fatal) => Op::Nack {
                        receipts,
                        kind: if *fatal {
                            NackKind::Fatal
                        } else {
                            NackKind::Delay(0)
                        },
                        error: None,
                        random: 0,
                        note: None,
                        pause: None,
                    },
                    _ => Op::Ack {
                        receipts,
                        result: None,
                    },
                };
                self.apply(queue, &op);
            }
            _ => {}
        }
    }

    /// Whether a SEND would wait for the end of the run of a child of another parent: how that
    /// ends could not be seen.
    fn would_run_for_another(&self, queue: usize, send: &Send) -> bool {
        let seq = send
            .id
            .as_deref()
            .and_then(|id| self.queues[queue].find(id));
        let Some(seq) = seq.filter(|_| send.rerun) else {
            return false;
        };
        let own = self.queues[queue].parent_of(seq);
        let new = send.choices.parent();
        let same = own
            .zip(new)
            .is_some_and(|(own, new)| own.is_same_message(new));
        own.is_some() && !same
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parents_count_what_has_become_of_their_children(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
            world.check();
        }
        let ids: Vec<_> = world.seen.iter().flat_map(|seen| seen.values().map(|one| one.id)).collect();
        prop_assert!(ids.len() <= 1000);
    }
}
