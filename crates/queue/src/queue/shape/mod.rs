//! The shape of a queue: all that decides what it does from now on, without what only tells when
//! and in which run that came about.
//!
//! Two queues that have the same shape do the same for ever, each at its own time and with its
//! own numbers. So a search through states needs to look at one of them only. Times are written
//! as seen from now, and numbers, receipts and tickets by their order. What is long past keeps
//! its order alone. Notes that no snapshot has are part of it: a queue that still owes something
//! is not the same as one that does not. Totals and other counts that only grow are left out.

mod words;

use super::Queue;
use crate::collections::rate_window::RateWindow;
use crate::groups::backlog::Backlog;
use crate::groups::breaker::{Circuit, Phase};
use crate::index::fair_line::Usage;
use crate::message::given::GivenId;
use crate::message::id::Id;
use crate::message::left::Left;
use crate::message::rerun::Rerun;
use crate::message::{Choices, Message};
use crate::queue::rebuild::{GroupSeen, Numbered, Parts, SavedPosition};
use crate::schedule::recurrence::Recurrence;
use crate::schedule::Schedule;
use crate::settings::Clock;
use crate::{Millis, NEVER};
use words::Writer;

/// Attempts above this number count as this many: they only change what a client reads.
const MOST_ATTEMPTS: u32 = 3;
/// Failures above this number count as this many. No test queue forgives as many.
const MOST_FAILURES: u32 = 4;

impl Queue {
    /// The shape of the queue at `now` (Unix ms). Times that are more than `past` ms ago are
    /// written by their order only: it must be longer than each span that a rule of the queue
    /// looks back. O(n log n).
    pub fn shape(&self, now: Millis, past: Millis) -> Vec<u64> {
        let mut writer = Writer::of(self);
        writer.notes(self);
        writer.finish(now, past)
    }

    /// The shape without the notes that no snapshot has: that of the queue when it is loaded.
    pub fn shape_without_notes(&self, now: Millis, past: Millis) -> Vec<u64> {
        Writer::of(self).finish(now, past)
    }
}

impl Writer {
    /// The words of all that a snapshot has.
    fn of(queue: &Queue) -> Writer {
        let mut writer = Writer::new();
        writer.queue(queue, &queue.parts());
        writer
    }

    fn queue(&mut self, queue: &Queue, parts: &Parts<'_>) {
        self.debug(&queue.state.settings);
        match queue.state.clock {
            Clock::Server => self.plain(0u64),
            Clock::Manual(at) => self.time(at),
        }
        self.time(queue.state.last);
        self.optional_time(queue.state.paused_until);
        self.window(&queue.state.seldom.window);
        self.position(queue.state.plain_position.map(|at| parts.position(at)));
        self.circuit(parts.plain_breaker());
        let clock = parts.fair().map_or(0, |fair| fair.clock);
        self.plain(parts.fair().map_or(0, |fair| fair.mean));
        self.usage(parts.fair().map(|fair| &fair.plain), clock);
        for (name, schedule) in parts.schedules() {
            self.schedule(name, schedule);
        }
        for limit in parts.limits() {
            self.text(&limit.name);
            self.debug(&limit.own);
            self.plain(limit.open.is_some());
            for (_, window) in limit.windows() {
                self.window(window);
            }
        }
        for batch in parts.batches() {
            self.receipt(batch.first);
            self.plain(batch.count());
        }
        for (id, ended_at) in parts.dedup() {
            self.text(id);
            self.time(ended_at);
        }
        for (name, id, until) in parts.dedup_ids() {
            self.text(name);
            self.text(id);
            self.time(until);
        }
        for numbered in parts.messages() {
            self.message(parts, numbered);
        }
        self.groups(queue, parts, clock);
        for (name, (last_seen, _)) in parts.consumers() {
            self.text(name);
            self.time(last_seen);
        }
        for (name, delivery) in parts.token_deliveries() {
            self.text(name);
            self.text(&delivery.token);
            self.receipt(delivery.first);
            self.plain(delivery.count);
            self.text(delivery.applied.as_deref().unwrap_or_default());
        }
        for (receipt, end) in parts.old_ends() {
            self.receipt(receipt);
            self.time(end);
        }
        self.batches(queue, parts);
        for (number, siblings) in queue.siblings().into_iter().flat_map(|all| all.iter()) {
            self.seq(number);
            self.debug(&siblings.parent);
        }
        if let Some(letters) = parts.dead_letters() {
            self.debug(&letters.stays.map(|(why, _)| why));
            self.optional_time(letters.stays.map(|(_, at)| at));
            for trace in &letters.traces {
                self.text(&trace.id);
                self.text(&trace.to);
                self.optional_text(trace.new_id.as_deref());
                self.time(trace.at);
            }
        }
    }

