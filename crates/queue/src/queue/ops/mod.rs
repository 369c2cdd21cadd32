//! The operations that a client can ask of a queue: one file for each verb. This file says
//! which function does which operation.

mod ack;
mod acksend;
mod alter;
mod cancel;
mod dedup_id;
mod deliver;
mod end_leases;
pub(super) mod fetch;
mod find_do;
pub(super) mod grace;
mod groupset;
pub(super) mod id_use;
pub(super) mod nack;
mod pause;
pub(super) mod redrive;
mod reschedule;
mod resume;
pub(super) mod round;
mod schedule;
pub(super) mod send;
mod start;
mod touch;
mod unschedule;
mod update;

use crate::error::Error;
use crate::op::{Done, Moment, Op, Ticked};
use crate::queue::Queue;
use crate::Millis;
use nack::Nack;

impl Queue {
    /// Does an operation, and the changes that must follow from it before the next one.
    #[inline(always)]
    pub(super) fn perform(&mut self, op: &Op, moment: Moment) -> Result<Done, Error> {
        let now = self.now(moment);
        // If no event is due, the last change has already brought the position of
        // the ungrouped messages up to date. A run of zero steps may have moved
        // `wake` here and not on a replica; that makes no difference, since it
        // found nothing to do.
        let follows = || matches!(op, Op::Moved(_) | Op::Children(_) | Op::Detach(_));
        if self.has_work(now) && !follows() {
            self.catch_up_with(now);
        }
        self.state.last = now;
        self.state.ticket += 1;
        let done = self.do_op(op, moment, now);
        match follows() {
            true => self.settle_later(now),
            false => {
                self.settle(now);
                if self.has_released() {
                    self.finish_manually();
                }
            }
        }
        done
    }

    #[inline(always)]
    fn do_op(&mut self, op: &Op, moment: Moment, now: Millis) -> Result<Done, Error> {
        match op {
            Op::Tick => Ok(Done::Ticked(Ticked::default())),
            Op::Alter(changes) => Ok(self.alter(changes, now)),
            Op::Send(send) => self.send(send, now),
            Op::Duplicate => Ok(self.count_duplicate()),
            Op::Fetch(fetch) => self.fetch(fetch, now, moment.receipt),
            Op::Ack { receipts, result } => Ok(self.ack(receipts, result.as_deref(), now)),
            Op::AckCost {
                receipts,
                cost,
                result,
            } => Ok(self.ack_cost(receipts, *cost, result.as_deref(), now)),
            Op::AckSend(ack_send) => Ok(self.ack_send(ack_send, now)),
            Op::Nack {
                receipts,
                kind,
                error,
                random,
                note,
                pause,
            } => {
                let nack = Nack {
                    receipts,
                    kind: *kind,
                    error: error.as_deref(),
                    random: *random,
                    note: note.as_deref(),
                    pause: *pause,
                };
                self.nack(&nack, now)
            }
            Op::AckEach { receipts, results } => Ok(self.ack_each(receipts, results, now)),
            Op::Touch { ms, receipts, note } => Ok(self.touch(*ms, receipts, note.as_deref(), now)),
            Op::EndLeases { receipts } => Ok(self.end_leases(receipts, now)),
            Op::Grace { ms, receipts } => Ok(self.grace(*ms, receipts, now)),
            Op::Advance { to, skip_fires } => self.advance_manually(*to, *skip_fires),
            Op::Cancel { ids } => Ok(self.cancel(ids, now)),
            Op::Reschedule { id, due } => Ok(self.reschedule(id, *due, now)),
            Op::Update { id, payload } => self.update(id, payload, now),
            Op::Signal { id, text } => Ok(self.signal_one(id, text, now)),
            Op::Redrive(which) => Ok(self.redrive(which, now)),
            Op::FindDo { act, seqs } => Ok(self.find_do(*act, seqs, now)),
            Op::Purge { state, group } => Ok(self.purge(*state, group.as_deref(), now)),
            Op::Remove(removal) => Ok(self.remove_some(removal, now)),
            Op::Pause { group, ms } => Ok(self.pause(group.as_deref(), *ms, now)),
            Op::Limit { name, rule } => self.set_limit(name, rule),
            Op::Resume { group } => Ok(self.resume(group.as_deref(), now)),
            Op::GroupSet { group, changes } => Ok(self.set_group(group, changes, now)),
            Op::Schedule(schedule) => self.schedule(schedule, now),
            Op::Unschedule { name } => Ok(self.unschedule(name)),
            Op::PauseSchedule { name, paused } => Ok(self.pause_schedule(name, *paused, now)),
            Op::CatchUp { since, skip } => Ok(match skip {
                true => self.skip_fires(*since, now),
                false => self.catch_up(*since, now),
            }),
            Op::Moved(moved) => Ok(self.moved(moved, now)),
            Op::Detach(ties) => Ok(self.detach(*ties)),
            Op::Applied(applied) => Ok(self.note_applied(applied, now)),
            Op::Children(counted) => Ok(self.count_children(counted, now)),
        }
    }
}
