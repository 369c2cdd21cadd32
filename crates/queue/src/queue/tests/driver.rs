//! Applies the same operations to the queue and to the model, and compares
//! everything that a client can see of them.

use super::acts::{Act, Letter, Plan, Step, START};
use super::model::batches::{after_of, batch_of};
use super::model::Model;
use crate::error::Error;
use crate::message::after::Counts;
use crate::message::state::{Reason, State, StoredState};
use crate::message::Message;
use crate::op::{Done, Fetch, Moment, Op, Ticked};
use crate::queue::inspect::list::Listing;
use crate::queue::Queue;
use crate::settings::{Changes, Clock, Settings};
use crate::{GroupIx, Millis, Receipt, Seq, NEVER};

const SALT: u64 = 7;

/// What a client can see of one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    seq: Seq,
    id: String,
    bytes: usize,
    state: State,
    due: Millis,
    due_at: Millis,
    score: f64,
    attempt: u32,
    failures: u32,
    timeouts: u32,
    note: Vec<u8>,
    first_sent_at: Millis,
    receipt: Receipt,
    lease_until: Millis,
    ended_at: Millis,
    reason: Option<Reason>,
    batch: Option<Vec<u8>>,
    after: Option<(Vec<u8>, Counts)>,
}

fn seen_of_queue(queue: &Queue, seq: Seq, message: &Message, now: Millis) -> Seen {
    let view = queue.view_of(seq, message, queue.content(message), now);
    let running = message.stored == StoredState::Running;
    Seen {
        seq,
        id: String::from_utf8_lossy(queue.id_of(seq, message).as_bytes()).into(),
        bytes: message.payload_len() as usize,
        state: queue.state_of(message, now),
        due: message.due,
        due_at: message.due_at(),
        score: message.score(),
        attempt: view.attempt(),
        failures: message.failures(),
        timeouts: view.timeouts(),
        first_sent_at: queue.first_sent_at(seq).unwrap_or(NEVER),
        note: message.note().unwrap_or_default().to_vec(),
        receipt: message.receipt(),
        lease_until: view.lease_until().filter(|_| running).unwrap_or(NEVER),
        ended_at: message.ended_at(),
        reason: view.reason(),
        batch: queue.batch_of(seq).map(Into::into),
        after: queue
            .after_of(message)
            .map(|(batch, counts)| (batch.into(), counts)),
    }
}

fn seen_of_model(model: &Model) -> Vec<Seen> {
    let seen = |m: &super::model::Msg| Seen {
        seq: m.seq,
        id: String::from_utf8_lossy(&m.id).into(),
        bytes: m.payload.len(),
        state: model.state_of(m),
        due: m.due,
        due_at: m.due_at,
        score: m.score(),
        attempt: m.attempt,
        failures: m.failures,
        timeouts: m.timeouts,
        first_sent_at: m.first_sent_at,
        note: m.note.clone(),
        receipt: m.receipt,
        lease_until: match m.stored {
            StoredState::Running => m.lease_until,
            _ => NEVER,
        },
        ended_at: m.ended_at,
        reason: m.reason,
        batch: batch_of(&m.choices).map(Into::into),
        after: after_of(&m.choices).map(|after| match m.stored {
            StoredState::Held => (after.batch.to_vec(), model.counts(&after.batch)),
            _ => (after.batch.to_vec(), m.after_counts),
        }),
    };
    model.msgs.iter().map(seen).collect()
}

/// The queue and its model.
pub struct Pair {
    pub queue: Queue,
    pub model: Model,
    pub now: Millis,
}

impl Pair {
    pub fn new(changes: &Changes, manual: bool) -> Pair {
        let settings = Settings::default().with(changes);
        let clock = match manual {
            true => Clock::Manual(START),
            false => Clock::Server,
        };
        Pair {
            queue: Queue::new(settings.clone(), clock, SALT),
            model: Model::new(settings, manual.then_some(START), SALT),
            now: START,
        }
    }

    /// Moves both to time `now` and compares what that did.
    pub fn advance(&mut self, now: Millis) {
        self.now = now;
        let (done, expected) = match self.queue.clock() {
            Clock::Server => {
                let progress = self.queue.advance(now, u64::MAX);
                assert!(progress.caught_up);
                (progress.ticked, self.model.advance(now))
            }
            Clock::Manual(_) => {
                let op = Op::Advance { to: now };
                let moment = Moment::at_ms(now);
                let done = self.queue.apply(&op, moment);
                (ticked(done), ticked(self.model.apply(&op, moment)))
            }
        };
        assert_eq!(done, expected, "what time has done by {now}");
    }

