//! The state of a queue right before an operation.

use std::collections::HashSet;

use super::batches::has_ended;
use super::breakers::Breakers;
use super::found::listed;
use super::leases::Leases;
use super::reruns::Waiting;
use dq_queue::message::after::Counts;
use dq_queue::message::state::State;
use dq_queue::op::Send;
use dq_queue::stats::Totals;
use dq_queue::{Millis, Op, Queue, Receipt, Seq};

/// A delivery that an operation names and whose lease has not ended.
pub struct Named {
    /// The position of the receipt among the receipts of the operation.
    pub index: usize,
    pub receipt: Receipt,
    pub seq: Seq,
    pub failures: u32,
    pub attempt: u32,
    pub group: Option<Box<[u8]>>,
    /// The state of the breaker of its group.
    pub breaker: &'static str,
}

/// The state of the queue before one message was sent.
#[derive(Default)]
pub struct BeforeSend {
    /// The live message that has its id, which a send with REPLACE replaces.
    pub has_id: Option<Seq>,
    /// Whether a record has its id. The record may be dropped for the message.
    pub has_record: bool,
    /// The running message that has its id, whose lease has certainly not ended.
    pub runs: Option<Seq>,
    /// The pending and running messages of its group, for an IFGROUP; `None` if some that
    /// have expired may still count among them.
    pub of_group: Option<u64>,
    /// The messages of the batch that it waits for; `None` if ended ones may still count
    /// among them.
    pub of_batch: Option<Counts>,
}

/// A queue before an operation.
pub struct Before {
    pub(super) live: u64,
    pub(super) totals: Totals,
    /// Number of records of finished and cancelled messages.
    pub(super) records: u64,
    /// The state before each message that the operation sends, in order.
    pub(super) sends: Vec<BeforeSend>,
    /// The deliveries that it names and whose leases have certainly not ended.
    pub(super) named: Vec<Named>,
    /// Messages whose leases may have ended.
    pub(super) unsure: Vec<(Receipt, Seq)>,
    /// Whether the receipt of an ACKSEND is certainly stale.
    pub(super) is_stale: bool,
    /// Whether a message is running or parked that SEND may replace or not: its lease or
    /// its wait may be over without that being processed yet.
    pub(super) is_unclear: bool,
    pub(super) breakers: Breakers,
    /// Whether all due events had been processed.
    pub(super) caught_up: bool,
    /// The messages that have not ended and that are in a batch which holds others, and
    /// the name of the batch.
    pub(super) holding: Vec<(Seq, Box<[u8]>)>,
    /// The messages that wait for the end of runs.
    pub(super) reruns: Vec<Waiting>,
    /// Number of schedules that fired before the operation.
    pub(super) fired: u64,
}

impl Before {
    /// Records the queue before time advances for an operation.
    pub fn of(queue: &Queue) -> Before {
        Before {
            live: queue.live(),
            totals: *queue.totals(),
            records: queue.count(State::Finished) + queue.count(State::Cancelled),
            sends: Vec::new(),
            named: Vec::new(),
            unsure: Vec::new(),
            is_stale: false,
            is_unclear: false,
            breakers: Breakers::default(),
            caught_up: false,
            holding: holding(queue),
            reruns: Waiting::all(queue),
            fired: 0,
        }
    }

    /// Records the state that the operation is about. It is called after time has
    /// advanced for it, in which `fired` schedules fired, and right before it is done.
    pub(super) fn inspect(
        &mut self,
        queue: &Queue,
        leases: &Leases,
        op: &Op<'_>,
        now: Millis,
        fired: u64,
    ) {
        self.fired = fired;
        self.caught_up = !queue.has_work(now);
        self.breakers = Breakers::before(queue, op, now);
        self.name(queue, leases, op, now);
        match op {
            Op::Send(send) => {
                let before = self.before_send(queue, send, now);
                self.sends.push(before);
            }
            Op::AckSend(ack_send) => {
                let receipt = ack_send.receipt;
                self.is_stale = receipt.is_some_and(|receipt| !queue.is_running(receipt));
                let mut ids = HashSet::new();
                for send in &ack_send.sends {
                    let before = self.before_send(queue, send, now);
                    self.sends.push(before);
                    // An earlier message of the same command may be replaced.
                    let is_second = send.id.as_ref().is_some_and(|id| !ids.insert(id));
                    self.is_unclear |= is_second && send.replace;
                }
            }
            _ => {}
        }
    }

