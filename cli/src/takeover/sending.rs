//! Jobs on their way to the target, each once: the calls of the script `lua/send.lua`, and what they reply.

use redis::{Cmd, Value};

use super::fault::at_target_end;
use super::peer::Words;
use super::read::{text, texts};
use super::record::Bytes;
use super::script::{Script, SCRIPT};
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::server::Server;

/// A numbered job, as its commands at the target.
pub type Job = (u64, Vec<Words>);

/// The outcome of a batch at the target.
#[derive(Debug, Default)]
pub struct Sent {
    /// The number of the last job that is there.
    pub last: u64,
    /// Why it went no further, in the server's words.
    pub refused: String,
    /// The numbers of jobs whose id belongs to another message.
    pub taken: Vec<u64>,
}

/// Sends jobs. Numbers up to the marker are passed over, so a call may be repeated.
pub fn send(
    target: &mut Server,
    script: &Script,
    key: &[u8],
    marker: &str,
    jobs: &[Job],
) -> Result<Sent, Failure> {
    begin(target, script, key, marker, jobs)?;
    outcome(target, jobs)
}

/// Begins to send jobs. [`outcome`] waits for what comes of it.
pub fn begin(
    target: &mut Server,
    script: &Script,
    key: &[u8],
    marker: &str,
    jobs: &[Job],
) -> Result<(), Failure> {
    let calls: Vec<Cmd> = jobs
        .chunks(SCRIPT)
        .map(|part| {
            let mut cmd = script.call(&[key, marker.as_bytes()]);
            for (number, commands) in part {
                cmd.arg(*number).arg(commands.len());
                for words in commands {
                    cmd.arg(words.len()).arg(words);
                }
            }
            cmd
        })
        .collect();
    target.begin(&calls).map_err(at_target_end)
}

/// Waits for the outcome of the jobs that are being sent.
pub fn outcome(target: &mut Server, jobs: &[Job]) -> Result<Sent, Failure> {
    let mut sent = Sent::default();
    let calls = jobs.len().div_ceil(SCRIPT);
    for reply in target.replies(calls).map_err(at_target_end)? {
        let reply = match reply {
            Err(Failure::Refused(words)) if words.starts_with("OOM") => {
                sent.refused = words;
                break;
            }
            other => other.map_err(at_target_end)?,
        };
        let Value::Array(parts) = reply else {
            return Err(unexpected());
        };
        let [last, refused, taken] = <[Value; 3]>::try_from(parts).map_err(|_| unexpected())?;
        if let Value::Int(last) = last {
            sent.last = last as u64;
        }
        let number = |text: Bytes| String::from_utf8_lossy(&text).parse::<u64>().ok();
        sent.taken
            .extend(texts(taken).into_iter().filter_map(number));
        sent.refused = String::from_utf8_lossy(&text(refused).unwrap_or_default()).into_owned();
        if !sent.refused.is_empty() {
            break;
        }
    }
    Ok(sent)
}