    /// Applies one operation to both and compares the results.
    pub fn apply(&mut self, op: &Op) {
        let moment = Moment::at_ms(self.now);
        let done = perform(&mut self.queue, op, moment);
        self.compare_groups_of_deliveries(&done);
        let done = told(done);
        let expected = self.model.apply(op, moment);
        assert_eq!(done, expected, "what came of {op:?}");
        if let Ok(done) = done {
            self.queue.take_back(done);
        }
    }

    /// A delivered message must show its group, even if the message and the group
    /// are gone already.
    fn compare_groups_of_deliveries(&self, done: &Result<Done, Error>) {
        let Ok(Done::Fetched(given)) = done else {
            return;
        };
        for delivered in given {
            let view = self.queue.view_delivered(delivered, self.now);
            let group = self.model.msg(delivered.seq).group;
            let expected = group.map(|number| &*self.model.groups[number].name);
            let seen = view.and_then(|view| view.group);
            assert_eq!(seen, expected, "the group of what is delivered");
        }
    }

    /// Applies a step to both and compares them. Some purged messages are freed
    /// before; that must not be visible.
    pub fn step(&mut self, step: &Step) {
        self.queue.free_garbage((self.now % 3) as usize);
        self.advance(self.now + step.wait);
        let op = step.act.op(&self.model);
        self.apply(&op);
        self.advance(self.now);
        self.compare();
    }

    pub fn compare(&mut self) {
        let (queue, model, now) = (&self.queue, &self.model, self.now);
        let seen = all_seen(queue, now);
        let expected = seen_of_model(model);
        for (seen, expected) in seen.iter().zip(&expected) {
            assert_eq!(seen, expected, "what is seen of a message");
        }
        assert_eq!(seen.len(), expected.len(), "how many messages there are");
        for state in State::ALL {
            let expected = model.list(state);
            let counted = queue.count(state);
            assert_eq!(counted, expected.len() as u64, "count of {state:?}");
            let back: Vec<Seq> = expected.iter().rev().copied().collect();
            assert_eq!(
                listed(queue, state, true, now),
                back,
                "{state:?} from the end"
            );
            let of_list = listed(queue, state, false, now);
            assert_eq!(of_list, expected, "list of {state:?}");
        }
        assert_eq!((queue.live(), queue.bytes()), model.live());
        assert_eq!(*queue.totals(), model.totals);
        for no_ack in [false, true] {
            let fetch = Fetch {
                no_ack,
                ..Fetch::one()
            };
            let gives = model.allowance(no_ack) > 0 && model.first_in_line(no_ack).is_some();
            assert_eq!(queue.can_serve(&fetch, now), gives, "can serve");
        }
        let waits =
            |m: &&super::model::Msg| matches!(m.stored, StoredState::Delayed | StoredState::Retry);
        let next_due = model.msgs.iter().filter(waits).map(|m| m.due).min();
        assert_eq!(queue.next_due_at(now), next_due, "next due");
        let batches = queue.batches().into_iter();
        let batches = batches.flat_map(|batches| batches.open_after(0));
        let mut batches: Vec<_> = batches
            .map(|(_, batch)| (batch.name.to_vec(), batch.counts, batch.held_count()))
            .collect();
        batches.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(batches, model.batches_listed(), "batches");
        self.compare_groups();
        self.compare_breakers();
        self.compare_wake();
        self.compare_peek();
    }

    /// The breakers of the groups and of the ungrouped messages.
    fn compare_breakers(&self) {
        let (queue, model, now) = (&self.queue, &self.model, self.now);
        assert_eq!(queue.breakers_open(now), model.breakers_open());
        let groups = (0..model.groups.len()).map(Some);
        for who in groups.chain([None]) {
            let expected = model.breaker(who);
            let ix = match who {
                None => Some(GroupIx::NONE),
                Some(number) => queue.groups.find(&model.groups[number].name),
            };
            let circuit = ix.and_then(|ix| queue.breaker(ix));
            let state = match (expected.until, expected.half_open) {
                (Some(_), _) => "open",
                (None, true) => "half-open",
                (None, false) => "closed",
            };
            assert_eq!(circuit.map_or("closed", |c| c.state(now)), state);
            let until = circuit.and_then(|c| c.open_until(now));
            assert_eq!(until, expected.until, "open until");
            let probe = circuit.and_then(|c| c.probe());
            assert_eq!(probe, expected.probe, "probe");
        }
    }

