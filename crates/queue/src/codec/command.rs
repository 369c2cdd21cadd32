//! Operations that travel as their command, in the place of a record.
//!
//! Where an operation happens in the same millisecond as the last change of its
//! queue, its time need not be told, nor receipts that follow the last one: whoever
//! has heard of all that went before knows both. The command as it came then says
//! all, and spares the server the look-up of the command of records and the strings
//! of one, a third of what a record costs it.
//!
//! Only commands that name no length of time: what is in a log or on its way to a
//! replica never counts from when it is read. And only few receipts: in a command each
//! is a word of its own, in a record two bytes.

use super::record::Record;
use crate::op::DueTime;
use crate::{Moment, Op, Queue, Receipt};

/// More receipts travel in a record.
const MOST_RECEIPTS: usize = 4;

/// The moment at which `op`, which is to be done at `moment` without a step of time
/// before it, happens if it travels as its command; `None` if it cannot. `issued` is
/// the last receipt that this server has given out or seen, over all queues.
pub fn moment(queue: &Queue, op: &Op, moment: Moment, issued: Receipt) -> Option<Moment> {
    let says_all = match op {
        Op::Ack { receipts, .. } => receipts.len() <= MOST_RECEIPTS,
        Op::Send(send) => {
            send.due == DueTime::Now && send.choices.is_default() && send.new_salt.is_none()
        }
        // The number after the last is as good as one by the clock where the last one
        // is of this millisecond: whatever was lost in a crash, or restored from an
        // older copy, was given out before it.
        Op::Fetch(fetch) => {
            let last = queue.last_receipt();
            let follows = last >= issued && last / 1000 >= moment.ms();
            follows && fetch.lease.is_none() && fetch.acks.len() <= MOST_RECEIPTS
        }
        _ => false,
    };
    (says_all && queue.is_at_last(moment)).then(|| last_moment(queue))
}

/// The record of an operation that came as its command.
pub fn record<'o, 'a>(queue: &Queue, op: &'o Op<'a>) -> Record<'o, 'a> {
    Record::of(last_moment(queue), 0, None, op)
}

/// When the queue changed last. The next receipt at it is the one after the last.
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

    /// A queue of which a message was fetched at `US`.
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
    fn in_the_millisecond_of_the_last_change() {
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
    fn a_fetch_only_where_its_receipts_follow_the_last_one() {
        for clock in [Clock::Server, Clock::Manual(7)] {
            let queue = queue(clock);
            let fetch = Op::fetch(Fetch::one());
            assert!(travels(&queue, &fetch, US + 100, US));
            assert!(!travels(&queue, &fetch, US + 1000, US), "by the clock");
            assert!(!travels(&queue, &fetch, US + 100, US + 1), "of another");
        }
    }

    #[test]
    fn what_counts_from_when_it_is_read_travels_as_a_record() {
        let queue = queue(Clock::Server);
        let mut delayed = Send::plain(b"c");
        delayed.due = DueTime::After(5);
        let mut short = Send::plain(b"c");
        short.choices.lease = Some(5);
        let fetch = Fetch {
            lease: Some(5),
            ..Fetch::one()
        };
        for op in [Op::Send(delayed), Op::Send(short), Op::fetch(fetch)] {
            assert!(!travels(&queue, &op, US, US));
        }
    }

    #[test]
    fn many_receipts_travel_as_a_record() {
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
    fn it_happens_alike_here_and_where_it_is_heard() {
        let (mut here, mut there) = (queue(Clock::Server), queue(Clock::Server));
        let fetch = Op::fetch(Fetch::one());
        let at = moment(&here, &fetch, Moment::at_us(US + 100), US);
        let at = at.unwrap_or(Moment::at_us(0));
        let done = here.apply(&fetch, at);
        assert_eq!(
            record(&there, &fetch).replay(&mut there),
            done.map_err(|_| String::new())
        );
        assert_eq!(here.last_receipt(), US + 1);
    }
}