    fn batches(&mut self, queue: &Queue, parts: &Parts<'_>) {
        for (number, batch) in queue.batches().into_iter().flat_map(|all| all.iter()) {
            self.seq(number);
            self.text(&batch.name);
            self.plain(batch.counts.finished);
            self.plain(batch.counts.cancelled);
        }
        for released in parts.released() {
            self.seq(released.batch);
            self.time(released.at);
            self.plain(released.dies);
            self.debug(&released.counts);
            let all = released.all();
            self.len(all.len());
            all.into_iter().for_each(|seq| self.seq(seq));
        }
    }

    fn groups(&mut self, queue: &Queue, parts: &Parts<'_>, clock: u64) {
        let groups = queue.state.groups.starting_at(0);
        let named = groups.filter_map(|(ix, group)| Some((group?.name.clone(), ix)));
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        for (name, ix) in named {
            self.text(&name);
            if let Some(seen) = parts.group(ix) {
                self.group(&seen, clock);
            }
        }
    }

    fn group(&mut self, seen: &GroupSeen<'_>, clock: u64) {
        let ext = seen.group.ext();
        self.plain(seen.group.is_hidden());
        if let Some(settings) = &ext.settings {
            self.plain(settings.weight);
            self.plain(settings.concurrency);
            self.debug(&settings.rate);
            self.window(&settings.window);
        }
        self.optional_time(ext.paused_until);
        self.len(seen.held_by.len());
        for (seq, id) in &seen.held_by {
            self.seq(*seq);
            self.text(id.as_bytes());
        }
        self.position(seen.line);
        self.plain(seen.turn);
        self.optional_time(seen.wake);
        self.debug(&seen.home);
        self.circuit(seen.breaker);
        self.usage(ext.usage.as_deref(), clock);
    }

    /// Tags of usage count from that of the group that has given last.
    fn usage(&mut self, usage: Option<&Usage>, clock: u64) {
        self.plain(usage.is_some());
        if let Some(usage) = usage {
            self.plain(usage.tag.saturating_sub(clock));
            self.plain(usage.mean);
            self.plain(usage.estimated);
        }
    }

    fn window(&mut self, window: &RateWindow) {
        let given = window.given();
        self.len(given.len());
        for (at, n) in given {
            self.time(at);
            self.plain(n);
        }
    }

    fn position(&mut self, position: Option<SavedPosition>) {
        self.plain(position.is_some());
        if let Some(at) = position {
            self.plain(at.priority as u8);
            self.time(at.time);
            self.ticket(at.rank);
            self.seq(at.seq);
        }
    }

    fn circuit(&mut self, circuit: Option<&Circuit>) {
        self.plain(circuit.is_some());
        let Some(circuit) = circuit else {
            return;
        };
        self.seq(circuit.cause());
        match circuit.phase() {
            Phase::Closed(failures) => {
                self.len(failures.len());
                failures.iter().for_each(|at| self.time(*at));
            }
            Phase::Open { until, length } => {
                self.time(*until);
                self.plain(*length);
            }
            Phase::HalfOpen { length, probe } => {
                self.plain(*length);
                self.seq(probe.unwrap_or(0));
            }
        }
    }

    fn schedule(&mut self, name: &[u8], schedule: &Schedule) {
        self.text(name);
        match &schedule.rule {
            Recurrence::Every { period, start, .. } => {
                self.plain(*period);
                // Of a start that has passed only its place in the period counts.
                self.plain(*start % (*period).max(1));
            }
            rule => self.debug(rule),
        }
        self.debug(&schedule.template);
        self.debug(&(schedule.missed, schedule.overlap));
        self.optional_time(schedule.next_at);
        self.optional_time(schedule.last_at);
        self.seq(schedule.last_seq.unwrap_or(0));
        let extras = schedule.extras();
        self.optional_time(extras.limits.until);
        self.debug(&(extras.limits.times, extras.limits.jitter));
        self.optional_time(extras.paused);
    }

