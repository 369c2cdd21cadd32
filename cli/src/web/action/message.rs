//! Actions on one message: ending it, starting it again, sending one.

use redis::Value;

use crate::failure::Failure;
use crate::model::find::Act;
use crate::model::record::{bytes, integer, unexpected};
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::parse_span;
use crate::web::query::Query;

/// Redrives or cancels a message. Returns what came of it, in words.
pub fn one(server: &mut Server, queue: &[u8], id: &[u8], act: Act) -> Result<String, Failure> {
    if act == Act::Redrive {
        let mut cmd = verb("DQ.REDRIVE", queue);
        cmd.arg("IDS").arg(1).arg(id);
        return match integer(&server.call(&cmd)?)? {
            0 => Err(Failure::mistake("it is not dead any more")),
            _ => Ok("It is pending again.".to_owned()),
        };
    }
    let mut cmd = verb("DQ.CANCEL", queue);
    cmd.arg(id);
    let Value::Array(states) = server.call(&cmd)? else {
        return Err(unexpected());
    };
    match states.first().and_then(bytes) {
        None => Err(Failure::mistake("there is no such message any more")),
        Some(b"finished" | b"cancelled") => Err(Failure::mistake("it had ended before")),
        Some(state) => Ok(format!("It was {}, and is cancelled.", printable(state))),
    }
}

/// Sends the message of a form. Returns what came of it, in words.
pub fn send(server: &mut Server, queue: &[u8], form: &Query) -> Result<String, Failure> {
    let mut cmd = verb("DQ.SEND", queue);
    cmd.arg(form.get("payload").unwrap_or_default());
    for (option, field) in [("ID", "id"), ("TYPE", "type"), ("GROUP", "group")] {
        if let Some(value) = form.get(field) {
            cmd.arg(option).arg(value);
        }
    }
    if let Some(priority) = form.get("priority") {
        cmd.arg("PRIORITY").arg(priority);
    }
    let delay = form.text("delay").trim();
    if !delay.is_empty() {
        cmd.arg("DELAY")
            .arg(parse_span(delay).map_err(Failure::mistake)?);
    }
    sent(server.call(&cmd)?)
}

/// Returns what came of a DQ.SEND, in words.
pub fn sent(reply: Value) -> Result<String, Failure> {
    match bytes(&reply) {
        Some(id) => Ok(format!("Sent, with the id {}.", printable(id))),
        None => Err(Failure::mistake("the id is taken")),
    }
}
