//! Actions on schedules.
//!
//! DQ.SCHEDULES does not tell which message a schedule sends, so a run now copies the message
//! that it has sent last, or the record of it.

pub use super::copy::{MessageCopy, UNTOLD};
use crate::failure::Failure;
use crate::model::record::Record;
use crate::model::schedule;
use crate::server::{verb, Server};
use crate::text::printable;

/// Looks for the message that a schedule has sent last. It is a mistake if there is none.
pub fn last_message(
    server: &mut Server,
    queue: &[u8],
    name: &[u8],
) -> Result<MessageCopy, Failure> {
    let schedules = Record::all(server.call(&verb("DQ.SCHEDULES", queue))?)?;
    let found = schedules.iter().find(|one| one.bytes("name") == Some(name));
    let schedule = found.ok_or_else(|| Failure::mistake("there is no such schedule any more"))?;
    let Some(sent_for) = schedule.number("last-at") else {
        return Err(Failure::mistake(
            "the schedule has not sent a message yet, and the server does not tell what it \
             would send",
        ));
    };
    let mut cmd = verb("DQ.GET", queue);
    cmd.arg([name, format!("@{sent_for}").as_bytes()].concat());
    let message = Record::maybe(server.call(&cmd)?)?.ok_or_else(|| {
        Failure::mistake(
            "the message that the schedule sent last is gone, and the server does not tell \
             what it would send; with a RETAIN of the queue the message stays for that long",
        )
    })?;
    Ok(MessageCopy::due_at(message, sent_for))
}

/// Sends the copy. Returns a sentence about the result.
pub fn fire(server: &mut Server, queue: &[u8], name: &[u8]) -> Result<String, Failure> {
    last_message(server, queue, name)?.send(server, queue)
}

/// Removes a schedule. Returns a sentence about the result.
pub fn remove(server: &mut Server, queue: &[u8], name: &[u8]) -> Result<String, Failure> {
    schedule::remove(server, queue, name)?;
    Ok(format!("The schedule {} is removed.", printable(name)))
}

/// Pauses or resumes a schedule. Returns a sentence about the result.
pub fn hold(server: &mut Server, queue: &[u8], name: &[u8], held: bool) -> Result<String, Failure> {
    schedule::hold(server, queue, name, held)?;
    let done = if held { "is paused" } else { "goes on" };
    Ok(format!("The schedule {} {done}.", printable(name)))
}
