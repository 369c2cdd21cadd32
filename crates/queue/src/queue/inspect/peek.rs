//! DQ.PEEK: the messages that FETCH would return next.
//!
//! PEEK must change nothing, so it replays the rules of FETCH on a small copy of
//! the ready line: it records which messages would be given and which entries would
//! join the line again.

use std::collections::{BTreeSet, HashMap};

use crate::groups::backlog::Side;
use crate::groups::breaker::Lets;
use crate::groups::group::Group;
use crate::index::lane::Lane;
use crate::index::order_key::OrderKey;
use crate::index::ready_line::{Join, Position};
use crate::queue::inspect::peek_limits::RehearsedLimits;
use crate::queue::Queue;
use crate::settings::{OnDead, OnRetry};
use crate::{GroupIx, Millis, Seq};

/// How many expired messages PEEK skips at most in each index, while expiries are
/// not all processed.
const MOST_EXPIRED: usize = 10_000;

/// The messages that a group would have delivered so far.
#[derive(Default)]
struct Given {
    keys: Vec<OrderKey>,
    turn: u64,
}

/// The ready line as it would be after the messages taken so far.
struct Rehearsal<'a> {
    queue: &'a Queue,
    now: Millis,
    /// The ungrouped messages in order, each with its priority.
    plain: std::vec::IntoIter<(i8, Seq)>,
    plain_key: Option<Position>,
    /// Entries that would have joined the line again.
    rejoined: BTreeSet<Position>,
    given: HashMap<GroupIx, Given>,
    ticket: u64,
    limits: RehearsedLimits<'a>,
    /// How many messages without a group the breaker still lets out.
    ungrouped: usize,
}

impl Queue {
    /// The messages that a FETCH of `count` would return at `now`, in order.
    /// O(count log n), where each group gives one batch at a time.
    pub fn peek(&self, count: usize, now: Millis) -> Vec<Seq> {
        let allowed = self.allowance(now, false);
        let count = count.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let plain_count = match self.lets(GroupIx::NONE, now) {
            Lets::Any => count,
            Lets::Probe => count.min(1),
            Lets::None => 0,
        };
        let mut rehearsal = Rehearsal {
            queue: self,
            now,
            plain: self.plain_heads(plain_count, now).into_iter(),
            plain_key: self.plain_key(now).filter(|_| plain_count > 0),
            rejoined: BTreeSet::new(),
            given: HashMap::new(),
            ticket: self.state.ticket,
            limits: RehearsedLimits::new(self, now),
            ungrouped: plain_count,
        };
        rehearsal.rejoined.extend(rehearsal.limits.opening());
        let mut line = self.line_at(now).peekable();
        let mut peeked = Vec::new();
        while peeked.len() < count {
            let rejoined = rehearsal.rejoined.first().copied();
            let waiting = line.peek().copied();
            let group = match (waiting, rejoined) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let seq = match (rehearsal.plain_key, group) {
                (Some(plain), Some(key)) if key < plain => take(key, &mut rehearsal, &mut line),
                (Some(_), _) => rehearsal.take_plain(),
                (None, Some(key)) => take(key, &mut rehearsal, &mut line),
                (None, None) => break,
            };
            peeked.extend(seq);
        }
        peeked
    }

    /// The groups that are in the ready line at `now`, in order. Includes groups
    /// whose time has come but that have not joined it yet.
    pub(super) fn line_at(&self, now: Millis) -> impl Iterator<Item = Position> + '_ {
        let given_position = move |ix| self.state.groups.get(ix)?.given_position(ix, now);
        let line = self.indexes.ready_line.iter();
        let mut stand = line
            .filter(move |key| given_position(key.group).is_none())
            .peekable();
        let mut join = self
            .indexes
            .expected
            .by(now)
            .filter(move |key| given_position(key.group) == Some(*key))
            .peekable();
        std::iter::from_fn(move || match (stand.peek(), join.peek()) {
            (Some(stands), Some(joins)) if joins < stands => join.next(),
            (Some(_), _) => stand.next(),
            (None, _) => join.next(),
        })
    }

    /// The first ungrouped messages that are due at `now`, in order.
    fn plain_heads(&self, count: usize, now: Millis) -> Vec<(i8, Seq)> {
        let mut heads = Vec::new();
        for (priority, lane) in self.indexes.waiting.plain.iter() {
            let left = count.saturating_sub(heads.len());
            heads.extend(self.lane_heads(lane, left, now).map(|seq| (priority, seq)));
        }
        heads
    }

    /// The first messages of a lane that are due at `now`, promoted or not.
    fn lane_heads(&self, lane: &Lane, count: usize, now: Millis) -> impl Iterator<Item = Seq> {
        let mut heads: Vec<(Millis, Seq)> = Vec::new();
        for index in [&lane.due, &lane.delayed, &lane.retry] {
            let keys = index
                .iter()
                .map(|(key, ())| key)
                .take(count.saturating_add(MOST_EXPIRED));
            let due = keys.take_while(|(due, _)| *due <= now);
            heads.extend(due.filter(|(_, seq)| !self.is_over(*seq, now)).take(count));
        }
        heads.sort_unstable();
        heads.truncate(count);
        heads.into_iter().map(|(_, seq)| seq)
    }

    /// Whether a waiting message has expired.
    fn is_over(&self, seq: Seq, now: Millis) -> bool {
        let message = self.state.store.get(seq);
        message.is_some_and(|message| self.expired_at(message, now).is_some())
    }
}