    /// Records the deliveries that an operation names, each once.
    fn name(&mut self, queue: &Queue, leases: &Leases, op: &Op<'_>, now: Millis) {
        for (index, receipt) in receipts(op).iter().enumerate() {
            let current = leases.current(*receipt, now);
            let Some((seq, is_sure)) = current else {
                continue;
            };
            let Some(view) = queue.view(seq, now) else {
                continue;
            };
            if !is_sure {
                self.unsure.push((*receipt, seq));
            } else if self.named.iter().all(|other| other.receipt != *receipt) {
                self.named.push(Named {
                    index,
                    receipt: *receipt,
                    seq,
                    failures: view.message.failures(),
                    attempt: view.attempt(),
                    group: view.group.map(Into::into),
                    breaker: queue.breaker_state(view.group, now),
                });
            }
        }
    }

    fn before_send(&mut self, queue: &Queue, send: &Send<'_>, now: Millis) -> BeforeSend {
        let seq = send.id.as_deref().and_then(|id| queue.find(id));
        let state = seq.and_then(|seq| Some(queue.view(seq, now)?.state));
        let message = seq.and_then(|seq| queue.message(seq));
        let until = message.and_then(|message| message.parked_until());
        let may_change = state == Some(State::Running) || until.is_some_and(|at| at <= now);
        self.is_unclear |= send.replace && may_change;
        let batching = send.choices.batching();
        let after = batching.and_then(|batching| batching.after.as_ref());
        let named = after.and_then(|after| queue.batches()?.named(&after.batch));
        let counts = named.map_or(Counts::default(), |named| named.counts);
        BeforeSend {
            has_id: seq.filter(|_| state.is_some_and(is_live)),
            has_record: state.is_some_and(|state| !is_live(state)),
            runs: seq.filter(|_| self.caught_up && state == Some(State::Running)),
            of_group: match (&send.group, send.if_group) {
                (Some(group), true) if !queue.has_work(now) => Some(live_of(queue, group, now)),
                _ => None,
            },
            of_batch: (!queue.has_work(now)).then_some(counts),
        }
    }
}

/// Whether a message in this state is pending or running.
pub fn is_live(state: State) -> bool {
    !matches!(state, State::Finished | State::Dead | State::Cancelled)
}

/// Number of pending and running messages of a group. O(messages).
fn live_of(queue: &Queue, group: &[u8], now: Millis) -> u64 {
    let states = State::ALL.into_iter().filter(|state| is_live(*state));
    let listed = states.map(|state| listed(queue, state, Some(group), now).len());
    listed.sum::<usize>() as u64
}

fn holding(queue: &Queue) -> Vec<(Seq, Box<[u8]>)> {
    let Some(batches) = queue.batches() else {
        return Vec::new();
    };
    let members = batches.members.all().into_iter();
    let holding = members.filter_map(|(seq, batch)| {
        let named = batches.get(batch).filter(|named| named.held_count() > 0)?;
        (!has_ended(queue, seq)).then(|| (seq, named.name.clone()))
    });
    holding.collect()
}

/// The receipts that an operation names.
fn receipts<'o>(op: &'o Op<'_>) -> &'o [Receipt] {
    match op {
        Op::Ack { receipts, .. }
        | Op::AckEach { receipts, .. }
        | Op::AckCost { receipts, .. }
        | Op::Nack { receipts, .. }
        | Op::Touch { receipts, .. }
        | Op::Grace { receipts, .. }
        | Op::EndLeases { receipts, .. } => receipts,
        Op::Fetch(fetch) => &fetch.acks,
        Op::AckSend(ack_send) => ack_send.receipt.as_slice(),
        _ => &[],
    }
}
