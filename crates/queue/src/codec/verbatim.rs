//! Operations that are replicated verbatim: by the client's command instead of
//! a log entry.
//!
//! An operation in the same millisecond as the last change of its queue needs
//! no time in the log, and no receipts if they follow the last one: a replica
//! that applied everything before knows both. The client's command then says
//! all. It saves the server the lookup of the command that carries log entries
//! and the allocation of its arguments, which is a third of the cost of a log
//! entry.
//!
//! This is only done for commands without a duration, because a command that is
//! read later, from a file or by a replica, would count it from another time.
//! It is only done for few receipts, because each receipt is an argument of its
//! own in a command and two bytes in a log entry.

use super::log_entry::LogEntry;
use crate::op::DueTime;
use crate::{Moment, Op, Queue, Receipt};

/// The most receipts in a command that is replicated verbatim. With more of
/// them a log entry is shorter.
const MOST_RECEIPTS: usize = 4;

/// The moment at which to apply `op` if it can be replicated verbatim; `None`
/// if it needs a log entry. `moment` is when the command came, and no due event
/// may have been processed for it. `issued` is the last receipt that this
/// server has given out or seen, in any queue. O(1).
pub fn moment(queue: &Queue, op: &Op, moment: Moment, issued: Receipt) -> Option<Moment> {
    let says_all = match op {
        Op::Ack { receipts, .. } => receipts.len() <= MOST_RECEIPTS,
        Op::Send(send) => {
            send.due == DueTime::Now
                && send.choices.is_default()
                && send.new_salt.is_none()
                && send.dedup.is_none()
        }
        // A receipt that follows the last one is as safe as one from the clock
        // if the last one is of this millisecond: every receipt that was lost
        // in a crash or by restoring an older copy is lower.
        Op::Fetch(fetch) => {
            let last = queue.last_receipt();
            let follows = last >= issued && last / 1000 >= moment.ms();
            follows && fetch.lease.is_none() && fetch.acks.len() <= MOST_RECEIPTS
        }
        _ => false,
    };
    (says_all && queue.is_at_last(moment)).then(|| last_moment(queue))
}

/// The log entry of an operation that was replicated verbatim, for a queue that has
/// applied all earlier operations.
pub fn log_entry<'o, 'a>(queue: &Queue, op: &'o Op<'a>) -> LogEntry<'o, 'a> {
    LogEntry::of(last_moment(queue), 0, None, op)
}

/// When the queue last changed. The next receipt at this moment is the one
/// after the last.
fn last_moment(queue: &Queue) -> Moment {
    Moment {
        us: queue.last_seen().saturating_mul(1000),
        receipt: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Fetch, Receipts, Send};
    use crate::settings::{Clock, Settings};

    const US: u64 = 5_000_250;

    /// A queue from which a message was fetched at `US`.
    fn queue(clock: Clock) -> Queue {
        let mut queue = Queue::new(Settings::default(), clock, 0);
        for op in [
            Op::Send(Send::plain(b"a")),
            Op::Send(Send::plain(b"b")),
            Op::fetch(Fetch::one()),
        ] {
            assert!(queue.apply(&op, Moment::at_us(US)).is_ok());
        }
        queue
    }

    fn travels(queue: &Queue, op: &Op, us: u64, issued: Receipt) -> bool {
        moment(queue, op, Moment::at_us(us), issued).is_some()
    }

    #[test]
    fn operations_of_the_same_millisecond_are_replicated_verbatim() {
        for (clock, later) in [(Clock::Server, false), (Clock::Manual(7), true)] {
            let queue = queue(clock);
            for op in [
                Op::Send(Send::plain(b"c")),
                Op::Ack {
                    receipts: [US].into_iter().collect(),
                    result: None,
                },
            ] {
                assert!(travels(&queue, &op, US + 100, US));
                assert_eq!(travels(&queue, &op, US + 1000, US), later);
            }
            assert!(!travels(&queue, &Op::Tick, US, US));
        }
    }

    #[test]
    fn a_fetch_is_replicated_verbatim_only_if_its_receipts_follow_the_last_one() {
        for clock in [Clock::Server, Clock::Manual(7)] {
            let queue = queue(clock);
            let fetch = Op::fetch(Fetch::one());
            assert!(travels(&queue, &fetch, US + 100, US));
            assert!(!travels(&queue, &fetch, US + 1000, US), "by the clock");
            assert!(!travels(&queue, &fetch, US + 100, US + 1), "of another");
        }
    }

    #[test]
    fn operations_with_a_duration_need_a_log_entry() {
        let queue = queue(Clock::Server);
        let mut delayed = Send::plain(b"c");
        delayed.due = DueTime::After(5);
        let mut short = Send::plain(b"c");
        short.choices.lease = std::num::NonZeroU64::new(5);
        let fetch = Fetch {
            lease: Some(5),
            ..Fetch::one()
        };
        for op in [Op::Send(delayed), Op::Send(short), Op::fetch(fetch)] {
            assert!(!travels(&queue, &op, US, US));
        }
    }

    #[test]
    fn operations_with_many_receipts_need_a_log_entry() {
        let queue = queue(Clock::Server);
        for (count, may) in [(4, true), (5, false)] {
            let receipts: Receipts = (0..count).collect();
            let fetch = Fetch {
                acks: receipts.clone(),
                ..Fetch::one()
            };
            let ack = Op::Ack {
                receipts,
                result: None,
            };
            for op in [ack, Op::fetch(fetch)] {
                assert_eq!(travels(&queue, &op, US, US), may);
            }
        }
    }

    #[test]
    fn a_verbatim_command_has_the_same_outcome_on_a_replica() {
        let (mut here, mut there) = (queue(Clock::Server), queue(Clock::Server));
        let fetch = Op::fetch(Fetch::one());
        let at = moment(&here, &fetch, Moment::at_us(US + 100), US);
        let at = at.unwrap_or(Moment::at_us(0));
        let done = here.apply(&fetch, at);
        assert_eq!(
            log_entry(&there, &fetch).replay(&mut there),
            done.map_err(|_| String::new())
        );
        assert_eq!(here.last_receipt(), US + 1);
    }
}
