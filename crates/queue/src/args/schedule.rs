//! Reads the arguments of SCHEDULE, UNSCHEDULE and SCHEDULES.

use smallvec::SmallVec;

use super::message_options::{MessageOptions, Scope};
use super::option::once;
use super::words::{check_name, MS, SOME, SOME_MS};
use super::{ArgError, Parsed, Words};
use crate::limits::MAX_SCHEDULE_NAME;
use crate::op::{NewSchedule, Op, Send};
use crate::schedule::recurrence::{CronRule, Recurrence, RecurrenceError};
use crate::schedule::{Limits, Missed, Overlap};
use crate::Millis;

/// The arguments of SCHEDULE. [`ScheduleRequest::at`] makes the schedule of
/// them.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRequest<'a> {
    name: &'a [u8],
    rule: Rule,
    send: Send<'a>,
    missed: Missed,
    overlap: Overlap,
    limits: Option<Box<Limits>>,
}

/// When the schedule fires.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    /// At times that do not depend on when the schedule is made.
    Fixed(Recurrence),
    /// Every this many ms, counted from when the schedule is made.
    FromNow(Millis),
}

impl<'a> ScheduleRequest<'a> {
    /// The schedule that is created at `now`, the time of its queue in Unix ms.
    ///
    /// Errors: the first fire time is beyond 2^53-1.
    pub fn at(self, now: Millis) -> Parsed<NewSchedule<'a>> {
        Ok(NewSchedule {
            name: self.name.into(),
            rule: match self.rule {
                Rule::Fixed(rule) => rule,
                Rule::FromNow(ms) => Recurrence::every(ms, None, now).map_err(failure)?,
            },
            send: self.send,
            missed: self.missed,
            overlap: self.overlap,
            limits: self.limits,
        })
    }
}

/// Reads the arguments of SCHEDULE: `name CRON expr [TZ zone] | EVERY ms [START
/// unix-ms] PAYLOAD payload [options] [MISSED SKIP | ONCE | ALL] [OVERLAP QUEUE
/// | SKIP] [UNTIL unix-ms] [TIMES n] [JITTER ms]`. The payload is at most `max` bytes long.
pub fn schedule(mut words: Words<'_>, max: u64) -> Parsed<ScheduleRequest<'_>> {
    let name = read_name(&mut words)?;
    let (mut cron, mut zone, mut every, mut start) = (None, None, None, None);
    let (mut payload, mut missed, mut overlap) = (None, None, None);
    let (mut until, mut times, mut jitter) = (None, None, None);
    let mut options = MessageOptions::new(Scope::SCHEDULE);
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CRON" => once(&mut cron, what, words.bytes(what)?)?,
            what @ "TZ" => once(&mut zone, what, words.bytes(what)?)?,
            what @ "EVERY" => once(&mut every, what, words.number(what, SOME_MS)?)?,
            what @ "START" => once(&mut start, what, words.number(what, MS)?)?,
            what @ "PAYLOAD" => once(&mut payload, what, words.payload(max)?)?,
            what @ "MISSED" => {
                let choices = [
                    ("SKIP", Missed::Skip),
                    ("ONCE", Missed::Once),
                    ("ALL", Missed::All),
                ];
                once(
                    &mut missed,
                    what,
                    words.choice(what, "SKIP, ONCE or ALL", &choices)?,
                )?
            }
            what @ "OVERLAP" => {
                let choices = [("QUEUE", Overlap::Queue), ("SKIP", Overlap::Skip)];
                once(
                    &mut overlap,
                    what,
                    words.choice(what, "QUEUE or SKIP", &choices)?,
                )?
            }
            what @ "UNTIL" => once(&mut until, what, words.number(what, MS)?)?,
            what @ "TIMES" => once(&mut times, what, words.number(what, SOME)?)?,
            what @ "JITTER" => once(&mut jitter, what, words.number(what, MS)?)?,
            _ => options.read(&option, &mut words)?,
        }
    }
    let rule = match (cron, every) {
        (Some(_), Some(_)) => return Err("ERR CRON and EVERY exclude each other".into()),
        (None, None) => return Err("ERR CRON or EVERY is missing".into()),
        (Some(_), None) if start.is_some() => {
            return Err("ERR START and CRON exclude each other".into())
        }
        (None, Some(_)) if zone.is_some() => {
            return Err("ERR TZ and EVERY exclude each other".into())
        }
        (Some(expr), None) => Rule::Fixed(read_cron(expr, zone)?),
        (None, Some(ms)) => match start {
            None => Rule::FromNow(ms),
            Some(start) => Rule::Fixed(Recurrence::every(ms, Some(start), 0).map_err(failure)?),
        },
    };
    let Some(payload) = payload else {
        return Err("ERR PAYLOAD is missing".into());
    };
    let limits = Limits {
        until,
        times,
        jitter: jitter.unwrap_or(0),
    };
    Ok(ScheduleRequest {
        name,
        rule,
        send: options.send(SmallVec::from_buf([payload]))?,
        missed: missed.unwrap_or(Missed::Once),
        overlap: overlap.unwrap_or(Overlap::Queue),
        limits: (limits != Limits::default()).then(|| Box::new(limits)),
    })
}

