//! Faults of the servers of a cluster, and the check that they have the same queue then.

use super::{effects, Cluster, VALIDATED};
use crate::corruptor::{is_sound, try_record, try_snapshot, Fate};
use crate::disk::{apply_entry, Disk};
use crate::{difference, loaded, saved};
use dq_queue::message::state::State;
use dq_queue::op::Send;
use dq_queue::queue::rebuild::validate;
use dq_queue::{Op, Queue};

impl Cluster {
    /// Compares primary and replica, and draws when that is done again: after at
    /// most 8 steps and one for each 64 bytes of the snapshot, so that a large
    /// queue is compared less often.
    pub(super) fn compare(&mut self) -> Result<(), String> {
        self.tally.compared += 1;
        let size = self.compare_snapshots()?;
        self.compare_in = self.rng.u64(0..8 + size / 64);
        match self.tally.compared % VALIDATED {
            0 => is_sound(&self.primary).and_then(|()| validate(&self.replica)),
            _ => Ok(()),
        }
    }

    /// Compares primary and replica. Returns the size of their snapshot in bytes.
    pub(super) fn compare_snapshots(&self) -> Result<u64, String> {
        let bytes = saved(&self.primary);
        if self.counts {
            effects::check_counter((&self.primary, &self.primary_keys))?;
            effects::compare(&self.primary_keys, &self.replica_keys, self.us / 1000)?;
        }
        match difference(&bytes, &saved(&self.replica)) {
            None => Ok(bytes.len() as u64),
            Some(place) => Err(format!("the replica differs {place}")),
        }
    }

    /// Rewrites the log: it begins with a new snapshot.
    pub(super) fn rewrite_log(&mut self) {
        self.event("the log is rewritten");
        self.disk = Disk::new(&self.primary, &self.primary_keys, self.rng.bool());
        self.lagging = self.replica.clone();
        self.lagging_keys = self.replica_keys.clone();
        self.applied = 0;
        self.lag = self.rng.usize(0..6);
    }

    /// A server loads what it has saved, as with DEBUG RELOAD. This must not change what it
    /// has, now or later.
    ///
    /// # Errors
    /// A sentence that says what has changed.
    pub(super) fn reload(&mut self) -> Result<(), String> {
        let (queue, what) = match self.rng.u8(0..3) {
            0 => (&mut self.primary, "the primary reloads"),
            1 => (&mut self.replica, "the replica reloads"),
            _ => (&mut self.lagging, "the replica that lags behind reloads"),
        };
        let bytes = saved(queue);
        *queue = loaded(&bytes, 64 * 1024)?;
        let changed = difference(&bytes, &saved(queue));
        // The rest of a bulk operation names places in the memory of the primary.
        self.bulk = None;
        self.event(what);
        match changed {
            None => Ok(()),
            Some(place) => Err(format!("the queue that was reloaded differs {place}")),
        }
    }

    /// Another server loads the whole log, as with LOADAOF. It has what the replica has.
    ///
    /// # Errors
    /// A sentence that says what is different.
    pub(super) fn replay_log(&mut self) -> Result<(), String> {
        self.event("the log is replayed");
        let (replayed, keys) = self.disk.recover()?;
        effects::compare(&keys, &self.replica_keys, self.us / 1000)?;
        match difference(&saved(&replayed), &saved(&self.replica)) {
            None => Ok(()),
            Some(place) => Err(format!("the queue of the whole log differs {place}")),
        }
    }

    /// The primary dies and loses the last entries of its log, one of them in part. The
    /// queue that it loads at its start must equal that of the replica which applied the
    /// same number of entries.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        self.event("crash");
        self.tally.crashes += 1;
        if self.rng.u8(0..4) == 0 {
            while self.applied < self.disk.records() {
                let next = self.disk.entry(self.applied);
                apply_entry(&mut self.lagging, &mut self.lagging_keys, next)?;
                self.applied += 1;
            }
        }
        self.disk.tear(self.applied, self.rng.usize(0..64));
        let (found, keys) = self.disk.recover()?;
        if let Some(place) = difference(&saved(&found), &saved(&self.lagging)) {
            return Err(format!("the queue that was recovered differs {place}"));
        }
        effects::compare(&keys, &self.lagging_keys, self.us / 1000)?;
        validate(&found)?;
        (self.primary, self.primary_keys) = (found, keys);
        self.take_over()
    }

    /// Replaces the primary by a replica.
    pub(super) fn promote(&mut self) -> Result<(), String> {
        self.tally.promotions += 1;
        let (promoted, keys) = match self.rng.bool() {
            true => {
                self.event("the replica is promoted");
                (&self.replica, &self.replica_keys)
            }
            false => {
                self.event("the replica that lags behind is promoted");
                (&self.lagging, &self.lagging_keys)
            }
        };
        (self.primary, self.primary_keys) = (promoted.clone(), keys.clone());
        validate(&self.primary)?;
        self.take_over()
    }

    /// Begins the term of a new primary. It has what it applied so far, and the
    /// replicas begin with its snapshot.
    fn take_over(&mut self) -> Result<(), String> {
        if self.counts {
            effects::check_counter((&self.primary, &self.primary_keys))?;
        }
        self.draw_clock();
        self.term += 1;
        self.acting_since = self.us / 1000;
        self.receipt = self.primary.last_receipt() + 1;
        self.bulk = None;
        self.primary.take_effects();
        self.disk = Disk::new(&self.primary, &self.primary_keys, self.rng.bool());
        // The log was written just now, so it can be read.
        if let Ok((synced, keys)) = self.disk.recover() {
            (self.lagging, self.lagging_keys) = (synced.clone(), keys.clone());
            (self.replica, self.replica_keys) = (synced, keys);
        }
        self.applied = 0;
        self.lag = self.rng.usize(0..6);
        self.arrive()?;
        let now = self.primary.now(self.moment());
        self.oracle.begin(&self.primary, now);
        Ok(())
    }

    /// Checks that a copy of the queue is sound and that no message in it is
    /// running.
    pub(super) fn copy(&mut self) -> Result<(), String> {
        self.event("copy");
        let copy = self.primary.copy();
        if copy.count(State::Running) > 0 {
            return Err("a message is running in a copy".into());
        }
        is_sound(&copy)?;
        self.send_into(copy)?;
        let disk = Disk::new(&self.primary, &self.primary_keys, true);
        self.send_into(disk.recover()?.0)
    }

    /// Sends a message to a copy of the queue, and checks that its id is one that
    /// no other copy has made.
    fn send_into(&mut self, mut elsewhere: Queue) -> Result<(), String> {
        let moment = self.moment();
        let rng = &mut self.rng;
        let op = Op::Send(Send::plain(b"elsewhere"));
        let op = op.with_new_salt(|| rng.u64(..)).unwrap_or(op);
        let done = elsewhere.apply(&op, moment).ok();
        self.oracle.check_ids(&elsewhere, &op, done.as_ref())
    }

    pub(super) fn corrupt_snapshot(&mut self) -> Result<(), String> {
        let fate = try_snapshot(&mut self.rng, saved(&self.replica), self.us)?;
        self.count(fate);
        Ok(())
    }

    pub(super) fn corrupt_entry(&mut self) -> Result<(), String> {
        let Some(last) = self.disk.records().checked_sub(1) else {
            return Ok(());
        };
        let number = self.rng.usize(0..=last);
        let bytes = self.disk.record(number);
        let fate = try_record(&mut self.rng, bytes, &self.replica, self.us)?;
        self.count(fate);
        Ok(())
    }

    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Refused => self.tally.refused += 1,
            Fate::Taken => self.tally.taken += 1,
        }
    }
}
