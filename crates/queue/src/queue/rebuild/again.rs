//! A queue that is built anew from its own parts: with its clock set back, or for
//! tests, which compare both.

use std::collections::{BTreeMap, BTreeSet};

use super::shift::Shift;
use super::{Builder, GroupPart, GroupSeen, LimitPart, Names, Parts, ReleasedPart};
use crate::limits::Invalid;
use crate::message::state::StoredState;
use crate::queue::Queue;
use crate::{GroupIx, Seq};

/// The state of the parts that were added to the builder.
struct Rebuild<'a> {
    parts: Parts<'a>,
    shift: Option<Shift>,
    builder: Builder,
    /// The groups with their numbers.
    groups: BTreeMap<GroupIx, u64>,
    consumers: BTreeMap<&'a [u8], u64>,
    /// The named batches with their numbers.
    named: BTreeMap<Seq, u64>,
    /// The sets of siblings with their numbers.
    siblings: BTreeMap<Seq, u64>,
    salt: u64,
}

/// Builds a queue from the parts of another one, with its clock set back if there is a
/// shift. The groups `left_out` are not in the ready line. O(n log n).
///
/// Errors: the parts of the queue contradict each other.
pub(super) fn rebuild(
    queue: &Queue,
    shift: Option<Shift>,
    left_out: &BTreeSet<GroupIx>,
) -> Result<Queue, Invalid> {
    let parts = queue.parts();
    let whole = match shift {
        Some(shift) => shift.whole(parts.whole()),
        None => parts.whole(),
    };
    let mut rebuild = Rebuild {
        salt: parts.salt(),
        builder: Builder::new(whole)?,
        parts,
        shift,
        groups: BTreeMap::new(),
        consumers: BTreeMap::new(),
        named: BTreeMap::new(),
        siblings: BTreeMap::new(),
    };
    for (ix, _) in queue.state.groups.starting_at(0) {
        rebuild.group(ix, left_out.contains(&ix))?;
    }
    rebuild.what_exists_once()?;
    rebuild.messages(queue)?;
    if let Some(detached) = rebuild.parts.detached() {
        rebuild.builder.detached(detached.clone())?;
    }
    let released: Vec<_> = rebuild.parts.released().map(ReleasedPart::of).collect();
    for mut part in released {
        part.at = rebuild.time(part.at);
        rebuild.builder.released(part)?;
    }
    rebuild.builder.finish()
}

impl<'a> Rebuild<'a> {
    fn time(&self, at: u64) -> u64 {
        self.shift.map_or(at, |shift| shift.time(at))
    }

    fn group(&mut self, ix: GroupIx, is_left_out: bool) -> Result<(), Invalid> {
        let Some(GroupSeen {
            group,
            held_by,
            line,
            turn,
            wake,
            breaker,
            home,
        }) = self.parts.group(ix)
        else {
            return Ok(());
        };
        let number = self.groups.len() as u64;
        self.groups.insert(ix, number);
        let mut part = GroupPart {
            settings: group.ext().settings.clone(),
            paused_until: group.ext().paused_until,
            held_by: held_by
                .iter()
                .map(|(seq, id)| (*seq, id.as_bytes().into()))
                .collect(),
            line,
            turn,
            wake,
            breaker: None,
            is_hidden: group.is_hidden(),
            home: home.map(|(limit, cost)| (limit.into(), cost)),
        };
        if let Some(shift) = self.shift {
            if let Some(settings) = &mut part.settings {
                settings.window = shift.window(&settings.window);
            }
            part.paused_until = part.paused_until.map(|at| shift.time(at));
            part.line = part.line.map(|at| shift.position(at));
            part.wake = part.wake.map(|at| shift.time(at));
        }
        if is_left_out {
            part.line = None;
            part.home = None;
            part.turn = 0;
        }
        self.builder.group(&group.name, part)?;
        if let Some(usage) = &group.ext().usage {
            self.builder.usage(Some(number), **usage, None)?;
        }
        match (breaker, self.shift) {
            (None, _) => Ok(()),
            (Some(circuit), None) => self.builder.breaker(Some(number), circuit.clone()),
            (Some(circuit), Some(shift)) => {
                self.builder.breaker(Some(number), shift.circuit(circuit))
            }
        }
    }