/// Reads the arguments of UNSCHEDULE: `name`
pub fn unschedule(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let name = read_name(&mut words)?.into();
    words.end()?;
    Ok(Op::Unschedule { name })
}

/// Reads the arguments of SCHEDULES: `[PAUSE | RESUME name]`. Without any it changes
/// nothing.
pub fn schedules(mut words: Words<'_>) -> Parsed<Option<Op<'_>>> {
    let Some(option) = words.option() else {
        return Ok(None);
    };
    let paused = match option.name() {
        "PAUSE" => true,
        "RESUME" => false,
        _ => return Err(option.unknown()),
    };
    let name = read_name(&mut words)?.into();
    words.end()?;
    Ok(Some(Op::PauseSchedule { name, paused }))
}

fn read_name<'a>(words: &mut Words<'a>) -> Parsed<&'a [u8]> {
    let name = words.bytes("name")?;
    check_name("name", name, MAX_SCHEDULE_NAME)?;
    Ok(name)
}

fn read_cron(expr: &[u8], zone: Option<&[u8]>) -> Parsed<Recurrence> {
    // Bytes that are not UTF-8 become replacement characters. No valid
    // expression or zone name has one, so they are refused below.
    let expr = String::from_utf8_lossy(expr);
    let zone = zone.map(String::from_utf8_lossy);
    let rule = CronRule::parse(&expr, zone.as_deref()).map_err(failure)?;
    Ok(Recurrence::Cron(rule))
}

