//! One step of time: the effect of an event.

use super::{Event, Progress};
use crate::index::ready_line::Join;
use crate::message::state::{Reason, StoredState};
use crate::queue::stuck::Last;
use crate::queue::Queue;
use crate::seeded::{seeded, Bug};
use crate::{GroupIx, Millis};

impl Queue {
    /// Runs one event. One that made no progress does not count as a step. Returns whether it released messages that were held.
    pub(super) fn step(
        &mut self,
        at: Millis,
        event: Event,
        most: u64,
        progress: &mut Progress,
    ) -> bool {
        progress.steps += 1;
        self.notes.effects.changed = true;
        self.notes.effects.visible = true;
        let first = self.first_of(event);
        let ticked = &mut progress.ticked;
        let join = Join::by_time(at);
        match event {
            Event::LeaseEnd => {
                let first = self.state.leases.first_end();
                let lease = first.and_then(|(_, receipt)| self.state.leases.find(receipt));
                if let Some(lease) = lease {
                    ticked.timeouts += 1;
                    let expired = self.state.totals.expired;
                    let closed = first.map(|(_, receipt)| receipt);
                    let closed = closed.filter(|receipt| self.is_shortened(*receipt));
                    let died = self.time_out(lease.seq, closed, at, join);
                    if matches!(died, Some(Reason::Retries | Reason::Timeouts)) {
                        ticked.dead += 1;
                    }
                    // Messages that came back with the batch may have expired.
                    ticked.expired += self.state.totals.expired - expired;
                }
            }
            Event::Expiry => {
                ticked.expired += 1;
                self.expire_next(at, None);
            }
            Event::ParkEnd => {
                ticked.due += 1;
                self.end_park(at);
            }
            Event::Due => self.promote_all(at, most, progress),
            Event::PauseEnd => self.state.paused_until = None,
            // All wakes of one moment are one step, because their order would
            // depend on where groups are in memory.
            Event::GroupWake => {
                let (mut awake, mut last) = (Vec::new(), Last::none());
                while let Some((_, ix)) =
                    self.state.groups.next_wake().filter(|(due, _)| *due <= at)
                {
                    if last.is_again(ix) {
                        break;
                    }
                    self.state.groups.wake_at(ix, None);
                    awake.push(ix);
                }
                self.put_in_order(&mut awake);
                for ix in awake {
                    if let Some(group) = self.state.groups.get_mut(ix) {
                        if group.ext().paused_until.is_some_and(|until| until <= at) {
                            group.ext_mut().paused_until = None;
                        }
                    }
                    // The position that the group gets by this is already in
                    // `expected`.
                    self.refresh(ix, self.state.last, join);
                }
            }
            Event::Breaker => {
                if let Some((_, ix)) = self.next_breaker_change() {
                    self.pass_time_of_breaker(ix, at);
                }
            }
            // All limits of one moment are one step, as for groups.
            Event::Limit => self.pass_time_of_limits(at),
            Event::Join => self.admit_all(at, most, progress),
            Event::SettledAge => {
                ticked.pruned += 1;
                self.prune_aged();
            }
            Event::DeadAge => {
                ticked.pruned += 1;
                self.prune_oldest(StoredState::Dead);
            }
            Event::DedupAge => self.state.records.dedup.forget_oldest(),
            Event::DedupIdEnd => self.forget_next_dedup_id(),
            Event::ConsumerAge => self.state.consumers.forget_next(),
            Event::Fire => {
                // A message sent by a schedule joins the ready line as by time, not
                // as by a command.
                let ticket = std::mem::take(&mut self.state.ticket);
                ticked.fired += u64::from(self.fire_next(at));
                self.state.ticket = ticket;
            }
            // This step ends here; the messages that a batch releases are settled below.
            Event::Release => self.end_dying(at),
            Event::SettledCount => self.prune_oldest(StoredState::Finished),
            Event::DeadCount => self.prune_oldest(StoredState::Dead),
        }
        // Messages that waited for the end of a run join the ready line as by time, like those of a
        // schedule.
        let ticket = match seeded(Bug::RerunJoinsByCommand) {
            true => self.state.ticket,
            false => std::mem::take(&mut self.state.ticket),
        };
        let expired = self.state.totals.expired;
        let released = self.settle(at);
        progress.ticked.expired += self.state.totals.expired - expired;
        self.state.ticket = ticket;
        if first.is_some() && first == self.first_of(event) {
            progress.steps = progress.steps.saturating_sub(1);
            progress.stuck.add(event);
            self.note_stuck("an event of time");
        }
        released
    }

    /// Moves the message that expires first to dead, as of `at`. `by`: how an
    /// operation that makes it expire places its group, or `None` if time does.
    pub(in crate::queue) fn expire_next(&mut self, at: Millis, by: Option<Join>) {
        if let Some(((_, seq), ())) = self.indexes.expiring.first() {
            let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
            self.leave_pending(seq);
            self.die(seq, Reason::Expired, at);
            match by {
                Some(join) => self.refresh(group, at, join),
                None => self.refresh_at_expiry(group, at),
            }
        }
    }

    /// Adds the groups that can deliver since `at` to the ready line, until the step
    /// budget is used up.
    fn admit_all(&mut self, at: Millis, most: u64, progress: &mut Progress) {
        let (mut first, mut last) = (true, Last::none());
        while let Some(key) = self
            .indexes
            .expected
            .next()
            .filter(|key| key.join.time <= at)
        {
            if last.is_again(key) || !first && progress.steps >= most {
                return;
            }
            if !first {
                progress.steps += 1;
            }
            first = false;
            self.admit(key.group, key.join.time);
        }
    }
}