    fn what_exists_once(&mut self) -> Result<(), Invalid> {
        for (number, dictionary, is_current) in self.parts.dictionaries() {
            self.builder
                .dictionary(number, dictionary.clone(), is_current)?;
        }
        if let Some(circuit) = self.parts.plain_breaker() {
            let circuit = match self.shift {
                Some(shift) => shift.circuit(circuit),
                None => circuit.clone(),
            };
            self.builder.breaker(None, circuit)?;
        }
        if let Some(fair) = self.parts.fair() {
            let common = Some((fair.clock, fair.mean));
            self.builder.usage(None, fair.plain, common)?;
        }
        for limit in self.parts.limits() {
            let windows = limit.windows().map(|(_, window)| match self.shift {
                Some(shift) => shift.window(window),
                None => window.clone(),
            });
            let part = LimitPart {
                rule: limit.own.as_deref().cloned(),
                windows: windows.collect(),
                is_open: limit.open.is_some(),
            };
            self.builder.limit(&limit.name, part)?;
        }
        let known: Vec<_> = self.parts.consumers().collect();
        for (name, (last_seen, counts)) in known {
            self.consumers.insert(name, self.consumers.len() as u64);
            let known = (self.time(last_seen), counts);
            self.builder.consumer(name, Some(known))?;
        }
        for (name, delivery) in self.parts.token_deliveries() {
            self.builder.token(name, delivery.clone())?;
        }
        for (receipt, end) in self.parts.old_ends() {
            self.builder.old_end(receipt, self.time(end))?;
        }
        if let Some(letters) = self.parts.dead_letters() {
            let mut letters = letters.clone();
            for trace in &mut letters.traces {
                trace.at = self.time(trace.at);
            }
            letters.stays = letters.stays.map(|(stays, at)| (stays, self.time(at)));
            self.builder.dead_letters(letters)?;
        }
        for report in self.parts.reports() {
            self.builder.report(report.clone());
        }
        for (name, schedule) in self.parts.schedules() {
            let schedule = match self.shift {
                Some(shift) => shift.schedule(schedule),
                None => schedule.clone(),
            };
            self.builder.schedule(name, schedule)?;
        }
        let remembered: Vec<_> = self.parts.dedup().collect();
        for (id, ended_at) in remembered {
            self.builder.dedup(id, self.time(ended_at))?;
        }
        for (name, id, until) in self.parts.dedup_ids() {
            self.builder.dedup_id(name, id, self.time(until))?;
        }
        for batch in self.parts.batches() {
            self.builder.batch(batch.first, batch.count())?;
        }
        Ok(())
    }

    fn messages(&mut self, queue: &'a Queue) -> Result<(), Invalid> {
        for (seq, message) in queue.state.store.iter() {
            let content = queue.state.store.content(message);
            let mut term = queue.term_of(message);
            let mut first_sent = queue.state.store.first_sent(seq);
            let batch = queue.batches();
            let batch = batch.and_then(|batches| batches.members.batch_of(seq));
            let set = queue.siblings().and_then(|all| all.number_of(seq));
            if content.id.is_none() {
                let salt = self.parts.salt_of(seq);
                if std::mem::replace(&mut self.salt, salt) != salt {
                    self.builder.salt(salt);
                }
            }
            if let Some(shift) = self.shift {
                if let Some(term) = &mut term {
                    term.until = shift.time(term.until);
                }
                // The time of sending of held messages does not change with the clock.
                let is_held = message.stored == StoredState::Held && !message.is_parked();
                if is_held && message.has_given_id() {
                    first_sent = first_sent.or(Some(message.sent_at));
                }
                first_sent = first_sent.map(|at| shift.time(at));
            }
            let names = Names {
                group: self.groups.get(&message.group).copied(),
                consumer: self.consumer(message.history.consumer())?,
                batch: batch.map(|batch| self.named_batch(batch)).transpose()?,
                siblings: set.map(|set| self.siblings(set)).transpose()?,
            };
            let message = match self.shift {
                Some(shift) => shift.message(message),
                None => message.clone(),
            };
            self.builder
                .message(seq, message, content, names, term, first_sent)?;
        }
        Ok(())
    }

    /// The number of a consumer, which is added if it is not known yet.
    fn consumer(&mut self, ix: crate::ConsumerIx) -> Result<Option<u64>, Invalid> {
        let Some(name) = self.parts.consumer(ix) else {
            return Ok(None);
        };
        let next = self.consumers.len() as u64;
        let number = *self.consumers.entry(name).or_insert(next);
        if number == next {
            self.builder.consumer(name, None)?;
        }
        Ok(Some(number))
    }

    /// The number of a set of siblings, which is added if it is not known yet.
    fn siblings(&mut self, set: Seq) -> Result<u64, Invalid> {
        if let Some(number) = self.siblings.get(&set) {
            return Ok(*number);
        }
        let siblings = self.parts.siblings(set);
        let siblings = siblings.ok_or(Invalid("a set of siblings is missing"))?;
        self.builder.siblings(set, &siblings.parent)?;
        let number = self.siblings.len() as u64;
        self.siblings.insert(set, number);
        Ok(number)
    }

    /// The number of a named batch, which is added if it is not known yet.
    fn named_batch(&mut self, batch: Seq) -> Result<u64, Invalid> {
        if let Some(number) = self.named.get(&batch) {
            return Ok(*number);
        }
        let named = self.parts.named_batch(batch);
        let named = named.ok_or(Invalid("a batch is missing"))?;
        let counts = named.counts;
        self.builder
            .named_batch(&named.name, batch, counts.finished, counts.cancelled)?;
        let number = self.named.len() as u64;
        self.named.insert(batch, number);
        Ok(number)
    }
}