fn failure(error: RecurrenceError) -> ArgError {
    format!("ERR {error}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};

    fn request(text: &str, now: Millis) -> Parsed<String> {
        words(text, |w| {
            let new = schedule(w, 10)?.at(now)?;
            let sent = &new.send;
            let (missed, overlap) = (new.missed, new.overlap);
            Ok(format!(
                "{} {:?} {missed:?} {overlap:?} {:?} {:?}",
                String::from_utf8_lossy(&new.name),
                new.rule.definition(),
                new.rule.first_at_or_after(now),
                (sent.payloads.as_slice(), &sent.group, sent.priority),
            ))
        })
    }

    #[test]
    fn valid_arguments_become_schedules() {
        for (text, expected) in [
            (
                "s EVERY 100 PAYLOAD p",
                r#"s "EVERY 100" Once Queue Some(1100) ([[112]], None, 0)"#,
            ),
            (
                "EVERY PRIORITY -2 payload EVERY start 250 OVERLAP skip MISSED all GROUP g every 100",
                r#"EVERY "EVERY 100 START 250" All Skip Some(1050) ([[69, 86, 69, 82, 89]], Some([103]), -2)"#,
            ),
            (
                "s TZ Europe/Berlin PAYLOAD p MISSED SKIP OVERLAP QUEUE CRON 0\u{0}3\u{0}*\u{0}*\u{0}*",
                r#"s "CRON 0 3 * * * TZ Europe/Berlin" Skip Queue Some(7200000) ([[112]], None, 0)"#,
            ),
        ] {
            assert_eq!(request(text, 1000), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn invalid_arguments_are_refused_with_an_error() {
        for (text, expected) in [
            (
                "s CRON @daily EVERY 5 PAYLOAD p",
                "CRON and EVERY exclude each other",
            ),
            ("s PAYLOAD p", "CRON or EVERY is missing"),
            ("s EVERY 5", "PAYLOAD is missing"),
            (
                "s EVERY 5 TZ UTC PAYLOAD p",
                "TZ and EVERY exclude each other",
            ),
            (
                "s CRON @daily START 5 PAYLOAD p",
                "START and CRON exclude each other",
            ),
            (
                "s CRON @dailyy PAYLOAD p",
                "unknown cron expression '@dailyy'",
            ),
            (
                "s CRON @daily TZ Mars/X PAYLOAD p",
                "unknown time zone 'Mars/X'",
            ),
            (
                "s EVERY 0 PAYLOAD p",
                "EVERY must be an integer from 1 to 9007199254740991, not '0'",
            ),
            (
                "s EVERY 9007199254740991 PAYLOAD p",
                "START must be 0 to 9007199254740991 ms",
            ),
            ("s EVERY 5 PAYLOAD p ID a", "unknown option 'ID'"),
            ("s EVERY 5 PAYLOAD p REPLACE", "unknown option 'REPLACE'"),
            ("s EVERY 5 PAYLOAD p DELAY 1", "unknown option 'DELAY'"),
            ("s EVERY 5 PAYLOAD p AT 1", "unknown option 'AT'"),
            ("s EVERY 5 PAYLOAD p SCORE 1", "SCORE needs GROUP"),
            ("s EVERY 5 PAYLOAD p PAYLOAD p", "PAYLOAD is given twice"),
            (
                "s EVERY 5 PAYLOAD p MISSED x",
                "MISSED must be SKIP, ONCE or ALL, not 'x'",
            ),
            (
                "s EVERY 5 PAYLOAD p OVERLAP x",
                "OVERLAP must be QUEUE or SKIP, not 'x'",
            ),
            (
                "s EVERY 5 PAYLOAD p TIMES 0",
                "TIMES must be an integer from 1 to 9007199254740991, not '0'",
            ),
            (
                "s EVERY 5 PAYLOAD p UNTIL 1 UNTIL 1",
                "UNTIL is given twice",
            ),
            (
                "s EVERY 5 PAYLOAD p JITTER -1",
                "JITTER must be an integer from 0 to 9007199254740991, not '-1'",
            ),
            (
                "s EVERY 5 PAYLOAD 01234567890",
                "payload must be at most 10 bytes long (dq.max-payload), not 11",
            ),
        ] {
            assert_eq!(error(request(text, 1000)), format!("ERR {expected}"));
        }
        let long = "x".repeat(1001);
        let text = "ERR name must be 1 to 1000 bytes long, not 1001";
        let unscheduled = words(&long, |w| unschedule(w).map(|_| ()));
        assert_eq!(error(unscheduled), text);
        assert_eq!(
            error(request(&format!("{long} EVERY 5 PAYLOAD p"), 0)),
            text
        );
    }

    #[test]
    fn a_listing_may_name_a_schedule_to_pause_or_resume() {
        let read = |text: &str| words(text, |w| schedules(w).map(|op| format!("{op:?}")));
        assert_eq!(words("", |w| schedules(w).map(|op| op.is_none())), Ok(true));
        assert_eq!(
            read("pause s"),
            Ok("Some(PauseSchedule { name: [115], paused: true })".to_owned())
        );
        assert_eq!(
            read("RESUME s"),
            Ok("Some(PauseSchedule { name: [115], paused: false })".to_owned())
        );
        for text in ["s", "PAUSE", "PAUSE s t", "RESUME s PAUSE s"] {
            error(read(text));
        }
    }

    #[test]
    fn a_step_of_ninety_minutes_is_refused() {
        let text = "s PAYLOAD p CRON */90\u{0}*\u{0}*\u{0}*\u{0}*";
        assert_eq!(
            error(request(text, 1000)),
            "ERR cron field minute '*/90': the step 90 is greater than 59, the largest step of \
             the field minute"
        );
    }

    #[test]
    fn cron_expressions_that_are_empty_or_not_utf8_are_refused() {
        for words in [
            [&b"s"[..], b"CRON", b"0 0 * * \xff", b"PAYLOAD", b"p"],
            [b"s", b"CRON", b"", b"PAYLOAD", b"p"],
        ] {
            assert!(schedule(Words::new(&words), 10).is_err());
        }
    }
}
