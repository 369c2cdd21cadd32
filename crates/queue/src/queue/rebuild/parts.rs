//! Reads a queue as its parts.

use std::sync::Arc;

use super::{GroupSeen, Known, Numbered, SavedPosition, Term, Whole};
use crate::collections::rate_window::RateWindow;
use crate::consumer::TokenDelivery;
use crate::dead_letters::DeadLetters;
use crate::detached::Detached;
use crate::groups::breaker::Circuit;
use crate::groups::group::Group;
use crate::index::batches::{NamedBatch, Released};
use crate::index::dedup_ids::DedupIds;
use crate::index::fair_line::FairLine;
use crate::index::leases::Batch;
use crate::index::ready_line::{Join, Position};
use crate::index::siblings::Siblings;
use crate::message::kin::News;
use crate::message::packing::Dictionary;
use crate::message::Message;
use crate::named_limits::{Limit, NamedLimits};
use crate::queue::Queue;
use crate::schedule::Schedule;
use crate::settings::Settings;
use crate::stats::Lateness;
use crate::{ConsumerIx, GroupIx, Millis, Receipt, Seq};

/// A read-only view of a queue as its parts.
#[derive(Debug)]
pub struct Parts<'a> {
    queue: &'a Queue,
    /// Tickets of the commands that added entries to the ready line, sorted. A rank is an
    /// index into this list.
    tickets: Vec<u64>,
}

impl Queue {
    /// The parts of the queue. O(g log g) for the g groups in the ready line.
    pub fn parts(&self) -> Parts<'_> {
        let waiting = self.limits().into_iter().flat_map(NamedLimits::positions);
        let line = self
            .indexes
            .ready_line
            .iter()
            .chain(self.state.plain_position);
        let line = line.chain(waiting);
        let mut tickets: Vec<u64> = line
            .map(|key| key.join.ticket)
            .filter(|ticket| *ticket > 0)
            .collect();
        tickets.sort_unstable();
        tickets.dedup();
        Parts {
            queue: self,
            tickets,
        }
    }

    /// The lease of a message, if it runs.
    pub(super) fn term_of(&self, message: &Message) -> Option<Term> {
        let receipt = message.receipt();
        if receipt == 0 {
            return None;
        }
        Some(Term {
            until: self.state.leases.find(receipt)?.until,
            batch: self.state.leases.batch_of(receipt).first,
        })
    }
}

impl<'a> Parts<'a> {
    /// The part that exists once.
    pub fn whole(&self) -> Whole {
        let queue = self.queue;
        Whole {
            settings: Settings::clone(&queue.state.settings),
            clock: queue.state.clock,
            last: queue.state.last,
            next_seq: queue.state.next_seq,
            last_receipt: queue.state.last_receipt,
            salt: queue.state.ids.salt(),
            totals: *queue.state.totals,
            lateness: Lateness::clone(&queue.state.lateness),
            window: RateWindow::clone(&queue.state.seldom.window),
            paused_until: queue.state.paused_until,
            plain_position: queue.state.plain_position.map(|key| self.position(key)),
        }
    }

