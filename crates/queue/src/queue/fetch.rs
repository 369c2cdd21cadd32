//! Delivering: who gives, what, and how much.

use super::place::Stand;
use super::Queue;
use crate::consumer::{ConsumerIx, FORGET_AFTER};
use crate::error::Error;
use crate::group::{Group, GroupIx};
use crate::lease::{Batch, Lease};
use crate::line::{Join, LineKey};
use crate::message::Message;
use crate::op::{Delivered, Deliveries, Done, Fetch, Gone, Happened};
use crate::state::{Place, State};
use crate::{Millis, Receipt, Seq, MAX_EXACT};

/// One FETCH on its way round the line.
struct Round<'a> {
    fetch: &'a Fetch<'a>,
    consumer: ConsumerIx,
    now: Millis,
    /// Messages it may still take.
    left: u64,
    /// Payload bytes it may still take.
    bytes_left: u64,
    next_receipt: Receipt,
    given: Deliveries,
    /// Messages met on the way that had expired, or were purged.
    expired: u64,
    /// Messages that may still be redriven on the way though their groups
    /// cannot give.
    in_vain: u64,
}

/// So many expired messages at most die in one FETCH, which must not hold the
/// server: the timer is at work on them.
const MOST_EXPIRED: u64 = 1024;
/// The same for redriven messages of groups that cannot give.
const MOST_IN_VAIN: u64 = 512;
/// Room for so many deliveries at most is made before they are there.
const MOST_RESERVED: u64 = 127;
/// A longer list of deliveries is not kept for the next operation.
const MOST_KEPT: usize = 128;

impl Round<'_> {
    fn goes_on(&self) -> bool {
        self.left > 0 && self.expired < MOST_EXPIRED
    }

    /// Whether a message still goes in, whose `size` is asked for only where
    /// it matters; if not, the round is over.
    fn takes(&mut self, size: impl FnOnce() -> u64) -> bool {
        let is_limited = self.fetch.max_bytes.is_some() && !self.given.is_empty();
        if is_limited && size() > self.bytes_left {
            self.left = 0;
        }
        self.left > 0
    }

    /// Notes a delivery of so many bytes.
    fn give(&mut self, delivered: Delivered, size: u64) {
        self.left -= 1;
        match self.bytes_left.checked_sub(size) {
            Some(bytes_left) => self.bytes_left = bytes_left,
            None => self.left = 0,
        }
        if self.given.len() == self.given.capacity() {
            self.given
                .reserve(self.left.min(MOST_RESERVED) as usize + 1);
        }
        self.given.push(delivered);
    }
}

impl Queue {
    /// Acks, then delivers. O((acks + messages) log n), whatever the number of
    /// groups. There are no errors; but being handed on as it is, the result
    /// need not be copied.
    #[inline(never)]
    pub(super) fn fetch(
        &mut self,
        fetch: &Fetch,
        now: Millis,
        receipt: Receipt,
    ) -> Result<Done, Error> {
        for receipt in &fetch.acks {
            self.ack_one(*receipt, None, now);
        }
        let consumer = match &fetch.consumer {
            Some(name) => {
                self.effects.changed |= !self.consumers.was_seen(name, now);
                self.note(now.saturating_add(FORGET_AFTER));
                self.consumers.see(name, now)
            }
            None => ConsumerIx::NONE,
        };
        let mut round = Round {
            fetch,
            consumer,
            now,
            left: fetch.count.min(self.allowance(now, fetch.no_ack)),
            bytes_left: fetch.max_bytes.unwrap_or(u64::MAX),
            next_receipt: receipt.max(self.last_receipt + 1),
            given: std::mem::take(&mut self.given),
            expired: 0,
            in_vain: MOST_IN_VAIN,
        };
        match &fetch.group {
            Some(name) => {
                if let Some(ix) = self.groups.find(name) {
                    self.admit(ix, now);
                    self.redrive_first_of(ix, now);
                    while round.goes_on() && round.given.is_empty() && self.can_group_give(ix, now)
                    {
                        self.give_of_group(ix, fetch.count, &mut round);
                    }
                }
            }
            None => self.go_round(&mut round),
        }
        if round.expired > 0 {
            // Those behind an ungrouped message that had expired stand where
            // they do without it, also where the round ended before them.
            self.admit_plain(now);
        }
        if !round.given.is_empty() {
            self.effects.changed = true;
            self.effects.visible = true;
            self.effects.happened.add(Happened::DELIVERED);
        }
        Ok(Done::Fetched(round.given))
    }

