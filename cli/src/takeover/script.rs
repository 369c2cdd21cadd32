//! The scripts at both ends, and what a claim asks and replies.

use redis::{Cmd, Value};

use super::keys::Keys;
use super::peer::Place;
use super::read::{text, texts};
use super::record::Bytes;
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::server::Server;

/// The most jobs of one script: while it runs, its server does nothing else.
pub const SCRIPT: usize = 50;

/// A script that a server knows by its hash.
#[derive(Debug, Clone, Default)]
pub struct Script {
    source: String,
    hash: Bytes,
}

impl Script {
    /// Creates a script of these parts. It has to be loaded before it is called.
    pub fn new(parts: &[&str]) -> Script {
        Script {
            source: parts.concat(),
            hash: Bytes::new(),
        }
    }

    /// Loads it.
    pub fn load(&mut self, server: &mut Server) -> Result<(), Failure> {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(&self.source);
        self.hash = text(server.call(&cmd)?).ok_or_else(unexpected)?;
        Ok(())
    }

    /// Begins a call with these keys.
    pub fn call(&self, keys: &[&[u8]]) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.hash).arg(keys.len()).arg(keys);
        cmd
    }
}

/// The question of a claim: how many jobs are passed over, how many are claimed at most, and the time of the source.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// The jobs of the place that are passed over.
    pub offset: u64,
    /// The most jobs.
    pub count: usize,
    /// Unix ms.
    pub now: u64,
}

/// Begins a call of a peer's script on a place: `take` claims for the holder of the lease, `peek` only reads.
pub fn claim(
    script: &Script,
    keys: &Keys,
    place: &Place,
    mode: &str,
    token: &str,
    want: Want,
) -> Cmd {
    let mut cmd = script.call(&[
        &keys.claim,
        &keys.state,
        &keys.lease,
        &place.key,
        &keys.stem,
    ]);
    cmd.arg(token).arg(mode).arg(want.offset).arg(want.count);
    cmd.arg(&place.name)
        .arg(want.now)
        .arg(place.kind)
        .arg(&place.words);
    cmd
}

/// The ids of jobs that stay, each with its reason.
pub type Passed = Vec<(Bytes, String)>;

/// Reads the reply of a claim: the packed jobs, and those that stay.
pub fn parts(reply: Value) -> Result<(Vec<Bytes>, Passed), Failure> {
    let Value::Array(parts) = reply else {
        return Err(unexpected());
    };
    let [packed, stays] = <[Value; 2]>::try_from(parts).map_err(|_| unexpected())?;
    let stays = texts(stays);
    let pairs = stays.chunks_exact(2).filter_map(|pair| {
        let reason = String::from_utf8_lossy(pair.get(1)?).into_owned();
        Some((pair.first()?.clone(), reason))
    });
    Ok((texts(packed), pairs.collect()))
}