    /// The breaker of the ungrouped messages, unless it is closed and remembers no
    /// failure.
    pub fn plain_breaker(&self) -> Option<&'a Circuit> {
        self.queue.state.seldom.plain_breaker.as_deref()
    }

    /// Salt of the ids that are generated now.
    pub fn salt(&self) -> u64 {
        self.queue.state.ids.salt()
    }

    /// Salt with which the id of this message was generated.
    #[inline]
    pub fn salt_of(&self, seq: Seq) -> u64 {
        self.queue.state.ids.salt_of(seq)
    }

    /// All messages and records, by number. Purged messages are left out unless
    /// they still count in their group.
    pub fn messages(&self) -> impl Iterator<Item = Numbered<'a>> + 'a {
        let queue = self.queue;
        let (batches, siblings) = (queue.batches(), queue.siblings());
        queue
            .state
            .store
            .iter()
            .map(move |(seq, message)| Numbered {
                seq,
                message,
                content: queue.state.store.content(message),
                term: queue.term_of(message),
                first_sent: queue.state.store.first_sent(seq),
                batch: batches.and_then(|batches| batches.members.batch_of(seq)),
                siblings: siblings.and_then(|all| all.number_of(seq)),
            })
    }

    /// The group with this number.
    pub fn group(&self, ix: GroupIx) -> Option<GroupSeen<'a>> {
        let group = self.queue.state.groups.get(ix)?;
        let held_by = group.holds().iter().filter_map(|holder| {
            let id = self.queue.holder_id(holder)?;
            Some((holder.seq(), id))
        });
        Some(GroupSeen {
            group,
            held_by: held_by.collect(),
            line: group.position(ix).map(|key| self.position(key)),
            turn: group.ext().turn,
            wake: group.ext().wake,
            breaker: group.breaker(),
            home: group.home().and_then(|home| {
                let limit = self.queue.limits()?.get(home.limit)?;
                Some((&*limit.name, home.cost))
            }),
        })
    }

    /// Groups that must be kept even if no message names them: those with settings,
    /// a pause, a hold or a breaker that is not idle. Sorted by name.
    pub fn lasting_groups(&self) -> Vec<(GroupIx, &'a Group)> {
        let groups = self.queue.state.groups.starting_at(0);
        let mut lasting: Vec<(GroupIx, &Group)> = groups
            .filter_map(|(ix, group)| Some((ix, group?)))
            .filter(|(_, group)| {
                let ext = group.ext();
                ext.settings.is_some()
                    || ext.paused_until.is_some()
                    || ext.breaker.is_some()
                    || !group.holds().is_empty()
            })
            .collect();
        lasting.sort_unstable_by(|a, b| a.1.name.cmp(&b.1.name));
        lasting
    }

    /// The name of a consumer.
    pub fn consumer(&self, ix: ConsumerIx) -> Option<&'a [u8]> {
        self.queue.state.consumers.name(ix)
    }

    /// Consumers with a record, by name.
    pub fn consumers(&self) -> impl Iterator<Item = (&'a [u8], Known)> + 'a {
        let known = self.queue.state.consumers.known();
        known.into_iter().map(|consumer| {
            let counts = [consumer.delivered, consumer.acked, consumer.nacked];
            (&*consumer.name, (consumer.last_seen, counts))
        })
    }

    /// Last deliveries that were asked for with a token, by the names of their
    /// consumers.
    pub fn token_deliveries(&self) -> Vec<(&'a [u8], &'a TokenDelivery)> {
        self.queue.state.consumers.token_deliveries()
    }

    /// Ends that running leases had before their connections closed, by receipt.
    pub fn old_ends(&self) -> Vec<(Receipt, Millis)> {
        self.queue.old_ends().collect()
    }

    /// The named batch with this number.
    pub fn named_batch(&self, batch: Seq) -> Option<&'a NamedBatch> {
        self.queue.batches()?.get(batch)
    }

    /// The set of siblings with this number.
    pub fn siblings(&self, number: Seq) -> Option<&'a Siblings> {
        self.queue.siblings()?.get(number)
    }

    /// Messages that are held no longer and have not been released yet, in their
    /// order.
    pub fn released(&self) -> impl Iterator<Item = &'a Released> + 'a {
        let batches = self.queue.batches().into_iter();
        batches.flat_map(|batches| &batches.released)
    }

    /// The outcome of dead messages that were to go to another queue.
    pub fn dead_letters(&self) -> Option<&'a DeadLetters> {
        self.queue.dead_letters()
    }

    /// The dictionaries of packed payloads with their numbers, and whether payloads are packed with
    /// them now.
    pub fn dictionaries(&self) -> impl Iterator<Item = (u8, &'a Arc<Dictionary>, bool)> + 'a {
        self.queue.state.store.dictionaries()
    }

    /// The ties to other keys that the queue has lost.
    pub fn detached(&self) -> Option<&'a Detached> {
        self.queue.detached()
    }

    /// The reports to parents that these have not counted yet, in order.
    pub fn reports(&self) -> impl Iterator<Item = &'a News> + 'a {
        let unsettled = self.queue.state.seldom.unsettled.as_deref().into_iter();
        unsettled.flat_map(|all| &all.reports)
    }

    /// Schedules, in the order of their creation.
    pub fn schedules(&self) -> Vec<(&'a [u8], &'a Schedule)> {
        let mut schedules: Vec<_> = self.queue.state.seldom.schedules.iter().collect();
        schedules.sort_unstable_by_key(|(_, schedule)| schedule.number);
        schedules
    }

    /// The state that is common to all groups that take turns by their usage.
    pub fn fair(&self) -> Option<&'a FairLine> {
        self.queue.state.seldom.fair.as_deref()
    }

    /// Limits with names, and patterns, by name.
    pub fn limits(&self) -> Vec<&'a Limit> {
        let limits = self.queue.limits().into_iter();
        let mut limits: Vec<_> = limits.flat_map(|limits| limits.starting_at(0)).collect();
        limits.sort_unstable_by(|a, b| a.1.name.cmp(&b.1.name));
        limits.into_iter().map(|(_, limit)| limit).collect()
    }

    /// Ids that DEDUP keeps taken although no record is left, and when their
    /// messages ended (Unix ms).
    pub fn dedup(&self) -> impl Iterator<Item = (&'a [u8], Millis)> + 'a {
        self.queue.state.records.dedup.entries()
    }

    /// Deduplication ids, the ids of their first messages and when they end (Unix ms), in that
    /// order.
    pub fn dedup_ids(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8], Millis)> + 'a {
        let ids = self.queue.dedup_ids().into_iter();
        ids.flat_map(DedupIds::entries)
    }

    /// The batches of more than one message of which some still run, in order.
    pub fn batches(&self) -> impl Iterator<Item = Batch> + 'a {
        self.queue.state.leases.batches()
    }

    /// Converts a position in the ready line to its form with a rank.
    pub fn position(&self, key: Position) -> SavedPosition {
        SavedPosition {
            priority: key.priority,
            time: key.join.time,
            rank: self.rank(key.join),
            seq: key.seq,
        }
    }

    fn rank(&self, join: Join) -> u64 {
        let before = |ticket: &u64| *ticket < join.ticket;
        match join.ticket {
            0 => 0,
            _ => self.tickets.partition_point(before) as u64 + 1,
        }
    }
}
