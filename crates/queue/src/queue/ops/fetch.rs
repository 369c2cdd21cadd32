//! FETCH: which messages are delivered, in which order, and how many.
//!
//! The ready line holds the groups that can give, and the ungrouped messages as one
//! more entry. A FETCH takes a batch from the first entry, which then goes to the
//! end, until the FETCH is full or the line is empty.

use crate::seeded::{seeded, Bug};

use crate::consumer::FORGET_AFTER;
use crate::error::Error;
use crate::groups::breaker::Lets;
use crate::groups::group::Group;
use crate::index::leases::Batch;
use crate::index::ready_line::{Join, Position};
use crate::limits::MAX_ALONE;
use crate::message::Message;
use crate::op::{Done, Fetch, Happened};
use crate::queue::ops::round::{Round, MOST_PASSED};
use crate::queue::stuck::Last;
use crate::queue::Queue;
use crate::settings::OnRetry;
use crate::{ConsumerIx, GroupIx, Millis, Receipt, Seq, MAX_EXACT};

/// Maximum capacity of a list of deliveries that is kept for the next operation.
const MOST_KEPT: usize = 128;

impl Queue {
    /// Acks the receipts named by the FETCH, then delivers. O((acks + messages) log
    /// n), whatever the number of groups.
    ///
    /// It never fails. It returns a `Result` so that the caller can hand it on
    /// without copying.
    #[inline(never)]
    pub(in crate::queue) fn fetch(
        &mut self,
        fetch: &Fetch,
        now: Millis,
        receipt: Receipt,
    ) -> Result<Done, Error> {
        if !fetch.acks.is_empty() {
            // The acks are an operation of their own, which is settled before anything is delivered.
            self.ack_each(&fetch.acks, &fetch.results, now);
            self.settle(now);
        }
        let consumer = match &fetch.consumer {
            Some(name) => {
                self.notes.effects.changed |= !self.state.consumers.was_seen(name, now);
                self.wake_by(now.saturating_add(FORGET_AFTER));
                self.state.consumers.see(name, now)
            }
            None => ConsumerIx::NONE,
        };
        if let Some(token) = &fetch.token {
            let given = self.repeat(consumer, token, now);
            if !given.is_empty() {
                self.restore_ends(&given, now);
                return Ok(Done::Fetched(given));
            }
        }
        let next_receipt = receipt.max(self.state.last_receipt + 1);
        let receipts = (MAX_EXACT + 1).saturating_sub(next_receipt);
        let allowed = self.allowance(now, fetch.no_ack).min(receipts);
        let mut round = Round {
            fetch,
            consumer,
            now,
            left: fetch.count.min(allowed),
            bytes_left: fetch.max_bytes.unwrap_or(u64::MAX),
            next_receipt,
            given: std::mem::take(&mut self.notes.given),
            expired: 0,
            passed: 0,
        };
        match &fetch.group {
            Some(name) => {
                if let Some(ix) = self.state.groups.find(name) {
                    self.admit(ix, now);
                    let mut last = Last::none();
                    while round.goes_on()
                        && round.given.is_empty()
                        && self.can_group_give(ix, now)
                        && self.lets_out(ix, fetch.no_ack, now)
                    {
                        if last.is_again(round.done()) {
                            self.note_stuck("a FETCH of a group");
                            break;
                        }
                        self.give_of_group(ix, fetch.count, &mut round);
                    }
                }
            }
            None => self.go_round(&mut round),
        }
        if round.passed == MOST_PASSED {
            self.wake_by(now);
        }
        if round.expired > 0 {
            // An expired message may have been first among the ungrouped ones. The
            // others then have another position, even if the FETCH ended before it
            // came to them.
            self.admit_plain(now);
        }
        if !round.given.is_empty() {
            self.notes.effects.changed = true;
            self.notes.effects.visible = true;
            self.notes.effects.happened.add(Happened::DELIVERED);
            if fetch.token.is_some() || self.state.consumers.has_tokens() {
                self.record_token(consumer, fetch, &round.given);
            }
        }
        Ok(Done::Fetched(round.given))
    }

    /// Takes back the result of an operation after the reply, to reuse its memory. The
    /// list of deliveries is used again by the next FETCH, so that it need not allocate.
    pub fn take_back(&mut self, done: Done) {
        if let Done::Fetched(mut given) = done {
            if given.capacity() <= MOST_KEPT {
                given.clear();
                self.notes.given = given;
            }
        }
    }

    /// Takes a batch from the first entry of the ready line, again and again, until
    /// the FETCH is full or the line is empty.
    fn go_round(&mut self, round: &mut Round) {
        let mut idle = Last::none();
        while round.goes_on() {
            let done = round.done();
            let no_ack = round.fetch.no_ack;
            self.admit_first(round.now, no_ack);
            let head = self.indexes.waiting.plain.head(round.now);
            let head = head.filter(|_| self.lets_out(GroupIx::NONE, no_ack, round.now));
            let plain = head.map(|head| {
                let join = Join::by_time(head.1);
                (
                    Position::of_plain(head, self.state.plain_position, join),
                    head.2,
                )
            });
            let group = self.first_in_line(no_ack, round.now);
            let from_group = match (plain, group) {
                (Some((plain, _)), Some(group)) if self.goes_before_plain(group, plain) => {
                    Some(group)
                }
                (Some((plain, first)), _) => {
                    self.give_plain(plain, first, round);
                    None
                }
                (None, Some(group)) => Some(group),
                (None, None) => return,
            };
            if let Some(group) = from_group {
                self.give_of_group(group.group, round.fetch.per_group, round);
            }
            if done == round.done()
                && idle.is_again((from_group, plain))
                && !seeded(Bug::FetchDoesNotEnd)
            {
                self.note_stuck("a FETCH");
                match from_group {
                    Some(group) => self.line_remove(&group),
                    None => return,
                }
            }
        }
    }

