//! DQ.EXPLAIN: the reason why a message is in its state, and the event that would change it.

use crate::groups::breaker::Circuit;
use crate::groups::group::Group;
use crate::index::order_key::OrderKey;
use crate::message::id::Id;
use crate::message::state::State;
use crate::message::Message;
use crate::queue::moves::order_key;
use crate::queue::Queue;
use crate::quote::quote;
use crate::{Millis, Seq};

use super::explanation::{explain_children, explain_parked};
pub use super::explanation::{Code, Explanation};

impl Queue {
    /// Explains the state of the message with this id at `now`. `None` if there is
    /// no such message.
    pub fn explain(&self, id: &[u8], now: Millis) -> Option<Explanation> {
        let Some(seq) = self.find(id) else {
            return self.explain_moved(id);
        };
        let view = self.view(seq, now)?;
        let message = view.message;
        let reason = view.reason().map_or("given up", |reason| reason.name());
        Some(match view.state {
            State::Delayed => Explanation::new(
                Code::DueLater,
                format!("It is due in {} ms.", message.due.saturating_sub(now)),
            )
            .until(Some(message.due)),
            State::Retry => Explanation::new(
                Code::Backoff,
                format!(
                    "A delivery of it failed ({} so far); its backoff ends in {} ms.",
                    message.failures(),
                    message.due.saturating_sub(now)
                ),
            )
            .until(Some(message.due)),
            State::Ready | State::Blocked => self.explain_due(seq, message, now),
            State::Running => Explanation::new(
                Code::Running,
                format!(
                    "It is delivered, attempt {}, and its lease ends in {} ms.",
                    view.attempt(),
                    view.lease_until().unwrap_or(now).saturating_sub(now)
                ),
            )
            .until(view.lease_until())
            .by(view.consumer),
            State::Finished => Explanation::new(Code::Finished, "It was acked."),
            State::Dead => {
                let mut why = format!(
                    "It died, reason {reason}, after {} deliveries.",
                    view.attempt()
                );
                let stays = self.why_it_stays(message);
                if let Some((why_not, _)) = stays {
                    why += " It could not go to another queue: ";
                    why += why_not.text();
                    why.push('.');
                }
                Explanation::new(Code::Dead, why).by(stays.map(|(_, key)| key))
            }
            State::Cancelled => Explanation::new(Code::Cancelled, "It was cancelled."),
            State::Held if message.is_parked() => explain_parked(message, now),
            State::Held => match message.children() {
                Some(children) if message.is_held_by_children() => explain_children(children),
                _ => self.explain_held(message),
            },
        })
    }

    /// The queue to which a message went that died and is here no longer.
    fn explain_moved(&self, id: &[u8]) -> Option<Explanation> {
        let trace = self.dead_letters()?.trace(id)?;
        let mut why = format!(
            "It died, reason {}, and went to the queue of DEADTO",
            trace.reason.name()
        );
        if let Some(new_id) = &trace.new_id {
            why += ", where its id is ";
            why += &String::from_utf8_lossy(new_id);
        }
        why.push('.');
        Some(Explanation::new(Code::Moved, why).by(Some(&trace.to)))
    }

    fn explain_held(&self, message: &Message) -> Explanation {
        let (batch, counts) = self.after_of(message).unwrap_or_default();
        let mut why = match counts.unended() {
            1 => format!(
                "It waits for a batch of which 1 message has not ended, {} of them dead.",
                counts.dead
            ),
            many => format!(
                "It waits for a batch of which {many} messages have not ended, {} of them dead.",
                counts.dead
            ),
        };
        if let Some(ring) = self.ring_of(batch) {
            let names = ring.iter().map(|name| quote(name));
            let names: Vec<String> = names.collect();
            why.pop();
            why += "; batches wait for each other: ";
            why += &names.join(", ");
            why.push('.');
        }
        Explanation::new(Code::BatchOpen, why).by(Some(batch))
    }

    fn explain_due(&self, seq: Seq, message: &Message, now: Millis) -> Explanation {
        if self.is_paused(now) {
            return Explanation::new(Code::QueuePaused, "Deliveries of the queue are paused.")
                .until(self.state.paused_until);
        }
        let of_group = match self.state.groups.get(message.group) {
            Some(group) if !group.is_hidden() => {
                self.explain_group(order_key(seq, message), group, now)
            }
            _ => self.explain_breaker(self.state.seldom.plain_breaker.as_deref(), None, now),
        };
        let of_limit = || self.explain_limit(seq, message, now);
        if let Some(explanation) = of_group.or_else(of_limit) {
            return explanation;
        }
        if let Some(rate) = self.state.settings.rate {
            if self.state.seldom.window.free(rate, now) == 0 {
                let text = format!(
                    "The queue has made its {} deliveries of the last {} ms.",
                    rate.count, rate.per
                );
                return Explanation::new(Code::RateLimited, text)
                    .until(Some(self.state.seldom.window.next_free(rate, now)));
            }
        }
        let max = self.state.settings.max_running;
        if max > 0 && self.state.leases.len() as u64 >= max {
            let text = format!("All {max} messages that may run at once are running.");
            return Explanation::new(Code::MaxRunning, text)
                .until(self.state.leases.first_end().map(|(until, _)| until));
        }
        Explanation::new(
            Code::Next,
            "It can be delivered now; only what stands before it in line goes first.",
        )
    }

