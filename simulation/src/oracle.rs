//! Checks what operations did against what the queue promises: no message is
//! delivered early or leased twice at once, no receipt is given out twice, no id
//! is made twice, and no message comes or goes without being counted.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::batches;
use crate::probes::{Breakers, Probes};
use dq_queue::message::id::GENERATED_LEN;
use dq_queue::message::state::{Reason, State};
use dq_queue::op::{Deliveries, Fetch, FindAct, NackKind, Paused, Send, Sent};
use dq_queue::stats::Totals;
use dq_queue::{Done, Millis, Op, Queue, Receipt, Seq};

/// Number of receipts that are remembered after they were given out.
const REMEMBERED: usize = 64;

/// A lease that has not ended.
struct Lease {
    seq: Seq,
    until: Millis,
    /// Number of the FETCH that gave it. The leases of a batch may end together.
    fetch: u64,
}

/// What a client can know of the deliveries of a queue.
#[derive(Default)]
pub struct Oracle {
    leases: BTreeMap<Receipt, Lease>,
    recent: Vec<Receipt>,
    highest: Receipt,
    fetches: u64,
    /// The last deliveries of consumers: the token, and the number of the FETCH.
    tokens: HashMap<Vec<u8>, (Option<Vec<u8>>, u64)>,
    /// What a NACK keeps from being delivered.
    kept_back: KeptBack,
    /// All ids that the queue and its copies have made, before and after crashes.
    ids: HashSet<[u8; GENERATED_LEN]>,
    probes: Probes,
}

/// What is not delivered before a certain time (Unix ms), because a NACK said so.
#[derive(Default)]
struct KeptBack {
    /// Snoozed messages.
    messages: HashMap<Seq, Millis>,
    /// Groups that were paused with a nack.
    groups: HashMap<Vec<u8>, Millis>,
    /// The whole queue.
    queue: Millis,
}

impl KeptBack {
    /// Forgets what an operation may deliver earlier after all.
    fn release(&mut self, op: &Op<'_>) {
        match op {
            Op::Reschedule { .. } | Op::Redrive(_) | Op::FindDo { .. } => self.messages.clear(),
            Op::Pause { group: None, .. } | Op::Resume { group: None } => self.queue = 0,
            Op::Pause { group, .. } | Op::Resume { group } => {
                self.groups.remove(group.as_deref().unwrap_or_default());
            }
            Op::Purge { .. } | Op::Remove(_) => *self = KeptBack::default(),
            _ => {}
        }
    }

    /// Until when a message of this group is kept back.
    fn until(&self, seq: Seq, group: Option<&[u8]>) -> Millis {
        let of_group = group.and_then(|group| self.groups.get(group));
        let of_message = self.messages.get(&seq);
        let all = of_group.into_iter().chain(of_message);
        all.copied().fold(self.queue, Millis::max)
    }
}

/// A queue before an operation.
pub struct Before {
    live: u64,
    totals: Totals,
    /// Whether a live message has the id that a SEND wants to replace.
    replaces: bool,
    /// Whether the same holds for each message that an ACKSEND sends.
    replaced: Vec<bool>,
    /// Whether that message is running, so that SEND may replace it or not: its
    /// lease may be over without that being processed yet.
    is_unclear: bool,
    breakers: Breakers,
}

impl Before {
    /// Records the queue before time advances for an operation.
    pub fn of(queue: &Queue) -> Before {
        Before {
            live: queue.live(),
            totals: *queue.totals(),
            replaces: false,
            replaced: Vec::new(),
            is_unclear: false,
            breakers: Breakers::default(),
        }
    }

    /// Records what a SEND or ACKSEND is going to replace, and what breakers do. It is
    /// called after time has advanced for the operation, right before that is done.
    pub fn inspect(&mut self, queue: &Queue, op: &Op<'_>, now: Millis) {
        self.breakers = Breakers::before(queue, op, now);
        match op {
            Op::Send(send) => self.replaces = self.replaces(queue, send, now),
            Op::AckSend(ack_send) => {
                let mut ids = HashSet::new();
                for send in &ack_send.sends {
                    let replaces = self.replaces(queue, send, now);
                    self.replaced.push(replaces);
                    // An earlier message of the same command may be replaced.
                    let is_second = send.id.as_ref().is_some_and(|id| !ids.insert(id));
                    self.is_unclear |= is_second && send.replace;
                }
            }
            _ => {}
        }
    }