    /// Delivers one batch of ungrouped messages and moves them to the end of the
    /// ready line. `place` is their present position, `first` the message that they
    /// give first.
    fn give_plain(&mut self, stored: Position, first: Seq, round: &mut Round) {
        let before = round.given.len();
        // The position is part of a snapshot, as in `admit_plain`, so a replica must
        // learn of it.
        self.notes.effects.changed |= self.state.plain_position != Some(stored);
        self.state.plain_position = Some(stored);
        let most = self.most_let_out(GroupIx::NONE, round.fetch.per_group, round.now);
        let mut next = Some(first);
        while (round.given.len() - before) as u64 != most && round.goes_on() {
            let seq = match next.take() {
                Some(first) => first,
                None => match self.indexes.waiting.plain.head(round.now) {
                    Some((_, _, seq)) => seq,
                    None => break,
                },
            };
            if let Some(at) = self.expire_if_over(seq, round.now) {
                round.expired += 1;
                if round.given.len() == before {
                    // Without the expired message the ungrouped messages may have another
                    // position since then.
                    let at = at.max(self.state.plain_position.map_or(0, |key| key.join.time));
                    self.state.plain_position =
                        self.place_plain(self.state.plain_position, at, Join::by_time(at));
                    return;
                }
                continue;
            }
            if !round.takes(|| self.payload_len(seq)) {
                break;
            }
            if !self.deliver(seq, round) {
                break;
            }
        }
        if round.given.len() == before {
            // No message was delivered, so the ungrouped messages keep their turn.
            return;
        }
        let join = self.next_join(round.now);
        self.state.plain_position = self.place_plain(None, round.now, join);
    }

    /// Delivers one batch of up to `most` messages of a group that can give.
    fn give_of_group(&mut self, ix: GroupIx, most: u64, round: &mut Round) {
        let first = round.next_receipt;
        let before = round.given.len();
        let mut most = self.most_let_out(ix, most, round.now);
        let is_alone = self.state.settings.on_retry == OnRetry::Alone;
        // A group at its limit gives only the failed messages before those that are leased.
        let mut behind = None;
        if let Some(group) = self.state.groups.get(ix).filter(|_| is_alone) {
            most = most.min(MAX_ALONE);
            if group.batch_count() >= self.concurrency(group) {
                behind = self.first_leased(group);
            }
        }
        let mut is_hidden = false;
        while (round.given.len() - before) as u64 != most && round.goes_on() {
            let Some(group) = self.state.groups.get(ix) else {
                break;
            };
            if group.allowance(round.now) == 0 {
                break;
            }
            let Some(key) = self.next_in_group(group, round.now) else {
                break;
            };
            if behind.is_some_and(|leased| leased < key) {
                break;
            }
            let seq = key.seq();
            is_hidden = group.is_hidden();
            if let Some(at) = self.expire_if_over(seq, round.now) {
                round.expired += 1;
                if round.given.len() == before {
                    // Without the expired message the group may have another
                    // position.
                    return self.refresh(ix, at, Join::by_time(at));
                }
                continue;
            }
            if !self.limits_let(seq, ix, round.now) {
                if seeded(Bug::FetchDoesNotEnd) {
                    return;
                }
                // The group is going to wait for that limit.
                round.passed += 1;
                self.notes.effects.changed = true;
                break;
            }
            if !round.takes(|| self.payload_len(seq)) {
                break;
            }
            if !self.deliver(seq, round) {
                break;
            }
            let settings = self.state.groups.get_mut(ix).and_then(Group::ext_if_any);
            let settings = settings.and_then(|ext| ext.settings.as_mut());
            if let Some(settings) = settings {
                if let Some(rate) = settings.rate {
                    settings.window.count(rate, round.now, 1);
                }
            }
        }
        let given = (round.given.len() - before) as u64;
        if given > 0 && !round.fetch.no_ack && !is_hidden {
            if !is_alone {
                self.state.leases.open_batch(Batch::new(first, given));
            }
            if let Some(group) = self.state.groups.get_mut(ix) {
                let firsts = if is_alone { given } else { 1 };
                (first..first + firsts).for_each(|first| group.open_batch(first));
            }
        }
        let join = self.next_join(round.now);
        let turn_is_over = match self.state.groups.get_mut(ix) {
            Some(group) => {
                let turn = group.ext().turn + given;
                let over = turn >= group.weight();
                group.set_turn(if over { 0 } else { turn });
                over
            }
            None => return,
        };
        if turn_is_over {
            let group = self.state.groups.get_mut(ix);
            if let Some(key) = group.and_then(|group| group.leave_line(ix)) {
                self.move_in_line(Some(key), None, round.now);
            }
        }
        self.refresh(ix, round.now, join);
    }

    /// The most messages of a batch: one if the breaker is half-open.
    fn most_let_out(&self, ix: GroupIx, most: u64, now: Millis) -> u64 {
        match self.lets(ix, now) {
            Lets::Any => most,
            Lets::Probe | Lets::None => most.min(1),
        }
    }

    /// A position behind all others, for an entry that has just delivered.
    fn next_join(&mut self, now: Millis) -> Join {
        self.state.ticket += 1;
        self.join(now)
    }

    fn payload_len(&self, seq: Seq) -> u64 {
        self.state.store.get(seq).map_or(0, Message::payload_len)
    }
}
