//! One operation: the work of a server for it, and the checks after it.

use super::effects::is_ack;
use super::{Cluster, KEYS};
use crate::bugs::Bug;
use crate::oracle::{check_search, Before, Step};
use crate::trace::Entry;
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::codec::verbatim;
use dq_queue::op::{self, FindAct, Sent};
use dq_queue::{Done, Millis, Moment, Op};

impl Cluster {
    pub(super) fn perform(
        &mut self,
        moment: Moment,
        op: Op<'static>,
        most: u64,
    ) -> Result<(), String> {
        self.primary.follow(self.server_moment());
        let now = self.primary.now(moment);
        let mut before = Before::of(&self.primary);
        let mut first = self.spare(now);
        let mut fired = 0;
        if self.primary.has_work(now) {
            let is_skipped = self.is_full && self.primary.has_fire(now);
            let waits = is_skipped || self.primary.has_missed(self.acting_since);
            let advanced = match waits {
                true => self.primary.advance_without_fires(now, most),
                false => self.primary.advance(now, most),
            };
            (first.steps, fired) = (advanced.steps, advanced.ticked.fired);
            first.without_fires = waits && first.steps > 0;
        }
        if self.primary.owes() {
            first = self.settle(moment, first)?;
        }
        let asked = match op {
            Op::FindDo { act, .. } => self.find(act, now)?,
            op => op,
        };
        let queue = &self.primary;
        self.oracle.inspect(&mut before, queue, &asked, now, fired);
        let has_more = self.do_unasked(&asked, moment, first)?;
        if has_more {
            first = op::Before::default();
        }
        let op = self.with_bug_in(asked.clone(), |bug| bug.does);
        let rng = &mut self.rng;
        let renewing = match self.salt_term == self.term {
            true => None,
            false => op.with_new_salt(|| rng.u64(..)),
        };
        let is_renewing = renewing.is_some();
        let op = renewing.unwrap_or(op);
        let has_effects = self.counts && is_ack(&op);
        let of_command = match first.is_nothing() && !has_more && !has_effects {
            true => verbatim::moment(&self.primary, &op, moment, self.receipt - 1),
            false => None,
        };
        let can = match &op {
            Op::AckSend(ack_send) => self.primary.can_ack_send(ack_send, moment).is_ok(),
            _ => true,
        };
        let op = if can { op } else { Op::Tick };
        let mut done = self.primary.apply(&op, of_command.unwrap_or(moment)).ok();
        let has_renewed = match &done {
            None | Some(Done::AckSent(None)) => false,
            Some(done) if done.is_duplicate() => false,
            Some(Done::Sent(sent)) => sent.first() != Some(&Sent::NoGroup),
            Some(_) => true,
        };
        if is_renewing && can && has_renewed {
            self.salt_term = self.term;
        }
        let effects = self.do_effects(&op, done.as_ref());
        let as_command = of_command.is_some() && done.is_some();
        let logged = match &done {
            None => Op::Tick,
            Some(done) if done.is_duplicate() && !as_command => Op::Duplicate,
            Some(_) => self.with_bug_in(op, |bug| bug.logs),
        };
        if let (Some(bug), Some(done)) = (&self.bug, &mut done) {
            (bug.replies)(&asked, done);
        }
        let now = self.primary.now(moment);
        let checked = self.oracle.check(&Step {
            queue: &self.primary,
            before: &before,
            op: if can { &asked } else { &Op::Tick },
            done: done.as_ref(),
            now,
            caught_up: !self.primary.has_work(now),
        });
        self.primary.take_owed(KEYS[0]);
        let recorded = match self.primary.take_effects().changed {
            true => {
                let first = self.with_bug_before(first, |bug| bug.logs_before);
                self.record(
                    &LogEntry::of(moment, first, None, &logged),
                    &effects,
                    as_command,
                )
            }
            false => Ok(()),
        };
        self.add_to_trace(Entry::Op {
            us: moment.us,
            steps: first.steps,
            op: Box::new(asked),
        });
        checked.and(recorded)
    }

    /// Records due events that owe something to other keys, none of which is here. Returns the
    /// beginning of the rest of the change.
    fn settle(&mut self, moment: Moment, first: op::Before) -> Result<op::Before, String> {
        self.primary.take_owed(KEYS[0]);
        self.primary.take_effects();
        let first = self.with_bug_before(first, |bug| bug.logs_before);
        self.record(&LogEntry::of(moment, first, None, &Op::Tick), &[], false)?;
        Ok(op::Before::default())
    }

    /// The operation after the change by the seeded bug, if there is one.
    fn with_bug_in(
        &self,
        mut op: Op<'static>,
        part: fn(&Bug) -> fn(&mut Op<'static>),
    ) -> Op<'static> {
        if let Some(bug) = &self.bug {
            part(bug)(&mut op);
        }
        op
    }

    /// Does the work of a seeded bug before an operation. Returns whether it does anything.
    fn do_unasked(
        &mut self,
        asked: &Op<'static>,
        moment: Moment,
        before: op::Before,
    ) -> Result<bool, String> {
        let Some(op) = self.bug.and_then(|bug| (bug.first)(asked)) else {
            return Ok(false);
        };
        let done = self.primary.apply(&op, moment);
        let logged = if done.is_ok() { &op } else { &Op::Tick };
        if self.primary.take_effects().changed || !before.is_nothing() {
            self.record(&LogEntry::of(moment, before, None, logged), &[], false)?;
        }
        Ok(true)
    }

    /// Searches a state, and does something with the messages that are found.
    fn find(&mut self, act: FindAct, now: Millis) -> Result<Op<'static>, String> {
        let conditions = self.ops(now).conditions(act);
        let mut search = conditions.search();
        let wanted = search.clone();
        if let Some(bug) = &self.bug {
            (bug.searches)(&mut search);
        }
        let (_, seqs) = self.primary.search(&search, now);
        check_search(&self.primary, &wanted, &seqs, now)?;
        Ok(Op::FindDo { act, seqs })
    }
}