    /// The queue may wake too early and find nothing to do, but never too late.
    fn compare_wake(&self) {
        if self.queue.clock() != Clock::Server {
            assert_eq!(self.queue.next_wake(self.now, true), None);
            return;
        }
        let wake = self.queue.next_wake(self.now, false).unwrap_or(NEVER);
        let next = self.model.next_wake().unwrap_or(NEVER);
        assert!(wake <= next, "wakes at {wake}, must at {next}");
    }

    /// PEEK must tell what a FETCH would give.
    fn compare_peek(&self) {
        let mut model = self.model.clone();
        let fetch = Op::fetch(Fetch {
            count: 20,
            ..Fetch::one()
        });
        let Ok(Done::Fetched(given)) = model.apply(&fetch, Moment::at_ms(self.now)) else {
            unreachable!("a FETCH fetches");
        };
        let given: Vec<Seq> = given.iter().map(|d| d.seq).collect();
        assert_eq!(self.queue.peek(20, self.now), given, "what comes next");
    }
}

/// Applies an operation as a server does, which asks first whether an ACKSEND can be
/// done.
fn perform(queue: &mut Queue, op: &Op, moment: Moment) -> Result<Done, Error> {
    if let Op::AckSend(ack_send) = op {
        if let Err(refused) = queue.can_ack_send(ack_send, moment) {
            queue.apply(&Op::Tick, moment)?;
            return Err(refused);
        }
    }
    queue.apply(op, moment)
}

/// The result of an operation, without the messages that FETCH hands out.
fn told(mut done: Result<Done, Error>) -> Result<Done, Error> {
    if let Ok(Done::Fetched(deliveries)) = &mut done {
        for delivery in deliveries {
            delivery.gone = None;
        }
    }
    done
}

fn ticked<E: std::fmt::Debug>(done: Result<Done, E>) -> Ticked {
    match done {
        Ok(Done::Ticked(ticked)) => ticked,
        other => unreachable!("{other:?}"),
    }
}

/// All messages of a state, listed three at a time.
fn listed(queue: &Queue, state: State, reverse: bool, now: Millis) -> Vec<Seq> {
    let mut listing = Listing {
        state,
        cursor: None,
        reverse,
        count: 3,
        group: None,
        label: None,
    };
    let mut all = Vec::new();
    loop {
        let (next, found) = queue.list(listing, now);
        all.extend(found);
        listing.cursor = next;
        if next.is_none() {
            return all;
        }
    }
}

/// Applies all steps, then fetches until nothing is left, from the queue and from a
/// copy of it.
pub fn run(plan: &Plan, manual: bool) {
    let mut pair = Pair::new(&plan.options, manual);
    for step in &plan.steps {
        pair.step(step);
    }
    // A copy is made as of the last change, so make a change now.
    pair.apply(&Op::Alter(Changes::default()));
    let mut copy = Pair {
        queue: pair.queue.copy(),
        model: pair.model.copy(),
        now: pair.now,
    };
    copy.compare();
    drain(&mut copy, 5);
    drain(&mut pair, 30);
}

/// Fetches and acks this many times.
fn drain(pair: &mut Pair, times: usize) {
    let fetch = Act::Fetch {
        count: 2,
        per_group: 1,
        group: None,
        lease: None,
        max_bytes: None,
        acks: vec![0, 1],
        no_ack: false,
        consumer: None,
    };
    for _ in 0..times {
        pair.step(&Step {
            wait: 3,
            act: fetch.clone(),
        });
    }
}

/// Every message of a queue, as a client sees it at `now`.
pub fn all_seen(queue: &Queue, now: Millis) -> Vec<Seen> {
    let seqs = queue.store.seqs().into_iter();
    let messages = seqs.filter_map(|seq| Some((seq, queue.message(seq)?)));
    let mut seen: Vec<Seen> = messages
        .map(|(seq, message)| seen_of_queue(queue, seq, message, now))
        .collect();
    seen.sort_unstable_by_key(|seen| seen.seq);
    seen
}

/// Checks that no client can tell two queues apart.
fn assert_same(left: &Queue, right: &Queue, now: Millis) {
    assert_eq!(all_seen(left, now), all_seen(right, now));
    assert_eq!(left.totals(), right.totals());
    assert_eq!(left.bytes(), right.bytes());
    assert_eq!(left.peek(100, now), right.peek(100, now), "what comes next");
    for state in State::ALL {
        assert_eq!(left.count(state), right.count(state), "count of {state:?}");
    }
}

