//! Finds points of time that were given in seconds.

use super::{DueTime, Op, Send};
use crate::settings::Clock;
use crate::{Error, Millis};

/// The times that count as seconds: up to the year 5138 in seconds, and to March 1973 in
/// milliseconds. A 0 is a valid way to say "long ago".
const SECONDS: std::ops::RangeInclusive<Millis> = 1..=100_000_000_000;

/// Checks that a point of time which a client gave for a queue with this clock is not one in
/// seconds: all others lie decades in the past, so the message would be due or dead at once. A
/// manual clock may start at 0, so there any time makes sense.
///
/// This is for the commands of clients only. A command that a server has accepted is applied
/// again without this check.
pub fn check_time(clock: Clock, what: &'static str, time: Option<Millis>) -> Result<(), Error> {
    match time {
        Some(seconds) if clock == Clock::Server && SECONDS.contains(&seconds) => {
            Err(Error::Seconds { what, seconds })
        }
        _ => Ok(()),
    }
}

/// Checks the points of time of an operation as [`check_time`] does.
#[inline(always)]
pub fn check_times(clock: Clock, op: &Op<'_>) -> Result<(), Error> {
    match op {
        Op::Send(send) => check_send(clock, send),
        Op::AckSend(op) => op.sends.iter().try_for_each(|send| check_send(clock, send)),
        Op::Reschedule { due, .. } => check_due(clock, *due),
        Op::Schedule(new) => {
            let until = new.limits.as_ref().and_then(|limits| limits.until);
            check_time(clock, "UNTIL", until)
        }
        _ => Ok(()),
    }
}

#[inline(always)]
fn check_send(clock: Clock, send: &Send<'_>) -> Result<(), Error> {
    check_due(clock, send.due)?;
    match &send.choices.rare {
        Some(rare) => check_time(clock, "EXPIREAT", rare.expire_at),
        None => Ok(()),
    }
}

#[inline(always)]
fn check_due(clock: Clock, due: DueTime) -> Result<(), Error> {
    match due {
        DueTime::At(time) => check_time(clock, "AT", Some(time)),
        DueTime::Now | DueTime::After(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::RareChoices;

    fn at(time: Millis) -> Op<'static> {
        Op::Send(Send {
            due: DueTime::At(time),
            ..Send::plain(b"p")
        })
    }

    #[test]
    fn times_in_seconds_are_refused_on_the_clock_of_the_server_only() {
        for seconds in [1, 1_700_000_000, 100_000_000_000] {
            let refused = Err(Error::Seconds {
                what: "AT",
                seconds,
            });
            assert_eq!(check_times(Clock::Server, &at(seconds)), refused);
            assert_eq!(check_times(Clock::Manual(0), &at(seconds)), Ok(()));
        }
        for time in [0, 100_000_000_001, 1_700_000_000_000, crate::MAX_EXACT] {
            assert_eq!(check_times(Clock::Server, &at(time)), Ok(()));
        }
    }

    #[test]
    fn a_short_delay_is_not_taken_for_seconds() {
        let due = DueTime::After(5);
        let id = b"a"[..].into();
        let op = Op::Reschedule { id, due };
        assert_eq!(check_times(Clock::Server, &op), Ok(()));
    }

    #[test]
    fn an_expiry_in_seconds_is_refused_by_its_own_name() {
        let mut send = Send::plain(b"p");
        send.choices.rare = Some(Box::new(RareChoices {
            expire_at: Some(9),
            ..RareChoices::default()
        }));
        let refused = check_times(Clock::Server, &Op::Send(send));
        let what = "EXPIREAT";
        assert_eq!(refused, Err(Error::Seconds { what, seconds: 9 }));
    }
}
