//! The schedules of a queue.

use super::record::{integer, Record};
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{exact, stamp};

/// Returns the rule of a schedule with its limits, in words.
pub fn rule(schedule: &Record) -> String {
    let mut words = schedule.text("definition");
    if let Some(until) = schedule.number("until") {
        words += &format!(", until {}", stamp(until));
    }
    match schedule.number("times") {
        Some(1) => words += ", once more",
        Some(left) => words += &format!(", {left} times more"),
        None => {}
    }
    if let jitter @ 1.. = schedule.count("jitter") {
        words += &format!(", up to {} later", exact(jitter));
    }
    words
}

/// Pauses or resumes a schedule.
pub fn hold(server: &mut Server, queue: &[u8], name: &[u8], held: bool) -> Result<(), Failure> {
    let mut cmd = verb("DQ.SCHEDULES", queue);
    cmd.arg(if held { "PAUSE" } else { "RESUME" }).arg(name);
    match integer(&server.call(&cmd)?)? {
        0 => Err(none(name)),
        _ => Ok(()),
    }
}

/// Removes a schedule. The messages that it has sent stay.
pub fn remove(server: &mut Server, queue: &[u8], name: &[u8]) -> Result<(), Failure> {
    let mut cmd = verb("DQ.UNSCHEDULE", queue);
    cmd.arg(name);
    match integer(&server.call(&cmd)?)? {
        0 => Err(none(name)),
        _ => Ok(()),
    }
}

fn none(name: &[u8]) -> Failure {
    Failure::mistake(format!("no schedule with the name {}", printable(name)))
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn the_limits_of_a_schedule_follow_its_rule() {
        let of = |fields: &[(&str, Value)]| {
            let definition = ("definition", Value::BulkString(b"EVERY 60000".to_vec()));
            rule(&record(&[&[definition], fields].concat()))
        };
        assert_eq!(of(&[]), "EVERY 60000");
        let none = [
            ("until", Value::Nil),
            ("times", Value::Nil),
            ("jitter", Value::Int(0)),
        ];
        assert_eq!(of(&none), "EVERY 60000");
        let all = [
            ("until", Value::Int(86_400_000)),
            ("times", Value::Int(3)),
            ("jitter", Value::Int(60_000)),
        ];
        assert_eq!(
            of(&all),
            "EVERY 60000, until 1970-01-02 00:00:00.000Z, 3 times more, up to 1m later"
        );
        assert!(of(&[("times", Value::Int(1))]).ends_with(", once more"));
    }
}