/// Processes due events in calls of up to `most` steps, one millisecond after the
/// other.
fn advance_in_slices(queue: &mut Queue, from: Millis, to: Millis, most: u64) {
    for now in from..=to {
        while !queue.advance(now, most).caught_up {}
    }
}

/// Applies all steps to a queue that processes due events in one call, and to one
/// that does so a few at a time. Both must stay equal.
pub fn run_in_slices(plan: &Plan, most: u64) {
    let mut pair = Pair::new(&plan.options, false);
    let mut sliced = pair.queue.clone();
    for step in &plan.steps {
        let from = pair.now;
        pair.advance(from + step.wait);
        advance_in_slices(&mut sliced, from, pair.now, most);
        let op = step.act.op(&pair.model);
        pair.apply(&op);
        let _ = perform(&mut sliced, &op, Moment::at_ms(pair.now));
        pair.advance(pair.now);
        advance_in_slices(&mut sliced, pair.now, pair.now, most);
        assert_same(&pair.queue, &sliced, pair.now);
    }
}

/// Applies all steps to a queue that has processed all due events, and to one that
/// processes only `most` of them before each step. Both must give the same
/// deliveries, and must be equal at the end.
pub fn run_lagging(plan: &Plan, most: u64) {
    let options = Changes {
        dead_count: None,
        dead_retain: None,
        max_len: None,
        max_bytes: None,
        ttl: None,
        ..plan.options.clone()
    };
    let mut pair = Pair::new(&options, false);
    let mut lagging = pair.queue.clone();
    for step in &plan.steps {
        pair.advance(pair.now + step.wait);
        lagging.advance(pair.now, most);
        // Skip what depends on how much was processed: a message that a schedule
        // has not sent yet cannot be delivered, and a command on all messages of a
        // state takes them as they are at that moment.
        let is_of_many = matches!(
            step.act,
            Act::Schedule { .. }
                | Act::Find(..)
                | Act::Purge(..)
                | Act::PurgeSome(..)
                | Act::Alter(_)
        );
        if is_of_many {
            continue;
        }
        let mut act = step.act.clone();
        if let Act::Send(_, letter) = &mut act {
            // A group that lost its position by an expiry that is not processed yet
            // may keep it if something changes the group meanwhile. So no message
            // expires here.
            letter.choices.ttl = None;
            // Nor is anything held: what is released late comes late.
            letter.choices.change_rare(|rare| {
                rare.expire_at = None;
                rare.batching = None;
            });
        }
        if let Act::AckSend(_, letters) = &mut act {
            letters.iter_mut().for_each(|letter| {
                letter.choices.ttl = None;
                letter.choices.rare = None;
            });
        }
        let op = act.op(&pair.model);
        let moment = Moment::at_ms(pair.now);
        let _ = lagging.apply(&Op::Tick, moment);
        // PEEK changes nothing: it does not see what expiries would change in the line.
        if !lagging.has_overdue_expiry(pair.now) {
            let peeked = lagging.peek(100, pair.now);
            assert_eq!(peeked, pair.queue.peek(100, pair.now), "what comes next");
        }
        let given = told(perform(&mut lagging, &op, moment));
        let expected = told(perform(&mut pair.queue.clone(), &op, moment));
        assert_eq!(given, expected, "what came of {op:?}");
        pair.apply(&op);
        pair.advance(pair.now);
    }
    lagging.advance(pair.now, u64::MAX);
    assert_same(&pair.queue, &lagging, pair.now);
}

/// Sends all messages, then fetches from a queue that has processed all due events
/// and from one that has processed only `most` of them before each FETCH. Both must
/// give the same deliveries, and must be equal at the end.
pub fn run_burst(letters: &[Letter], fetches: &[(u64, Millis)], most: u64) {
    let mut pair = Pair::new(&Changes::default(), false);
    pair.advance(pair.now);
    for letter in letters {
        pair.apply(&Act::Send(1, letter.clone()).op(&pair.model));
    }
    let mut lagging = pair.queue.clone();
    pair.advance(pair.now + 10);
    for (count, wait) in fetches {
        pair.advance(pair.now + wait);
        lagging.advance(pair.now, most);
        let fetch = Op::fetch(Fetch {
            count: *count,
            ..Fetch::one()
        });
        let expected = pair.queue.clone().apply(&fetch, Moment::at_ms(pair.now));
        let given = lagging.apply(&fetch, Moment::at_ms(pair.now));
        assert_eq!(given, expected, "after {most} steps");
        pair.apply(&fetch);
    }
    pair.advance(pair.now);
    lagging.advance(pair.now, u64::MAX);
    assert_same(&pair.queue, &lagging, pair.now);
}
