//! Breakers: they open after enough failures and for the right time. They let out nothing
//! while they are open, and one message at a time while they are half-open.

use std::collections::{BTreeMap, VecDeque};

use super::before::Named;
use super::step::Step;
use dq_queue::op::{Deliveries, NackKind};
use dq_queue::settings::{Breaker, Changes};
use dq_queue::{Millis, Op, Queue, Receipt, Seq};

/// The name of a group; `None` for the ungrouped messages.
type Name = Option<Box<[u8]>>;

/// The states of breakers before a FETCH; empty if they are of no use.
#[derive(Default)]
pub struct Breakers(BTreeMap<Name, &'static str>);

impl Breakers {
    /// The breakers that are not closed, right before an operation. Empty unless it
    /// is a FETCH that does nothing but deliver.
    pub fn before(queue: &Queue, op: &Op<'_>, now: Millis) -> Breakers {
        let Op::Fetch(fetch) = op else {
            return Breakers::default();
        };
        if queue.settings().breaker.is_none() || !fetch.acks.is_empty() || queue.has_work(now) {
            return Breakers::default();
        }
        let (_, groups) = queue.groups(0, usize::MAX, None, now);
        let names = groups.iter().map(|view| Some(view.group.name[..].into()));
        let states = names.chain([None]).map(|name: Name| {
            let state = queue.breaker_state(name.as_deref(), now);
            (name, state)
        });
        Breakers(states.filter(|(_, state)| *state != "closed").collect())
    }
}

/// The messages that half-open breakers have let out.
#[derive(Default)]
pub struct Probes(BTreeMap<Name, Receipt>);

impl Probes {
    /// Forgets all probes.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Checks the deliveries of a FETCH.
    ///
    /// # Errors
    /// A sentence that names the message that should not have been delivered.
    pub fn check(
        &mut self,
        queue: &Queue,
        before: &Breakers,
        given: &Deliveries,
        now: Millis,
    ) -> Result<(), String> {
        for one in given {
            let view = queue.view_delivered(one, now);
            let name: Name = view.and_then(|view| view.group).map(Into::into);
            let Some(state) = before.0.get(&name) else {
                continue;
            };
            if *state == "open" {
                return Err(format!("{} was delivered by an open breaker", one.seq));
            }
            if one.receipt == 0 {
                return Err(format!("{} was let out without a lease", one.seq));
            }
            if let Some(probe) = self.0.insert(name, one.receipt) {
                if queue.is_running(probe) {
                    return Err(format!("{} was let out beside a probe", one.seq));
                }
            }
        }
        Ok(())
    }

    /// Forgets the probes of breakers that are no longer half-open. It is called after
    /// every operation.
    pub fn update(&mut self, queue: &Queue, now: Millis) {
        self.0
            .retain(|name, _| queue.breaker_state(name.as_deref(), now) == "half-open");
    }
}

/// The failures of one group.
#[derive(Default)]
struct Known {
    /// The times of nacks of its deliveries while its breaker was closed, if they are
    /// certain to count.
    nacked: VecDeque<Millis>,
    /// The earliest end of the open time of its breaker, and the length of the last open
    /// time, if it is known: a probe whose lease ends opens it anew.
    open: Option<(Millis, Option<Millis>)>,
}

/// When breakers open, and for how long.
#[derive(Default)]
pub struct Failures {
    rule: Option<Breaker>,
    known: BTreeMap<Name, Known>,
    /// All failures that may still count: the times at which they were processed, and the
    /// group if it is known.
    all: VecDeque<(Millis, Option<Name>)>,
    /// No failure before this time is known.
    blind_before: Millis,
}

impl Failures {
    /// Forgets all failures, as of a queue that has just been loaded at `now`.
    pub fn forget(&mut self, rule: Option<Breaker>, now: Millis) {
        *self = Failures {
            rule,
            blind_before: now,
            ..Failures::default()
        };
    }

    /// Checks that breakers opened at the right times, and that they stay open for the
    /// right time.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        if let Op::Alter(Changes {
            breaker: Some(breaker),
            ..
        }) = step.op
        {
            self.forget(*breaker, step.now);
        }
        if let Op::Resume { group } = step.op {
            self.known.remove(&group.as_deref().map(Into::into));
        }
        let Some(rule) = self.rule else {
            return Ok(());
        };
        self.count(step, &rule);
        let is_failure = matches!(
            step.op,
            Op::Nack {
                kind: NackKind::Backoff | NackKind::Delay(_),
                ..
            }
        );
        for named in step
            .before
            .named
            .iter()
            .filter(|_| is_failure && step.done.is_some())
        {
            let known = self.known.entry(named.group.clone()).or_default();
            known.nacked.push_back(step.now);
            self.check_opening(step, &rule, named)?;
        }
        let (queue, now) = (step.queue, step.now);
        for (name, known) in &mut self.known {
            let state = queue.breaker_state(name.as_deref(), now);
            if state != "closed" {
                known.nacked.clear();
                continue;
            }
            known.open = None;
            while known.nacked.front().is_some_and(|at| now - at >= rule.per) {
                known.nacked.pop_front();
            }
            if known.nacked.len() as u64 >= rule.failures {
                let failed = known.nacked.len();
                return Err(format!("a breaker is closed after {failed} failures"));
            }
        }
        Ok(())
    }

    /// Remembers the failures of this step.
    fn count(&mut self, step: &Step<'_>, rule: &Breaker) {
        let (old, new) = (&step.before.totals, step.queue.totals());
        let failed = (new.nacked - old.nacked) + (new.timeouts - old.timeouts);
        let nacked = matches!(step.op, Op::Nack { .. });
        let names = step.before.named.iter().filter(|_| nacked);
        let names: Vec<_> = names.map(|named| Some(named.group.clone())).collect();
        if failed > names.len() as u64 {
            for known in self.known.values_mut() {
                known.open = known.open.map(|(until, _)| (until, None));
            }
        }
        let names = names.into_iter();
        let names = names.chain(std::iter::repeat(None)).take(failed as usize);
        self.all.extend(names.map(|name| (step.now, name)));
        let is_over = |(at, _): &(Millis, Option<Name>)| *at + rule.per < step.now;
        while self.all.front().is_some_and(is_over) {
            self.all.pop_front();
        }
    }

    /// Checks whether a nack has opened a breaker rightly, and for how long.
    fn check_opening(
        &mut self,
        step: &Step<'_>,
        rule: &Breaker,
        named: &Named,
    ) -> Result<(), String> {
        let (_, groups) = step.queue.groups(0, usize::MAX, None, step.now);
        let group = groups
            .iter()
            .find(|view| Some(&view.group.name[..]) == named.group.as_deref());
        let Some(until) = group.and_then(|view| view.open_until) else {
            return Ok(());
        };
        let known = self.known.entry(named.group.clone()).or_default();
        if known.open.is_some_and(|(end, _)| end == until) {
            return Ok(());
        }
        let last = known.open.and_then(|(_, length)| length);
        let length = match (named.breaker, last) {
            // The breaker may have opened by an event before the nack.
            _ if !step.before.caught_up => return Ok(()),
            ("closed", _) => rule.open,
            ("half-open", Some(last)) => (2 * last).min(rule.max),
            _ => return Ok(()),
        };
        if until != step.now + length {
            let from = step.now;
            return Err(format!(
                "a breaker is open from {from} until {until}, not for {length}"
            ));
        }
        known.open = Some((until, Some(length)));
        let may_count = self
            .all
            .iter()
            .filter(|(_, name)| name.as_ref().is_none_or(|name| *name == named.group));
        let is_blind = self.blind_before + rule.per >= step.now;
        if named.breaker == "closed" && !is_blind && (may_count.count() as u64) < rule.failures {
            return Err("a breaker was opened by too few failures".into());
        }
        Ok(())
    }

    /// Checks that a message may be delivered now.
    pub fn check_delivery(
        &self,
        now: Millis,
        seq: Seq,
        group: Option<&[u8]>,
    ) -> Result<(), String> {
        let name: Name = group.map(Into::into);
        let open = self.known.get(&name).and_then(|known| known.open);
        match open.filter(|(until, _)| *until > now) {
            Some((until, _)) => Err(format!(
                "{seq} was delivered while its breaker is open until {until}"
            )),
            None => Ok(()),
        }
    }
}