    /// Takes back what an operation answered, once it has been told: the list of
    /// deliveries serves the next one, so that none allocates or moves it.
    pub fn take_back(&mut self, done: Done) {
        if let Done::Fetched(mut given) = done {
            if given.capacity() <= MOST_KEPT {
                given.clear();
                self.given = given;
            }
        }
    }

    /// Takes a batch from each that stands in line, first come first served,
    /// until the round is full or nobody can give.
    fn go_round(&mut self, round: &mut Round) {
        while round.goes_on() {
            self.redrive_first(round.now, &mut round.in_vain);
            self.admit_first(round.now);
            let head = self.waiting.plain.head(round.now);
            let plain = head.map(|head| {
                let join = Join::by_time(head.1);
                (LineKey::of_plain(head, self.plain_line, join), head.2)
            });
            let group = self.line.first().map(|(key, ())| key);
            match (plain, group) {
                (Some((plain, _)), Some(group)) if group < plain => {
                    self.give_of_group(group.group, round.fetch.per_group, round);
                }
                (Some((plain, first)), _) => self.give_plain(plain, first, round),
                (None, Some(group)) => {
                    self.give_of_group(group.group, round.fetch.per_group, round);
                }
                (None, None) => return,
            }
        }
    }

    /// One batch of the ungrouped messages, which then go to the end. They
    /// stand at `place`, and the message `first` is what they give first.
    fn give_plain(&mut self, place: LineKey, first: Seq, round: &mut Round) {
        let before = round.given.len();
        // As in `admit_plain`: it is seen in a snapshot.
        self.effects.changed |= self.plain_line != Some(place);
        self.plain_line = Some(place);
        let most = round.fetch.per_group;
        let mut next = Some(first);
        while (round.given.len() - before) as u64 != most && round.goes_on() {
            let seq = match next.take() {
                Some(first) => first,
                None => {
                    self.redrive_first(round.now, &mut round.in_vain);
                    match self.waiting.plain.head(round.now) {
                        Some((_, _, seq)) => seq,
                        None => break,
                    }
                }
            };
            if let Some(at) = self.expire_if_over(seq, round.now) {
                round.expired += 1;
                if round.given.len() == before {
                    // Without it they may have stood elsewhere since then.
                    let at = at.max(self.plain_line.map_or(0, |key| key.join.time));
                    self.plain_line = self.plain_place(self.plain_line, at, Join::by_time(at));
                    return;
                }
                continue;
            }
            if !round.takes(|| self.payload_len(seq)) {
                break;
            }
            self.deliver(seq, round);
        }
        if round.given.len() == before {
            // Their turn is still to come.
            return;
        }
        let join = self.next_join(round.now);
        self.plain_line = self.plain_place(None, round.now, join);
    }

