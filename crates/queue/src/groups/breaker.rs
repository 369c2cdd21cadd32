//! The state of a breaker: it stops the deliveries of a group, or of the ungrouped
//! messages, after several failures in a short time.
//!
//! A closed breaker remembers failures. When enough of them lie within one window, it
//! opens for a while. Then it is half-open: one message, the probe, is let out at a
//! time. The probe's ack closes the breaker, and its failure opens it again, for twice
//! as long each time.

use std::collections::VecDeque;

use crate::collections::footprint::allocated;
use crate::settings::Breaker;
use crate::{Millis, Seq, MAX_EXACT};

/// The phase of a breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Messages are delivered. Has the times of the failures that may still count, in
    /// Unix ms and in ascending order.
    Closed(VecDeque<Millis>),
    /// Nothing is delivered.
    Open {
        /// When it becomes half-open, in Unix ms.
        until: Millis,
        /// How long the breaker is open this time, in ms.
        length: Millis,
    },
    /// One message at a time is delivered.
    HalfOpen {
        /// How long the breaker was open the last time, in ms.
        length: Millis,
        /// The message that was let out and still runs.
        probe: Option<Seq>,
    },
}

/// How many messages a breaker lets out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lets {
    /// Any number of messages: the breaker is closed.
    Any,
    /// One message, which becomes the probe. It must be leased.
    Probe,
    /// No message: the breaker is open, or its probe still runs.
    None,
}

/// The breaker of one group, or of the ungrouped messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circuit {
    phase: Phase,
    /// The message whose failure came last. It orders breakers that change in the same
    /// millisecond, since a message belongs to one of them only.
    cause: Seq,
}

impl Default for Circuit {
    fn default() -> Circuit {
        Circuit {
            phase: Phase::Closed(VecDeque::new()),
            cause: 0,
        }
    }
}

impl Circuit {
    /// A breaker as it was saved.
    pub fn restored(phase: Phase, cause: Seq) -> Circuit {
        Circuit { phase, cause }
    }

    /// Memory in bytes of a breaker that has an allocation of its own. Cost: O(1).
    pub fn memory_bytes(&self) -> usize {
        let failures = match &self.phase {
            Phase::Closed(failures) => allocated(failures.capacity() * size_of::<Millis>()),
            _ => 0,
        };
        allocated(size_of::<Circuit>()) + failures
    }

    /// The phase as far as [`Circuit::pass_time`] has brought it.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The message whose failure came last.
    pub fn cause(&self) -> Seq {
        self.cause
    }

