//! Model of BREAKER.

use super::Model;
use crate::message::state::StoredState;
use crate::{Millis, Seq};

/// The breaker of a group, or of the ungrouped messages (`who` is `None`).
#[derive(Debug, Clone)]
pub struct Breaker {
    pub who: Option<usize>,
    /// Times of the failures since it was last closed.
    pub failures: Vec<Millis>,
    /// When it becomes half-open, if it is open.
    pub until: Option<Millis>,
    /// How long the breaker was open the last time.
    pub length: Millis,
    pub half_open: bool,
    /// The message that was let out while it is half-open.
    pub probe: Option<Seq>,
}

impl Breaker {
    fn closed(who: Option<usize>) -> Breaker {
        Breaker {
            who,
            failures: Vec::new(),
            until: None,
            length: 0,
            half_open: false,
            probe: None,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.until.is_none() && !self.half_open
    }
}

impl Model {
    pub fn breaker(&self, who: Option<usize>) -> Breaker {
        let known = self.breakers.iter().find(|b| b.who == who);
        known.cloned().unwrap_or(Breaker::closed(who))
    }

    fn breaker_mut(&mut self, who: Option<usize>) -> &mut Breaker {
        let known = self.breakers.iter().position(|b| b.who == who);
        let at = known.unwrap_or_else(|| {
            self.breakers.push(Breaker::closed(who));
            self.breakers.len() - 1
        });
        &mut self.breakers[at]
    }

    /// Whether the breaker lets out a message for a FETCH with or without NOACK.
    pub fn lets_out(&self, who: Option<usize>, no_ack: bool) -> bool {
        let breaker = self.breaker(who);
        breaker.is_closed() || breaker.half_open && breaker.probe.is_none() && !no_ack
    }

    /// Counts a failure. `was_probe` tells whether the message was the probe.
    pub(super) fn count_failure(&mut self, seq: Seq, was_probe: bool) {
        let (now, who) = (self.now, self.msg(seq).group);
        let Some(rule) = self.settings.breaker else {
            return;
        };
        let breaker = self.breaker_mut(who);
        let length = if breaker.is_closed() {
            breaker.failures.retain(|at| now - at < rule.per);
            breaker.failures.push(now);
            if (breaker.failures.len() as u64) < rule.failures {
                return;
            }
            rule.open
        } else if was_probe {
            (breaker.length * 2).min(rule.max)
        } else {
            return;
        };
        breaker.failures.clear();
        breaker.half_open = false;
        breaker.length = length;
        breaker.until = Some(now + length);
    }

    /// Makes the message that was just delivered the probe, if its breaker is half-open.
    pub(super) fn let_out(&mut self, seq: Seq) {
        let who = self.msg(seq).group;
        let breaker = self.breaker_mut(who);
        if breaker.half_open {
            breaker.probe = Some(seq);
        }
    }

    /// Notes that a message no longer runs. Returns whether it was the probe.
    pub(super) fn withdraw(&mut self, seq: Seq) -> bool {
        let probe = self.breakers.iter_mut().find(|b| b.probe == Some(seq));
        probe.is_some_and(|breaker| breaker.probe.take().is_some())
    }

    /// Notes that purged messages no longer run.
    pub(super) fn withdraw_purged(&mut self) {
        let runs = |seq: Seq| {
            let mut running = self
                .msgs
                .iter()
                .filter(|m| m.stored == StoredState::Running);
            running.any(|m| m.seq == seq)
        };
        let gone = |b: &Breaker| b.probe.is_some_and(|seq| !runs(seq));
        let gone: Vec<bool> = self.breakers.iter().map(gone).collect();
        for (breaker, gone) in self.breakers.iter_mut().zip(gone) {
            if gone {
                breaker.probe = None;
            }
        }
    }

    /// Closes a breaker that is open or half-open.
    pub(super) fn close_breaker(&mut self, who: Option<usize>) {
        if !self.breaker(who).is_closed() {
            *self.breaker_mut(who) = Breaker::closed(who);
        }
    }

    pub(super) fn end_open_time(&mut self, who: Option<usize>) {
        let breaker = self.breaker_mut(who);
        breaker.until = None;
        breaker.half_open = true;
    }

    pub(super) fn forget_failures(&mut self, who: Option<usize>) {
        self.breaker_mut(who).failures.clear();
    }

    /// The number of breakers that are open.
    pub fn breakers_open(&self) -> u64 {
        self.breakers.iter().filter(|b| b.until.is_some()).count() as u64
    }
}
