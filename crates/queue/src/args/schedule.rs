//! Reads the arguments of SCHEDULE, UNSCHEDULE and SCHEDULES.

use smallvec::SmallVec;

use super::message_options::MessageOptions;
use super::option::once;
use super::scope::Scope;
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
