//! Clients that wait: in FETCH with BLOCK for a message, and in WAIT for the end of one.

use super::begin::Begun;
use super::deliver::Outbox;
use super::{Step, World};
use dq_queue::args::{self, Words};
use dq_queue::op::Ending;
use dq_queue::queue::MAX_LEAD;
use dq_queue::{Done, Op};

/// A client that waits in FETCH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its command, without DQ.FETCH.
    pub text: String,
}

impl World {
    /// Serves the clients that wait, as the server does before it sleeps.
    pub(super) fn serve(&mut self, step: &mut Step) {
        let mut at = 0;
        while let Some(client) = self.waiting.get(at) {
            let text = client.text.clone();
            match self.try_serve(&text, step) {
                true => drop(self.waiting.remove(at)),
                false => at += 1,
            }
        }
    }

    fn try_serve(&mut self, text: &str, step: &mut Step) -> bool {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        let Some((key, options)) = words.split_first() else {
            return true;
        };
        let Ok(request) = args::fetch::fetch(Words::new(options)) else {
            return true;
        };
        let (server, spares) = (self.moment(), self.spares);
        let Some(place) = self.places.get_mut(*key) else {
            return false;
        };
        let queue = &mut place.queue;
        if queue.lead(server) > MAX_LEAD || spares && queue.has_work(queue.time(server)) {
            return false;
        }
        let moment = queue.follow(server);
        let now = queue.now(moment);
        if !queue.can_serve(&request.fetch, now) || queue.has_overdue_expiry(now) {
            return false;
        }
        let mut fetch = request.fetch;
        fetch.acks.clear();
        fetch.results.clear();
        let mut outbox = Outbox::default();
        let op = Op::Fetch(std::borrow::Cow::Owned(fetch));
        let done = self.apply(key, Begun::at(moment), &op, &mut outbox, step);
        let given = match &done {
            Ok(Done::Fetched(given)) => given.iter().map(|one| one.receipt).collect(),
            _ => Vec::new(),
        };
        self.bind(key, request.bind, &given);
        self.deliver(key, outbox, step);
        !given.is_empty()
    }

    /// Binds leases to their connection.
    pub(super) fn bind(&mut self, key: &[u8], bind: Option<u64>, receipts: &[u64]) {
        if let (Some(grace), Some(place)) = (bind, self.places.get_mut(key)) {
            let bound = receipts.iter().map(|receipt| (*receipt, grace));
            place.bound.extend(bound);
        }
    }

    /// Answers the clients that wait for ends.
    pub(super) fn ended(&mut self, key: &[u8], endings: Vec<Ending>, step: &mut Step) {
        for ending in endings {
            let before = self.watching.len();
            let is_it = |(of, id): &(Box<[u8]>, Box<[u8]>)| **of == *key && *id == ending.id;
            self.watching.retain(|watch| !is_it(watch));
            if self.watching.len() == before {
                let id = String::from_utf8_lossy(&ending.id);
                step.faults
                    .push(format!("an end is told that nobody waits for: {id}"));
            }
        }
    }
}