    /// Whether a live message has the id that a send wants to replace.
    fn replaces(&mut self, queue: &Queue, send: &Send<'_>, now: Millis) -> bool {
        let Some(id) = send.id.as_deref().filter(|_| send.replace) else {
            return false;
        };
        let seq = queue.find(id);
        let view = seq.and_then(|seq| queue.view(seq, now));
        let state = view.map(|view| view.state);
        self.is_unclear |= state == Some(State::Running);
        state.is_some_and(is_live)
    }
}

fn is_live(state: State) -> bool {
    !matches!(state, State::Finished | State::Dead | State::Cancelled)
}

impl Oracle {
    /// Draws a receipt that was given out, whether its lease has ended or not. One
    /// in 256 was never given out.
    pub fn receipt(&self, rng: &mut fastrand::Rng) -> Receipt {
        match self.recent.len() {
            0 => rng.u64(0..10),
            _ if rng.u8(..) == 0 => self.highest + rng.u64(0..3),
            n => self.recent[rng.usize(0..n)],
        }
    }

    /// Forgets all leases: after a crash or a failover it is not known which of
    /// them have ended.
    pub fn forget(&mut self) {
        self.leases.clear();
        self.probes.forget();
        self.tokens.clear();
        self.kept_back = KeptBack::default();
    }

    /// Checks what an operation at `now` did. `caught_up` says that everything
    /// that was due has been processed.
    ///
    /// # Errors
    /// A sentence that says which promise is broken.
    pub fn check(
        &mut self,
        queue: &Queue,
        before: &Before,
        op: &Op<'_>,
        done: Option<&Done>,
        now: Millis,
        caught_up: bool,
    ) -> Result<(), String> {
        self.kept_back.release(op);
        self.keep_back(queue, op, now);
        self.check_notes(queue, op, now)?;
        self.check_ends(queue, op, now, caught_up)?;
        if let (Op::Fetch(fetch), Some(Done::Fetched(given))) = (op, done) {
            if !self.check_repetition(before, queue, fetch, given, now)? {
                self.check_deliveries(queue, given, now)?;
                self.probes.check(queue, &before.breakers, given, now)?;
                self.note_token(fetch, given);
            }
        }
        self.probes.update(queue, now);
        self.check_ids(queue, op, done)?;
        check_found(queue, op, done, now, caught_up)?;
        if self.fetches.is_multiple_of(8) {
            batches::check(queue)?;
        }
        check_counts(queue, before, op, done)
    }

