//! Model of FETCH.

use super::line::{free, in_order};
use super::{Model, Msg, Position};
use crate::message::state::StoredState;
use crate::op::{Applied, Delivered, Done, Fetch};
use crate::settings::OnRetry;
use crate::{Receipt, Seq};

/// A FETCH with a token, which its consumer may repeat.
#[derive(Debug, Clone)]
pub struct Tokened {
    pub consumer: Vec<u8>,
    pub token: Vec<u8>,
    pub receipts: Vec<Receipt>,
    /// The replies of its effects.
    pub applied: Option<Vec<u8>>,
}

/// The state of one FETCH.
struct Round<'a> {
    fetch: &'a Fetch<'a>,
    floor: Receipt,
    given: Vec<Delivered>,
    bytes: u64,
    /// Whether MAXBYTES has ended the FETCH.
    over: bool,
}

impl Model {
    /// How many deliveries the pause and limits of the whole queue allow.
    pub fn allowance(&self, no_ack: bool) -> u64 {
        if self.paused_until.is_some() {
            return 0;
        }
        let rate = self.settings.rate;
        let by_rate = rate.map_or(u64::MAX, |rate| free(rate, &self.given, self.now));
        let running = self
            .msgs
            .iter()
            .filter(|m| m.stored == StoredState::Running);
        let by_running = match self.settings.max_running {
            0 => u64::MAX,
            _ if no_ack => u64::MAX,
            max => max.saturating_sub(running.count() as u64),
        };
        by_rate.min(by_running)
    }

    /// The index in `line` of the entry that gives next to a FETCH with or without
    /// NOACK.
    pub fn first_in_line(&self, no_ack: bool) -> Option<usize> {
        let stored = |n: &usize| {
            let s = &self.line[*n];
            (s.priority, s.time, s.ticket, s.head)
        };
        let lets_out = |n: &usize| self.lets_out(self.line[*n].who, no_ack);
        (0..self.line.len()).filter(lets_out).min_by_key(stored)
    }

    pub(super) fn fetch(&mut self, fetch: &Fetch, floor: Receipt) -> Vec<Delivered> {
        self.ack(&fetch.acks);
        self.line_up(self.ticket);
        self.send_reruns(self.ticket);
        self.settle_batches();
        // A group keeps the head with which it has joined the line, even if messages are released
        // now.
        self.ticket += 1;
        let repeated = self.repeated(fetch);
        if !repeated.is_empty() {
            return repeated;
        }
        let given = self.fetch_anew(fetch, floor);
        let given_now = |m: &&mut Msg| given.iter().any(|given| given.seq == m.seq);
        for m in self.msgs.iter_mut().filter(given_now) {
            m.consumer = fetch.consumer.as_deref().map(Into::into);
        }
        if let (Some(consumer), Some(_)) = (fetch.consumer.as_deref(), given.first()) {
            let receipts = given.iter().map(|given| given.receipt).collect();
            self.note_token(consumer, fetch.token.as_deref(), receipts);
        }
        given
    }

    /// A call without a token takes the place of one with a token, unless that has effects.
    fn note_token(&mut self, consumer: &[u8], token: Option<&[u8]>, receipts: Vec<Receipt>) {
        let at = self.tokens.iter().position(|of| of.consumer == consumer);
        let last = at.map(|at| self.tokens.remove(at));
        match (token, last) {
            (None, last) => self.tokens.extend(last.filter(|of| of.applied.is_some())),
            (Some(token), last) => self.tokens.push(Tokened {
                consumer: consumer.to_vec(),
                token: token.to_vec(),
                receipts,
                applied: last
                    .filter(|of| of.token == token)
                    .and_then(|of| of.applied),
            }),
        }
    }

    pub(super) fn note_applied(&mut self, applied: &Applied<'_>) -> Done {
        self.tokens.retain(|of| of.consumer != *applied.consumer);
        self.tokens.push(Tokened {
            consumer: applied.consumer.to_vec(),
            token: applied.token.to_vec(),
            receipts: Vec::new(),
            applied: Some(applied.outcomes.to_vec()),
        });
        Done::Ok
    }

    /// The replies of the effects of a call with this token.
    pub fn applied(&self, consumer: &[u8], token: &[u8]) -> Option<&[u8]> {
        let is_it = |of: &&Tokened| of.consumer == consumer && of.token == token;
        self.tokens.iter().find(is_it)?.applied.as_deref()
    }

    /// The messages that still run of the last delivery of a consumer, if it repeats its token.
    fn repeated(&mut self, fetch: &Fetch) -> Vec<Delivered> {
        let asked = (fetch.consumer.as_deref(), fetch.token.as_deref());
        let is_it = |of: &&Tokened| asked == (Some(&of.consumer[..]), Some(&of.token[..]));
        let Some(last) = self.tokens.iter().find(is_it) else {
            return Vec::new();
        };
        let running = last
            .receipts
            .iter()
            .filter_map(|receipt| self.running(*receipt));
        let repeated = running.map(|m| Delivered {
            seq: m.seq,
            receipt: m.receipt,
            attempt: m.attempt,
            gone: None,
        });
        let repeated: Vec<Delivered> = repeated.collect();
        for one in &repeated {
            let m = self.msg_mut(one.seq);
            m.lease_until = m.old_end.take().unwrap_or(m.lease_until);
        }
        repeated
    }