    /// The limit that keeps a due message from being delivered, if any does.
    fn explain_limit(&self, seq: Seq, message: &Message, now: Millis) -> Option<Explanation> {
        let limited = message.limited()?;
        let blocking = self.blocking_limit(seq, message.group, now);
        let name = blocking.or_else(|| {
            let group = self.state.groups.get(message.group)?;
            let key = group.position(message.group)?;
            self.limit_of_those_before(limited, key, now)
        })?;
        let limits = self.limits()?;
        if let Some((name, most)) = limits.never(limited) {
            let text = format!(
                "It can never be delivered: it costs {}, and one of its limits never allows more than {most}.",
                limited.cost
            );
            return Some(Explanation::new(Code::Limit, text).by(Some(name)));
        }
        let limit = limits.find(name).and_then(|ix| limits.get(ix));
        let until = limit.and_then(|limit| limit.room_at(limited.cost));
        let text = match until {
            Some(at) if at > now => {
                "One of its limits has no room for it until earlier deliveries count no longer."
            }
            None => "One of its limits has no room for it until a message that runs ends.",
            Some(_) => "Others wait before it for one of its limits.",
        };
        let explanation = Explanation::new(Code::Limit, text).by(Some(name));
        Some(explanation.until(until.filter(|at| *at > now)))
    }

    /// The state of a breaker that keeps a due message from being delivered, if it does.
    fn explain_breaker(
        &self,
        circuit: Option<&Circuit>,
        group: Option<&[u8]>,
        now: Millis,
    ) -> Option<Explanation> {
        let circuit = circuit?;
        if let Some(until) = circuit.open_until(now) {
            let text = format!(
                "Too many deliveries failed; its breaker is open for {} ms.",
                until - now
            );
            let open = Explanation::new(Code::BreakerOpen, text);
            return Some(open.until(Some(until)).by(group));
        }
        let probe = circuit.probe()?;
        let text = "Its breaker is half-open, and the one message that it lets out is running.";
        let id = self
            .state
            .store
            .get(probe)
            .map(|message| self.id_of(probe, message));
        let lease = self.state.store.get(probe).map(Message::receipt);
        let lease = lease.and_then(|receipt| self.state.leases.find(receipt));
        let probing = Explanation::new(Code::BreakerProbing, text);
        let until = lease.map(|lease| lease.until);
        Some(probing.until(until).by(id.as_ref().map(Id::as_bytes)))
    }

    /// The reason in its group that keeps a due message from being delivered, if there is one.
    fn explain_group(&self, key: OrderKey, group: &Group, now: Millis) -> Option<Explanation> {
        if group.is_paused(now) {
            let paused = Explanation::new(Code::GroupPaused, "Deliveries of its group are paused.");
            return Some(paused.until(group.ext().paused_until).by(Some(&group.name)));
        }
        let broken = self.explain_breaker(group.breaker(), Some(&group.name), now);
        if broken.is_some() {
            return broken;
        }
        if self.is_held_by_dead(group) {
            let holder = group.holds().first()?;
            let held = Explanation::new(
                Code::BehindHead,
                "A dead message holds its group until it is redriven, cancelled or purged, \
                 or the group resumed.",
            );
            return Some(held.by(self.holder_id(holder).as_ref().map(Id::as_bytes)));
        }
        if let Some((seq, retrying)) = self.goes_before(key, group, now) {
            let first = self.state.store.get(seq)?;
            let id = self.id_of(seq, first);
            let text = match retrying {
                true => "A message of its group that failed waits for its backoff and goes first.",
                false => "Another message of its group goes first.",
            };
            let until = (first.due > now).then_some(first.due);
            return Some(
                Explanation::new(Code::BehindHead, text)
                    .until(until)
                    .by(Some(id.as_bytes())),
            );
        }
        if self.is_busy(group) {
            let lease = self.first_lease_of(group);
            let holder = lease.and_then(|(_, seq)| {
                let message = self.state.store.get(seq)?;
                match self.state.consumers.name(message.history.consumer()) {
                    Some(name) => Some(name.into()),
                    None => Some(self.id_of(seq, message).to_box()),
                }
            });
            let busy = Explanation::new(
                Code::GroupBusy,
                "As much of its group is being handled as may be at once.",
            );
            let until = lease.map(|(until, _)| until);
            return Some(busy.until(until).by(holder.as_deref()));
        }
        let (rate, window) = group.rate()?;
        if window.free(rate, now) > 0 {
            return None;
        }
        let text = format!(
            "Its group has made its {} deliveries of the last {} ms.",
            rate.count, rate.per
        );
        let limited = Explanation::new(Code::RateLimited, text);
        let until = Some(window.next_free(rate, now));
        Some(limited.until(until).by(Some(&group.name)))
    }

    /// The message of the group that goes out before this one. The flag tells
    /// whether that message still waits for its backoff.
    fn goes_before(&self, key: OrderKey, group: &Group, now: Millis) -> Option<(Seq, bool)> {
        if self.waits_behind_failed(group) {
            let failed = group.pending().failed;
            let waiting = failed
                .ahead
                .iter()
                .find(|(_, due)| *due > now)
                .map(|(failed, _)| failed.seq());
            if let Some(seq) = waiting {
                return Some((seq, true));
            }
        }
        let head = self.next_in_group(group, now)?;
        (head != key).then_some((head.seq(), false))
    }
}