    /// The messages of these receipts whose leases have not ended by `now`.
    fn current<'a>(
        &'a self,
        receipts: &'a [Receipt],
        now: Millis,
    ) -> impl Iterator<Item = Seq> + 'a {
        let leases = receipts
            .iter()
            .filter_map(|receipt| self.leases.get(receipt));
        leases
            .filter(move |lease| lease.until > now)
            .map(|lease| lease.seq)
    }

    /// Records what a NACK snoozes and pauses.
    fn keep_back(&mut self, queue: &Queue, op: &Op<'_>, now: Millis) {
        let Op::Nack {
            receipts,
            kind,
            pause,
            ..
        } = op
        else {
            return;
        };
        let nacked: Vec<Seq> = self.current(receipts, now).collect();
        for seq in nacked {
            if let NackKind::Snooze(ms) = kind {
                self.kept_back.messages.insert(seq, now + ms);
            }
            let Some(pause) = pause else { continue };
            match pause.of {
                Paused::Queue => self.kept_back.queue = self.kept_back.queue.max(now + pause.ms),
                Paused::Group => {
                    let view = queue.view(seq, now);
                    // An operation that was refused has paused nothing.
                    let group = view.and_then(|view| view.group);
                    if let Some(group) = group.filter(|_| !self.is_running(queue, seq)) {
                        let until = self.kept_back.groups.entry(group.to_vec()).or_default();
                        *until = (*until).max(now + pause.ms);
                    }
                }
            }
        }
    }

    fn is_running(&self, queue: &Queue, seq: Seq) -> bool {
        let message = queue.message(seq);
        message.is_some_and(|message| queue.is_running(message.receipt()))
    }

    /// Checks that a TOUCH leaves its note with each message.
    ///
    /// # Errors
    /// A sentence that names the message.
    fn check_notes(&self, queue: &Queue, op: &Op<'_>, now: Millis) -> Result<(), String> {
        let Op::Touch {
            receipts,
            note: Some(note),
            ..
        } = op
        else {
            return Ok(());
        };
        let mut touched = self.current(receipts, now);
        let lacks = |seq: &Seq| {
            let message = queue.message(*seq);
            message.is_some_and(|message| message.note().unwrap_or_default() != &**note)
        };
        match touched.find(lacks) {
            Some(seq) => Err(format!("{seq} does not have the note of a TOUCH")),
            None => Ok(()),
        }
    }

    /// Checks that no queue has made the ids of an operation before.
    ///
    /// # Errors
    /// A sentence that names the id.
    pub fn check_ids(
        &mut self,
        queue: &Queue,
        op: &Op<'_>,
        done: Option<&Done>,
    ) -> Result<(), String> {
        let made: Vec<Sent> = match (op, done) {
            (Op::Send(send), Some(Done::Sent(sent))) => {
                sent.iter().filter(|_| send.id.is_none()).copied().collect()
            }
            (Op::AckSend(ack_send), Some(Done::AckSent(Some(sent)))) => {
                let sends = ack_send.sends.iter().zip(sent);
                let made = sends.filter(|(send, _)| send.id.is_none());
                made.map(|(_, sent)| *sent).collect()
            }
            _ => return Ok(()),
        };
        for one in made {
            let Sent::Added(seq) = one else { continue };
            let id = queue.new_id(seq);
            if queue.find(&id) != Some(seq) {
                return Err(format!("{seq} is not found by its id"));
            }
            if !self.ids.insert(id) {
                let id = String::from_utf8_lossy(&id);
                return Err(format!("the id {id} was made before"));
            }
        }
        Ok(())
    }

    /// Checks that a lease ended because its time is over or by a command that may
    /// end it, and that no lease goes on for longer.
    fn check_ends(
        &mut self,
        queue: &Queue,
        op: &Op<'_>,
        now: Millis,
        caught_up: bool,
    ) -> Result<(), String> {
        let may_end = match op {
            Op::Cancel { .. } | Op::Purge { .. } | Op::PurgeSome { .. } | Op::Remove(_) => true,
            Op::Ack { .. } | Op::AckEach { .. } | Op::Nack { .. } | Op::EndLeases { .. } => true,
            Op::FindDo { .. } => true,
            Op::Fetch(fetch) => !fetch.acks.is_empty(),
            Op::AckSend(ack_send) => ack_send.receipt.is_some(),
            _ => false,
        };
        if let Op::Touch { receipts, .. } = op {
            for receipt in receipts {
                if let Some(lease) = self.leases.get_mut(receipt) {
                    lease.until = until(queue, lease.seq, now).unwrap_or(lease.until);
                }
            }
        }
        if let Op::Grace { receipts, .. } = op {
            for receipt in receipts {
                if let Some(lease) = self.leases.get_mut(receipt) {
                    let until = until(queue, lease.seq, now).unwrap_or(lease.until);
                    if until > lease.until && queue.is_running(*receipt) {
                        return Err(format!("the grace of {receipt} has extended it"));
                    }
                    lease.until = until.min(lease.until);
                }
            }
        }
        let ended: Vec<Receipt> = self
            .leases
            .keys()
            .filter(|receipt| !queue.is_running(**receipt))
            .copied()
            .collect();
        if caught_up && self.leases.len() > ended.len() {
            let over = |(receipt, lease): (&Receipt, &Lease)| {
                (lease.until <= now && queue.is_running(*receipt)).then_some(*receipt)
            };
            if let Some(receipt) = self.leases.iter().find_map(over) {
                return Err(format!("the lease {receipt} is over and has not ended"));
            }
        }
        let ended: Vec<(Receipt, Lease)> = ended
            .into_iter()
            .filter_map(|receipt| Some((receipt, self.leases.remove(&receipt)?)))
            .collect();
        if may_end {
            return Ok(());
        }
        for (receipt, lease) in &ended {
            let by_batch =
                |(_, other): &(Receipt, Lease)| other.fetch == lease.fetch && other.until <= now;
            if lease.until > now && !ended.iter().any(by_batch) {
                return Err(format!(
                    "the lease {receipt} until {} has ended at {now}",
                    lease.until
                ));
            }
        }
        Ok(())
    }

    /// Checks that a FETCH repeats the last delivery of its consumer exactly where it
    /// has the same token and something of it still runs. Returns whether it does.
    fn check_repetition(
        &mut self,
        before: &Before,
        queue: &Queue,
        fetch: &Fetch<'_>,
        given: &Deliveries,
        now: Millis,
    ) -> Result<bool, String> {
        let (Some(consumer), Some(token)) = (&fetch.consumer, &fetch.token) else {
            return Ok(false);
        };
        let delivered = queue.totals().delivered - before.totals.delivered;
        let is_repeated = delivered == 0 && !given.is_empty();
        let Some((last, number)) = self.tokens.get(&**consumer) else {
            // What was delivered before a crash may be repeated.
            return Ok(is_repeated);
        };
        let is_last = last.as_deref() == Some(&**token);
        let running = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.fetch == *number);
        let running: Vec<(Receipt, Seq)> = running
            .filter(|_| is_last)
            .map(|(receipt, lease)| (*receipt, lease.seq))
            .collect();
        let given: Vec<(Receipt, Seq)> = given.iter().map(|one| (one.receipt, one.seq)).collect();
        match is_repeated || !running.is_empty() {
            true if given != running => Err(format!("{given:?} were repeated, not {running:?}")),
            true => self.see_ends_again(queue, &given, now).map(|()| true),
            false => Ok(false),
        }
    }

    /// The leases that were repeated end when they did before, or when they did before
    /// their connection closed.
    fn see_ends_again(
        &mut self,
        queue: &Queue,
        given: &[(Receipt, Seq)],
        now: Millis,
    ) -> Result<(), String> {
        for (receipt, seq) in given {
            let Some(lease) = self.leases.get_mut(receipt) else {
                continue;
            };
            let until = until(queue, *seq, now).ok_or("a lease has no end")?;
            if until < lease.until {
                return Err(format!("the repetition of {receipt} has shortened it"));
            }
            lease.until = until;
        }
        Ok(())
    }

    fn note_token(&mut self, fetch: &Fetch<'_>, given: &Deliveries) {
        let consumer = fetch.consumer.as_ref().filter(|_| !given.is_empty());
        if let Some(consumer) = consumer {
            let token = fetch.token.as_ref().map(|token| token.to_vec());
            self.tokens.insert(consumer.to_vec(), (token, self.fetches));
        }
    }

    fn check_deliveries(
        &mut self,
        queue: &Queue,
        given: &Deliveries,
        now: Millis,
    ) -> Result<(), String> {
        self.fetches += 1;
        for one in given {
            let gone = one.gone.as_deref().map(|gone| &gone.message);
            let message = gone.or_else(|| queue.message(one.seq));
            let message = message.ok_or("a delivered message is not there")?;
            let view = queue.view_delivered(one, now);
            let group = view.and_then(|view| view.group);
            if group.is_some() != message.group.is_some() {
                return Err(format!("{} does not show its group: {group:?}", one.seq));
            }
            if message.due > now {
                return Err(format!(
                    "{} was due at {}, now is {now}",
                    one.seq, message.due
                ));
            }
            let kept_until = self.kept_back.until(one.seq, group);
            if kept_until > now {
                return Err(format!(
                    "{} was kept back until {kept_until} and delivered at {now}",
                    one.seq
                ));
            }
            if one.attempt == 0 {
                return Err(format!("{} was delivered for the 0th time", one.seq));
            }
            if one.receipt == 0 {
                continue;
            }
            if one.receipt <= self.highest {
                return Err(format!(
                    "the receipt {} comes after {}",
                    one.receipt, self.highest
                ));
            }
            if self.leases.values().any(|lease| lease.seq == one.seq) {
                return Err(format!("{} is leased twice", one.seq));
            }
            self.highest = one.receipt;
            let until = until(queue, one.seq, now).ok_or("a lease has no end")?;
            let lease = Lease {
                seq: one.seq,
                until,
                fetch: self.fetches,
            };
            self.leases.insert(one.receipt, lease);
            self.recent.push(one.receipt);
        }
        let old = self.recent.len().saturating_sub(REMEMBERED);
        self.recent.drain(..old);
        Ok(())
    }
}