    fn fetch_anew(&mut self, fetch: &Fetch, floor: Receipt) -> Vec<Delivered> {
        let mut round = Round {
            fetch,
            floor,
            given: Vec::new(),
            bytes: 0,
            over: false,
        };
        if let Some(name) = fetch.group.as_deref() {
            let of_name = |s: &Position| s.who.is_some_and(|n| self.groups[n].name == name);
            let at = self.line.iter().position(of_name);
            let lets_out = |at: &usize| self.lets_out(self.line[*at].who, fetch.no_ack);
            if let Some(at) = at.filter(lets_out).filter(|_| self.wanted(&round) > 0) {
                self.take_turn(at, fetch.count, &mut round);
            }
            return round.given;
        }
        while !round.over {
            let wanted = self.wanted(&round);
            if wanted == 0 {
                // A full FETCH does not go on to another entry, so it ends no turn.
                break;
            }
            let first = self.first_in_line(fetch.no_ack);
            let n = first.map_or(0, |at| {
                self.take_turn(at, wanted.min(fetch.per_group), &mut round)
            });
            if n == 0 {
                break;
            }
        }
        round.given
    }

    /// How many more messages a FETCH may take.
    fn wanted(&self, round: &Round) -> u64 {
        let left = round.fetch.count - round.given.len() as u64;
        left.min(self.allowance(round.fetch.no_ack))
    }

    /// Lets an entry deliver a batch, and moves it to the end if its turn is over.
    /// Returns how many messages it gave.
    fn take_turn(&mut self, at: usize, most: u64, round: &mut Round) -> u64 {
        let who = self.line[at].who;
        let n = self.give_batch(who, most, round);
        let weight = who.map_or(1, |number| self.groups[number].weight);
        self.line[at].turn += n;
        if self.line[at].turn >= weight {
            self.line.remove(at);
        }
        // Each entry goes to the end separately, after those that went before it.
        self.ticket += 1;
        self.line_up(self.ticket);
        n
    }

    /// Delivers up to `most` messages in a row. Returns how many.
    fn give_batch(&mut self, who: Option<usize>, most: u64, round: &mut Round) -> u64 {
        let by_group = who.map_or(u64::MAX, |n| self.group_allowance(&self.groups[n]));
        let most = most.min(by_group).min(self.allowance(round.fetch.no_ack));
        let most = match self.breaker(who).half_open {
            true => most.min(1),
            false => most,
        };
        // A group at its limit gives only the failed messages before those that are leased.
        let leased = who.filter(|n| self.batches(*n) >= self.concurrency(*n));
        let leased = leased.and_then(|n| self.first_leased(n)).cloned();
        let mut batch = None;
        let mut n = 0;
        while n < most {
            let next = match who {
                None => self.head(None),
                Some(number) => self.next_of_group(number),
            };
            let is_free = |m: &&Msg| {
                leased
                    .as_ref()
                    .is_none_or(|leased| in_order(m, leased).is_lt())
            };
            let Some(next) = next.filter(is_free) else {
                break;
            };
            let size = next.payload.len() as u64;
            let limit = round.fetch.max_bytes.unwrap_or(u64::MAX);
            if !round.given.is_empty() && round.bytes + size > limit {
                round.over = true;
                break;
            }
            round.bytes += size;
            // The first message may be larger than MAXBYTES; the FETCH is full then.
            round.over = round.bytes > limit;
            let seq = next.seq;
            self.deliver(seq, &mut batch, round);
            n += 1;
        }
        n
    }

    fn deliver(&mut self, seq: Seq, batch: &mut Option<Receipt>, round: &mut Round) {
        let now = self.now;
        let lease = self.settings.lease;
        let is_alone = self.settings.on_retry == OnRetry::Alone;
        self.totals.delivered += 1;
        if self.settings.rate.is_some() {
            self.given.push(now);
        }
        let no_ack = round.fetch.no_ack;
        let receipt = match no_ack {
            true => 0,
            false => (self.last_receipt + 1).max(round.floor),
        };
        let m = self.msg_mut(seq);
        m.attempt += 1;
        let attempt = m.attempt;
        let group = m.group;
        if !no_ack {
            m.stored = StoredState::Running;
            m.receipt = receipt;
            m.batch = match group {
                Some(_) if !is_alone => *batch.get_or_insert(receipt),
                _ => receipt,
            };
            let own = round.fetch.lease.or(m.choices.lease.map(|ms| ms.get()));
            m.lease_until = now + own.unwrap_or(lease);
            m.old_end = None;
            self.last_receipt = receipt;
            self.receipts.push(receipt);
            self.let_out(seq);
        }
        if attempt > 1 {
            self.totals.redelivered += 1;
        }
        if let Some(group) = group.map(|number| &mut self.groups[number]) {
            if group.rate.is_some() {
                group.given.push(now);
            }
        }
        if no_ack {
            self.end(seq, StoredState::Finished);
        }
        round.given.push(Delivered {
            seq,
            receipt,
            attempt,
            gone: None,
        });
    }
}
