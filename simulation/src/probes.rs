//! Checks what breakers let out: nothing while they are open, and one message at a
//! time while they are half-open.

use std::collections::BTreeMap;

use dq_queue::op::Deliveries;
use dq_queue::{Millis, Op, Queue, Receipt};

/// The name of a group; `None` for the ungrouped messages.
type Name = Option<Box<[u8]>>;

/// What breakers do before a FETCH; empty if that is of no use.
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