    /// Whether it is closed and remembers no failure, so that it need not be kept.
    pub fn is_idle(&self) -> bool {
        matches!(&self.phase, Phase::Closed(failures) if failures.is_empty())
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed(_))
    }

    /// When it becomes half-open (Unix ms), if it is open at `now`.
    pub fn open_until(&self, now: Millis) -> Option<Millis> {
        match self.phase {
            Phase::Open { until, .. } if until > now => Some(until),
            _ => None,
        }
    }

    /// The phase at `now`, as a word.
    pub fn state(&self, now: Millis) -> &'static str {
        match self.phase {
            Phase::Closed(_) => "closed",
            Phase::Open { until, .. } if until > now => "open",
            Phase::Open { .. } | Phase::HalfOpen { .. } => "half-open",
        }
    }

    /// The message that was let out while it is half-open, if one runs.
    pub fn probe(&self) -> Option<Seq> {
        match self.phase {
            Phase::HalfOpen { probe, .. } => probe,
            _ => None,
        }
    }

    /// How many messages it lets out at `now`.
    pub fn lets(&self, now: Millis) -> Lets {
        match self.phase {
            Phase::Closed(_) => Lets::Any,
            Phase::Open { until, .. } if until > now => Lets::None,
            Phase::HalfOpen { probe: Some(_), .. } => Lets::None,
            Phase::Open { .. } | Phase::HalfOpen { .. } => Lets::Probe,
        }
    }

    /// When the passing of time changes it next (Unix ms): it becomes half-open, or its
    /// failures no longer count.
    pub fn next_change(&self, rule: &Breaker) -> Option<Millis> {
        match &self.phase {
            Phase::Closed(failures) => Some(failures.back()?.saturating_add(rule.per)),
            Phase::Open { until, .. } => Some(*until),
            Phase::HalfOpen { .. } => None,
        }
    }

    /// Makes it half-open, or forgets its failures, if the time for that has come by
    /// `now`. Returns whether it became half-open.
    pub fn pass_time(&mut self, rule: &Breaker, now: Millis) -> bool {
        if self.next_change(rule).is_none_or(|at| at > now) {
            return false;
        }
        match &mut self.phase {
            Phase::Closed(failures) => {
                failures.clear();
                false
            }
            Phase::Open { length, .. } => {
                self.phase = Phase::HalfOpen {
                    length: *length,
                    probe: None,
                };
                true
            }
            Phase::HalfOpen { .. } => false,
        }
    }

    /// Counts the failure of a message at `now`. `was_probe` is what
    /// [`Circuit::withdraw`] returned for it. Returns whether this opens the breaker.
    /// O(1) amortised.
    pub fn fail(&mut self, rule: &Breaker, seq: Seq, was_probe: bool, now: Millis) -> bool {
        let length = match &mut self.phase {
            Phase::Closed(failures) => {
                // Events that are processed late must not bring the times out of order.
                let now = now.max(failures.back().copied().unwrap_or(0));
                let is_over = |at: &Millis| now - at >= rule.per;
                while failures.front().is_some_and(is_over) {
                    failures.pop_front();
                }
                failures.push_back(now);
                self.cause = seq;
                if (failures.len() as u64) < rule.failures {
                    return false;
                }
                rule.open
            }
            Phase::HalfOpen { length, .. } if was_probe => length.saturating_mul(2).min(rule.max),
            // These failures are of messages that were running before the breaker opened.
            Phase::Open { .. } | Phase::HalfOpen { .. } => return false,
        };
        self.cause = seq;
        self.phase = Phase::Open {
            until: now.saturating_add(length).min(MAX_EXACT),
            length,
        };
        true
    }

    /// Makes the message that was just delivered the probe, if the breaker is
    /// half-open.
    pub fn let_out(&mut self, seq: Seq) {
        if let Phase::HalfOpen { probe, .. } = &mut self.phase {
            *probe = Some(seq);
        }
    }

    /// Notes that a message no longer runs. Returns whether it was the probe; if so,
    /// another one may be let out.
    pub fn withdraw(&mut self, seq: Seq) -> bool {
        match &mut self.phase {
            Phase::HalfOpen { probe, .. } if *probe == Some(seq) => {
                *probe = None;
                true
            }
            _ => false,
        }
    }

    /// Notes that no message runs any longer.
    pub fn withdraw_any(&mut self) {
        if let Phase::HalfOpen { probe, .. } = &mut self.phase {
            *probe = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: Breaker = Breaker {
        failures: 3,
        per: 100,
        open: 50,
        max: 150,
    };

    fn open(until: Millis, length: Millis) -> Phase {
        Phase::Open { until, length }
    }

    fn half_open(length: Millis, probe: Option<Seq>) -> Phase {
        Phase::HalfOpen { length, probe }
    }

    /// A breaker that has opened at 10 and is half-open since 60.
    fn opened() -> Circuit {
        let mut circuit = Circuit::default();
        for seq in 1..=3 {
            assert_eq!(circuit.fail(&RULE, seq, false, 10), seq == 3);
        }
        assert!(circuit.pass_time(&RULE, 60));
        circuit
    }

    #[test]
    fn failures_open_it_if_the_first_and_the_last_lie_less_than_the_window_apart() {
        for (last, opens) in [(99, true), (100, false), (101, false)] {
            let mut circuit = Circuit::default();
            assert!(!circuit.fail(&RULE, 1, false, 0));
            assert!(!circuit.fail(&RULE, 2, false, 50));
            assert_eq!(circuit.fail(&RULE, 3, false, last), opens, "at {last}");
            assert_eq!(circuit.is_closed(), !opens);
            assert_eq!(circuit.cause(), 3);
        }
    }

    #[test]
    fn it_is_half_open_from_the_millisecond_in_which_its_time_ends() {
        let mut circuit = Circuit::default();
        let once = Breaker {
            failures: 1,
            ..RULE
        };
        assert!(circuit.fail(&once, 1, false, 10));
        assert_eq!(circuit.next_change(&once), Some(60));
        assert_eq!(
            (circuit.open_until(59), circuit.lets(59)),
            (Some(60), Lets::None)
        );
        assert_eq!(
            (circuit.open_until(60), circuit.lets(60)),
            (None, Lets::Probe)
        );
        assert!(!circuit.pass_time(&once, 59));
        assert!(circuit.pass_time(&once, 60));
        assert!(!circuit.pass_time(&once, 60));
        assert_eq!(*circuit.phase(), half_open(50, None));
        assert_eq!(circuit.next_change(&once), None);
    }

    #[test]
    fn the_failure_of_a_probe_doubles_the_time_up_to_the_limit() {
        let mut circuit = opened();
        for (now, length) in [(70, 100), (300, 150), (600, 150)] {
            circuit.pass_time(&RULE, now);
            circuit.let_out(9);
            assert_eq!(circuit.lets(now), Lets::None);
            assert!(circuit.withdraw(9));
            assert!(circuit.fail(&RULE, 9, true, now));
            assert_eq!(*circuit.phase(), open(now + length, length));
        }
    }

    #[test]
    fn a_message_that_is_not_the_probe_decides_nothing() {
        let mut circuit = opened();
        circuit.let_out(9);
        assert!(!circuit.withdraw(8));
        assert!(!circuit.fail(&RULE, 8, false, 70));
        assert_eq!(*circuit.phase(), half_open(50, Some(9)));
        assert!(circuit.withdraw(9));
        assert_eq!(circuit.lets(70), Lets::Probe);
        let mut circuit = Circuit::restored(open(200, 50), 1);
        circuit.let_out(9);
        assert!(!circuit.fail(&RULE, 8, false, 70));
        assert_eq!(*circuit.phase(), open(200, 50));
    }

    #[test]
    fn failures_are_forgotten_when_the_last_one_no_longer_counts() {
        let mut circuit = Circuit::default();
        circuit.fail(&RULE, 1, false, 0);
        circuit.fail(&RULE, 2, false, 50);
        assert_eq!(circuit.next_change(&RULE), Some(150));
        assert!(!circuit.pass_time(&RULE, 149));
        assert!(!circuit.is_idle());
        assert!(!circuit.pass_time(&RULE, 150));
        assert!(circuit.is_idle());
    }

    #[test]
    fn no_end_lies_beyond_the_largest_time() {
        let mut circuit = Circuit::default();
        let rule = Breaker {
            failures: 1,
            per: 1,
            open: MAX_EXACT,
            max: MAX_EXACT,
        };
        assert!(circuit.fail(&rule, 1, false, 10));
        assert_eq!(*circuit.phase(), open(MAX_EXACT, MAX_EXACT));
    }

    /// The obvious model of a closed breaker: all failures, each with its time.
    fn opens_at(rule: &Breaker, failures: &[Millis]) -> Option<usize> {
        let n = rule.failures as usize;
        (n..=failures.len()).find(|end| failures[end - 1] - failures[end - n] < rule.per)
    }

    proptest! {
        #[test]
        fn the_window_is_exact(
            failures in 1..6u64,
            per in 1..20u64,
            waits in prop::collection::vec(0..8u64, 1..60),
            late in 0..3u64,
        ) {
            let rule = Breaker { failures, per, open: 10, max: 10 };
            let mut circuit = Circuit::default();
            let (mut now, mut times, mut opened) = (0, Vec::new(), None);
            for (at, wait) in waits.iter().enumerate() {
                now += wait;
                times.push(now);
                // It must not matter how late the passing of time is processed.
                if (at as u64).is_multiple_of(late) {
                    circuit.pass_time(&rule, now);
                }
                if circuit.fail(&rule, at as Seq, false, now) {
                    opened = Some(at + 1);
                    break;
                }
                let Phase::Closed(kept) = circuit.phase() else {
                    unreachable!("it has not opened");
                };
                prop_assert!(kept.len() < failures as usize);
            }
            prop_assert_eq!(opened, opens_at(&rule, &times));
        }
    }
}
