//! The later options of a message: RETAIN, EXPIREAT, MAXWAIT, MAXTIMEOUTS, ERRORS and IFGROUP.

use std::collections::{BTreeMap, HashMap};

use super::before::is_live;
use super::step::Step;
use dq_queue::message::state::{Reason, State};
use dq_queue::op::{FindAct, Sent};
use dq_queue::{Millis, Op, Seq};

/// The options of one message that say when it ends.
#[derive(Default)]
struct Own {
    id: Option<Box<[u8]>>,
    retain: Option<Millis>,
    expire_at: Option<Millis>,
    max_timeouts: Option<u64>,
    errors: Option<u8>,
    /// When it finished or was cancelled, if it did.
    ended_at: Option<Millis>,
}

/// The options of messages, as they were sent.
#[derive(Default)]
pub struct Options {
    own: BTreeMap<Seq, Own>,
    /// By id: the last message, and when the first of the row was sent that it ends.
    rows: HashMap<Box<[u8]>, (Seq, Millis)>,
}

impl Options {
    /// Forgets all options.
    pub fn forget(&mut self) {
        *self = Options::default();
    }

    /// Checks RETAIN, EXPIREAT, MAXWAIT, MAXTIMEOUTS, ERRORS and IFGROUP after an operation.
    pub fn check(&mut self, step: &Step<'_>) -> Result<(), String> {
        check_if_group(step)?;
        self.check_rows(step)?;
        for (send, seq, _) in step.added() {
            let own = Own {
                id: send.id.as_deref().map(Into::into),
                retain: send.choices.retain(),
                expire_at: send.choices.expire_at(),
                max_timeouts: send.choices.max_timeouts(),
                errors: send.choices.errors(),
                ended_at: None,
            };
            let ends = own.retain.is_some() || own.expire_at.is_some();
            if ends || own.max_timeouts.is_some() || own.errors.is_some() {
                self.own.insert(seq, own);
            }
        }
        for waiting in &step.before.reruns {
            // The options of the message are replaced, or it leaves no record.
            self.own.remove(&waiting.seq);
        }
        self.check_acked(step)?;
        let mut gone = Vec::new();
        for (seq, own) in &mut self.own {
            own.check_expiry(step, *seq)?;
            own.check_timeouts(step, *seq)?;
            own.check_errors(step, *seq)?;
            if own.check_record(step, *seq)? {
                gone.push(*seq);
            }
        }
        for seq in gone {
            self.own.remove(&seq);
        }
        Ok(())
    }

    /// Checks that a message which is delivered has not expired.
    pub fn check_delivery(&self, step: &Step<'_>, seq: Seq) -> Result<(), String> {
        let expire_at = self.own.get(&seq).and_then(|own| own.expire_at);
        match expire_at.filter(|at| *at <= step.now) {
            Some(at) => Err(format!("{seq} expired at {at} and was delivered")),
            None => Ok(()),
        }
    }