    /// One batch of up to `most` messages of a group that can give.
    fn give_of_group(&mut self, ix: GroupIx, most: u64, round: &mut Round) {
        let first = round.next_receipt;
        let before = round.given.len();
        self.heed_purges(ix);
        while (round.given.len() - before) as u64 != most && round.goes_on() {
            self.redrive_first_of(ix, round.now);
            let Some(group) = self.groups.get(ix) else {
                break;
            };
            if group.allowance(round.now) == 0 {
                break;
            }
            let Some(key) = self.next_in_group(group, round.now) else {
                break;
            };
            let seq = key.seq();
            if self.counts_purged(seq) {
                round.expired += 1;
                self.drop_remains(seq);
                if round.given.len() == before {
                    return;
                }
                continue;
            }
            if let Some(at) = self.expire_if_over(seq, round.now) {
                round.expired += 1;
                if round.given.len() == before {
                    // Without it the group may stand elsewhere.
                    return self.refresh(ix, at, Join::by_time(at));
                }
                continue;
            }
            if !round.takes(|| self.payload_len(seq)) {
                break;
            }
            self.deliver(seq, round);
            let settings = self.groups.get_mut(ix).and_then(Group::ext_if_any);
            let settings = settings.and_then(|ext| ext.settings.as_mut());
            if let Some(settings) = settings {
                if let Some(rate) = settings.rate {
                    settings.window.count(rate, round.now, 1);
                }
            }
        }
        let given = (round.given.len() - before) as u64;
        if given > 0 && !round.fetch.no_ack {
            self.leases.open_batch(Batch::new(first, given));
            if let Some(group) = self.groups.get_mut(ix) {
                group.open_batch(first);
            }
        }
        let join = self.next_join(round.now);
        let turn_is_over = match self.groups.get_mut(ix) {
            Some(group) => {
                let turn = group.ext().turn + given;
                let over = turn >= group.weight();
                group.set_turn(if over { 0 } else { turn });
                over
            }
            None => return,
        };
        if turn_is_over {
            if let Some(key) = self.groups.get_mut(ix).and_then(|g| g.leave_line(ix)) {
                self.line.remove(&key);
            }
        }
        self.refresh(ix, round.now, join);
    }

    /// How what has just given joins the line again: behind all others.
    fn next_join(&mut self, now: Millis) -> Join {
        self.ticket += 1;
        self.join(now)
    }

    fn payload_len(&self, seq: Seq) -> u64 {
        self.store.get(seq).map_or(0, Message::payload_len)
    }

    /// Delivers one message; the caller refreshes whoever gave it.
    fn deliver(&mut self, seq: Seq, round: &mut Round) {
        let now = round.now;
        let leased = !round.fetch.no_ack;
        let receipt = if leased { round.next_receipt } else { 0 };
        let settings = &self.settings;
        let Some(message) = self.store.get_mut(seq) else {
            return;
        };
        let stood = Stand::of(seq, message, settings.ttl);
        let late = now.saturating_sub(message.due);
        let size = message.payload_len();
        let group = message.group;
        if leased {
            message.place = Place::Running;
        }
        let own_lease = message.choices().and_then(|choices| choices.lease);
        let lease = round.fetch.lease.or(own_lease).unwrap_or(settings.lease);
        let bytes = message.extension_bytes();
        let history = &mut message.history;
        let before = history.consumer();
        let attempt = history.start(message.due, now, receipt, round.consumer);
        let grown = message.extension_bytes() - bytes;
        self.store.count_extension(grown);
        self.leave(stood);
        self.consumers.unmention(before);
        self.consumers.deliver(round.consumer, leased);
        if let Some(rate) = self.settings.rate {
            self.window.count(rate, now, 1);
        }
        self.totals.delivered += 1;
        self.totals.redelivered += u64::from(attempt > 1);
        self.lateness.count(late);
        let gone = if leased {
            let until = now.saturating_add(lease).min(MAX_EXACT);
            self.leases.insert(Lease {
                receipt,
                seq,
                until,
            });
            self.note(until);
            self.running_bytes += size;
            self.last_receipt = receipt;
            round.next_receipt += 1;
            if let Some(group) = self.groups.get_mut(group) {
                group.running += 1;
                self.grouped_running += 1;
            }
            None
        } else {
            self.finish_at_once(seq, size, round)
        };
        let delivered = Delivered {
            seq,
            receipt,
            attempt,
            gone,
        };
        round.give(delivered, size);
    }

    /// A message delivered for good is finished; it is handed out where the
    /// queue does not keep it, or where there are so many records that it may be
    /// pruned before the operation is over.
    fn finish_at_once(&mut self, seq: Seq, size: u64, round: &Round) -> Option<Box<Gone>> {
        self.bytes -= size;
        let most = self.settings.retain_count;
        let records = self.count(State::Finished) + self.count(State::Cancelled);
        let is_kept =
            self.settings.retain > 0 && (most == 0 || records.saturating_add(round.left) <= most);
        let message = self.store.get(seq).filter(|_| !is_kept);
        let gone = message.map(|message| {
            let group = self.groups.name(message.group);
            Gone::of(message, self.store.content(message), group)
        });
        self.end(seq, Place::Finished, round.now);
        gone.map(Box::new)
    }
}