fn until(queue: &Queue, seq: Seq, now: Millis) -> Option<Millis> {
    queue.view(seq, now)?.lease_until()
}

/// Checks that what was to be done with found messages was done with each of them. If
/// due events are left, one of them may have ended a message first.
fn check_found(
    queue: &Queue,
    op: &Op<'_>,
    done: Option<&Done>,
    now: Millis,
    caught_up: bool,
) -> Result<(), String> {
    let (Op::FindDo { act, seqs }, Some(Done::Count(count))) = (op, done) else {
        return Ok(());
    };
    let found = seqs.len() as u64;
    if *count > found || caught_up && *act != FindAct::Cancel && *count != found {
        return Err(format!("{act:?} of {found} found messages counts {count}"));
    }
    for seq in seqs {
        let view = queue.view(*seq, now);
        let is_undone = view.is_some_and(|view| match act {
            FindAct::Redrive => view.state == State::Dead && view.reason() != Some(Reason::Expired),
            FindAct::Cancel => !matches!(view.state, State::Finished | State::Cancelled),
            FindAct::Purge => queue.find(view.id.as_bytes()) == Some(*seq),
        });
        if is_undone {
            return Err(format!("{act:?} has left {seq} as it was"));
        }
    }
    Ok(())
}

/// Checks that every message that came or went did so by something that is counted.
fn check_counts(
    queue: &Queue,
    before: &Before,
    op: &Op<'_>,
    done: Option<&Done>,
) -> Result<(), String> {
    let is_uncounted = matches!(
        op,
        Op::Purge { .. } | Op::PurgeSome { .. } | Op::Remove(_) | Op::FindDo { .. }
    );
    if is_uncounted || before.is_unclear {
        return Ok(());
    }
    let (old, new) = (&before.totals, queue.totals());
    judge_ack_send(old, new, op, done)?;
    let mut went = (new.acked - old.acked) + (new.deaths - old.deaths);
    let came = (new.sent - old.sent) + (new.redriven - old.redriven);
    match done {
        Some(Done::Sent(sent)) if before.replaces => {
            went += u64::from(matches!(sent.first(), Some(Sent::Added(_))));
        }
        Some(Done::AckSent(Some(sent))) => {
            let replaced = before.replaced.iter().zip(sent);
            went += replaced
                .filter(|(replaces, sent)| **replaces && matches!(sent, Sent::Added(_)))
                .count() as u64;
        }
        Some(Done::States(states)) => {
            went += states
                .iter()
                .flatten()
                .filter(|state| is_live(**state))
                .count() as u64;
        }
        Some(Done::Fetched(given)) => {
            went += given.iter().filter(|one| one.receipt == 0).count() as u64;
        }
        _ => {}
    }
    if before.live + came != queue.live() + went {
        return Err(format!(
            "{} messages, {came} came and {went} went: there are {}; {old:?} became {new:?}",
            before.live,
            queue.live()
        ));
    }
    Ok(())
}

/// An ACKSEND acks one message and sends all that its ids allow, or does nothing.
fn judge_ack_send(
    old: &Totals,
    new: &Totals,
    op: &Op<'_>,
    done: Option<&Done>,
) -> Result<(), String> {
    let (Op::AckSend(ack_send), Some(Done::AckSent(sent))) = (op, done) else {
        return Ok(());
    };
    let acked = u64::from(sent.is_some() && ack_send.receipt.is_some());
    let sent = sent.as_ref().map_or(0, |sent| {
        let added = |sent: &&Sent| matches!(sent, Sent::Added(_));
        sent.iter().filter(added).count() as u64
    });
    match (new.acked - old.acked, new.sent - old.sent) {
        seen if seen == (acked, sent) => Ok(()),
        // A schedule may have fired before it.
        (seen, more) if seen == acked && more > sent => Ok(()),
        seen => Err(format!(
            "{seen:?} were acked and sent, not {acked} and {sent}"
        )),
    }
}