    /// Checks that messages which were acked have left a record if their RETAIN demands
    /// it, and only there.
    fn check_acked(&self, step: &Step<'_>) -> Result<(), String> {
        let is_ack = matches!(
            step.op,
            Op::Ack { .. }
                | Op::AckEach { .. }
                | Op::AckCost { .. }
                | Op::Fetch(_)
                | Op::AckSend(_)
        );
        if !is_ack || step.done.is_none() {
            return Ok(());
        }
        for named in &step.before.named {
            let Some(own) = self.own.get(&named.seq) else {
                continue;
            };
            let is_there = step.queue.message(named.seq).is_some();
            match own.retain {
                Some(0) if is_there => {
                    return Err(format!("{} has a record despite its RETAIN", named.seq));
                }
                Some(1..) if !is_there && own.must_stay(step) => {
                    return Err(format!("{} has no record despite its RETAIN", named.seq));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that a message which replaces another is due in the time that the first of
    /// the row allows.
    fn check_rows(&mut self, step: &Step<'_>) -> Result<(), String> {
        for (send, seq, before) in step.added() {
            let Some(id) = send.id.as_deref() else {
                continue;
            };
            let last = self.rows.remove(id);
            let first = match before.has_id {
                _ if step.before.is_unclear => continue,
                // An event before the operation may have ended it.
                Some(_) if !send.replace || !step.before.caught_up => continue,
                None => step.now,
                Some(replaced) => match last {
                    Some((seq, first)) if seq == replaced => first,
                    _ => continue,
                },
            };
            self.rows.insert(id.into(), (seq, first));
            let view = step.queue.view(seq, step.now);
            let view = view.filter(|view| is_live(view.state));
            let (Some(view), Some(wait)) = (view, send.choices.max_wait()) else {
                continue;
            };
            let due = send.due.from(step.now).min(first + wait).max(step.now);
            let seen = (view.message.due_at(), view.first_sent_at);
            if seen != (due, Some(first)) {
                return Err(format!(
                    "{seq} ends a row that began at {first}: it is to be due at {due}, not {seen:?}"
                ));
            }
        }
        Ok(())
    }
}

impl Own {
    /// Whether only its RETAIN may remove its record in this step.
    fn must_stay(&self, step: &Step<'_>) -> bool {
        let (old, new) = (&step.before.totals, step.queue.totals());
        // A NOACK delivery ends a message, too.
        let ended = (new.acked - old.acked)
            + (new.cancellations - old.cancellations)
            + (new.delivered - old.delivered);
        let most = step.queue.settings().retain_count;
        let may_be_pruned = most > 0 && step.before.records + ended > most;
        let is_replaced = step
            .sends()
            .iter()
            .any(|(send, ..)| send.id.as_deref() == self.id.as_deref());
        let may_go = may_be_pruned
            || step.is_removal()
            || matches!(step.op, Op::Alter(_))
            || self.id.is_some() && is_replaced;
        !may_go
    }

    /// Checks the record of a message. Returns whether the message is no more.
    fn check_record(&mut self, step: &Step<'_>, seq: Seq) -> Result<bool, String> {
        let end = |at: Millis| self.retain.map(|retain| at + retain);
        let Some(view) = step.queue.view(seq, step.now) else {
            let end = self.ended_at.and_then(end);
            return match end.filter(|end| *end > step.now && self.must_stay(step)) {
                Some(end) => Err(format!("the record of {seq} is gone before {end}")),
                None => Ok(true),
            };
        };
        if !matches!(view.state, State::Finished | State::Cancelled) {
            return Ok(false);
        }
        self.ended_at = view.ended_at();
        match self.ended_at.and_then(end) {
            Some(end) if end <= step.now && step.caught_up => {
                Err(format!("the record of {seq} is there after {end}"))
            }
            _ => Ok(false),
        }
    }

    /// Checks that a message dies of its last allowed timeout, and of no earlier one.
    fn check_timeouts(&self, step: &Step<'_>, seq: Seq) -> Result<(), String> {
        let view = step.queue.view(seq, step.now);
        let (Some(view), Some(most)) = (view, self.max_timeouts.filter(|most| *most > 0)) else {
            return Ok(());
        };
        let count = u64::from(view.timeouts());
        let has_died_of_it = view.reason() == Some(Reason::Timeouts);
        if is_live(view.state) && count >= most {
            return Err(format!("{seq} lives after {count} of {most} timeouts"));
        }
        if has_died_of_it && count < most {
            return Err(format!("{seq} died of {count} of {most} timeouts"));
        }
        Ok(())
    }

    /// Checks that a message keeps as many of its failed attempts as its ERRORS says. One
    /// that was redriven keeps those from before, which its failures do not count.
    fn check_errors(&mut self, step: &Step<'_>, seq: Seq) -> Result<(), String> {
        if step.is_redrive() {
            self.errors = None;
        }
        let view = step.queue.view(seq, step.now);
        let (Some(view), Some(most)) = (view, self.errors) else {
            return Ok(());
        };
        let kept = view.message.errors().len();
        let failures = view.message.failures();
        match kept as u32 == failures.min(most.into()) {
            true => Ok(()),
            false => Err(format!(
                "{seq} keeps {kept} of {failures} failed attempts, its ERRORS is {most}"
            )),
        }
    }

    /// Checks that a message dies at its EXPIREAT, and not because it has expired before
    /// that.
    fn check_expiry(&mut self, step: &Step<'_>, seq: Seq) -> Result<(), String> {
        let Some(view) = step.queue.view(seq, step.now) else {
            return Ok(());
        };
        if matches!(
            step.op,
            Op::Redrive(_)
                | Op::FindDo {
                    act: FindAct::Redrive,
                    ..
                }
        ) {
            // A message that was redriven has lost it.
            self.expire_at = view
                .message
                .choices()
                .and_then(|choices| choices.expire_at());
        }
        let Some(at) = self.expire_at else {
            return Ok(());
        };
        let is_pending = is_live(view.state) && view.state != State::Running;
        if is_pending && at <= step.now {
            return Err(format!("{seq} has not expired at {at}"));
        }
        let has_expired = view.reason() == Some(Reason::Expired);
        match view.ended_at().filter(|ended| has_expired && *ended < at) {
            Some(ended) => Err(format!("{seq} expired at {ended}, before {at}")),
            None => Ok(()),
        }
    }
}

/// Checks that IFGROUP adds a message exactly if its group has one.
fn check_if_group(step: &Step<'_>) -> Result<(), String> {
    let mut earlier: Vec<&[u8]> = Vec::new();
    // Whether an earlier message of the same command has replaced one, which may have been
    // the last of its group.
    let mut has_replaced = false;
    for (send, sent, before) in step.sends() {
        let group = send.group.as_deref().unwrap_or_default();
        match (sent, before.of_group) {
            (Sent::NoGroup, _) if !send.if_group => {
                return Err("a message without IFGROUP was not added for its group".into());
            }
            (Sent::NoGroup, Some(live)) => {
                let named = step.before.named.iter();
                let acked = named.filter(|named| named.group.as_deref() == Some(group));
                let has_live = live > acked.count() as u64;
                if has_live && !has_replaced && !step.before.is_unclear {
                    return Err("IFGROUP has not found its group".into());
                }
            }
            (Sent::Added(_), Some(0)) if !earlier.contains(&group) => {
                return Err("IFGROUP has added a message to an empty group".into());
            }
            _ => {}
        }
        if matches!(sent, Sent::Added(_)) {
            has_replaced |= send.replace && before.has_id.is_some();
            earlier.extend(send.group.as_deref());
        }
    }
    Ok(())
}