fn take(
    key: Position,
    rehearsal: &mut Rehearsal,
    line: &mut std::iter::Peekable<impl Iterator<Item = Position>>,
) -> Option<Seq> {
    if !rehearsal.rejoined.remove(&key) {
        line.next();
    }
    rehearsal.take_of_group(key)
}

impl Rehearsal<'_> {
    fn join(&mut self) -> Join {
        self.ticket += 1;
        Join {
            time: self.now,
            ticket: self.ticket,
        }
    }

    fn take_plain(&mut self) -> Option<Seq> {
        let next = self.plain.next().filter(|_| self.ungrouped > 0);
        let Some((_, seq)) = next else {
            self.plain_key = None;
            return None;
        };
        self.ungrouped -= 1;
        let join = self.join();
        let next = self.plain.as_slice().first();
        self.plain_key = next.map(|(priority, seq)| Position {
            priority: *priority,
            join,
            seq: *seq,
            group: GroupIx::NONE,
        });
        Some(seq)
    }

    fn take_of_group(&mut self, key: Position) -> Option<Seq> {
        let group = self.queue.state.groups.get(key.group)?;
        let next = self.limits.next_in_line(key, group);
        self.rejoined.extend(next);
        if group.is_hidden() && self.ungrouped == 0 {
            return None;
        }
        let head = self.head(key.group, group)?;
        if !self.limits.take(head.seq(), key) {
            return None;
        }
        self.ungrouped -= usize::from(group.is_hidden());
        let weight = group.weight();
        let base_turn = group.ext().turn;
        let given = self.given.entry(key.group).or_insert_with(|| Given {
            keys: Vec::new(),
            turn: base_turn,
        });
        given.keys.push(head);
        given.turn += 1;
        let turn_is_over = given.turn >= weight;
        if let Some(next) = self.head(key.group, group) {
            let mut stands = key;
            if turn_is_over || next.priority() != key.priority {
                stands = Position {
                    priority: next.priority(),
                    join: self.join(),
                    seq: next.seq(),
                    group: key.group,
                };
                if let Some(given) = self.given.get_mut(&key.group) {
                    given.turn = 0;
                }
            }
            self.rejoined.insert(stands);
        }
        Some(head.seq())
    }

    /// The message that a group would deliver next, after those that it would already
    /// have delivered.
    fn head(&self, ix: GroupIx, group: &Group) -> Option<OrderKey> {
        let queue = self.queue;
        let given = self.given.get(&ix).map_or(&[][..], |given| &given.keys);
        if given.is_empty() {
            let head = queue.group_head(group, self.now)?;
            if !queue.is_over(head.seq(), self.now) {
                return Some(head);
            }
            if queue.state.settings.on_dead == OnDead::Block {
                return None;
            }
        }
        if !given.is_empty() && group.lets(self.now) != Lets::Any {
            return None;
        }
        let batches = given.len() as u64;
        if group.batch_count() + batches >= queue.concurrency(group)
            || group.allowance(self.now) <= batches
        {
            return None;
        }
        let left = |key: &OrderKey| !given.contains(key) && !queue.is_over(key.seq(), self.now);
        let pending = group.pending();
        let due = |side: Side| side.all_due(self.now).find(left);
        let failed = due(pending.failed);
        let fresh = || due(pending.fresh);
        match queue.state.settings.on_retry {
            OnRetry::Block | OnRetry::Alone => failed.or_else(fresh),
            OnRetry::Skip => match (failed, fresh()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }
}