    fn message(&mut self, parts: &Parts<'_>, numbered: Numbered<'_>) {
        let message = numbered.message;
        self.seq(numbered.seq);
        self.plain(message.stored as u8);
        self.time(message.sent_at);
        self.time(message.due);
        self.plain(message.priority as u8);
        self.plain(message.is_due_at_point());
        let group = parts.group(message.group);
        self.optional_text(group.as_ref().map(|seen| &*seen.group.name));
        self.optional_text(parts.consumer(message.history.consumer()));
        let id = numbered.content.id.map(GivenId::id);
        self.optional_text(id.as_ref().map(Id::as_bytes));
        self.text(&numbered.content.payload.bytes());
        self.optional_time(numbered.first_sent);
        self.seq(numbered.batch.unwrap_or(0));
        self.seq(numbered.siblings.unwrap_or(0));
        if let Some(term) = numbered.term {
            self.receipt(message.receipt());
            self.receipt(term.batch);
            self.time(term.until);
        }
        self.plain(message.history.attempt().min(MOST_ATTEMPTS));
        self.time(message.first_started_at());
        self.time(message.started_at());
        self.extension(message);
    }

    /// The parts that a plain message does not have. It may be stored in a longer form than it
    /// needs.
    fn extension(&mut self, message: &Message) {
        self.choices(message.choices());
        // Of a parked message, since when it is.
        self.time(message.extension().map_or(NEVER, |ext| ext.ended_at));
        let bases = [message.due_at(), message.score_base(), message.ttl_base()];
        bases.into_iter().for_each(|at| self.time(at));
        self.plain(message.failures().min(MOST_FAILURES));
        self.plain(message.timeouts().min(MOST_FAILURES));
        self.len(message.errors().len());
        for failed in message.errors() {
            self.plain(failed.attempt.min(MOST_ATTEMPTS));
            self.time(failed.at);
            self.optional_text(failed.consumer.as_deref());
            self.text(&failed.text);
        }
        let Some(texts) = message.texts() else {
            return;
        };
        self.optional_text(texts.error.as_deref());
        self.optional_text(texts.result.as_deref());
        self.debug(&(texts.reason, texts.snoozed));
        if let Some(left) = texts.left.as_deref() {
            self.left(left);
        }
    }

    fn left(&mut self, left: &Left) {
        self.optional_text(left.note());
        if let Some(signal) = left.signal() {
            self.text(&signal.text);
            self.receipt(signal.during);
        }
        if let Some(rerun) = left.rerun() {
            self.rerun(rerun);
        }
    }

    fn rerun(&mut self, rerun: &Rerun) {
        self.text(&rerun.payload);
        self.debug(&rerun.due);
        self.optional_text(rerun.group.as_deref());
        self.plain(rerun.priority as u8);
        self.choices(Some(&rerun.choices));
        self.time(rerun.first_at);
    }

    fn choices(&mut self, choices: Option<&Choices>) {
        self.plain(choices.is_some());
        let Some(choices) = choices else {
            return;
        };
        self.optional_time(choices.expire_at());
        let mut others = choices.clone();
        others.change_rare(|rare| rare.expire_at = None);
        self.debug(&others);
    }

    /// The notes that no snapshot has, and the form in which each group keeps its messages.
    fn notes(&mut self, queue: &Queue) {
        if let Some(unsettled) = &queue.state.seldom.unsettled {
            self.len(unsettled.leaving.len());
            unsettled.leaving.iter().for_each(|seq| self.seq(*seq));
            self.debug(&unsettled.reports);
        }
        let mut watched: Vec<_> = queue.notes.watched.iter().collect();
        watched.sort_unstable();
        for id in watched {
            self.text(id);
        }
        self.plain(queue.notes.ahead.is_some());
        let groups = queue.state.groups.starting_at(0);
        let with_many = groups.filter_map(|(_, group)| {
            let group = group.filter(|group| matches!(group.backlog, Backlog::Any(_)))?;
            Some((&group.name, group.is_hidden()))
        });
        let mut with_many: Vec<_> = with_many.collect();
        with_many.sort_unstable();
        self.debug(&with_many);
    }
}
