//! Both ends of an import: the connections, the ledger, and the scripts.

use super::disk::Disk;
use super::fault::{at_source, at_target_end};
use super::keys::Keys;
use super::ledger::Ledger;
use super::peer::{Peer, Words};
use super::read::{text, texts};
use super::record::{Bytes, Record};
use super::script::Script;
use super::sending::{self, Job, Sent};
use crate::failure::Failure;
use crate::server::Server;

/// Both ends.
pub struct Ends {
    /// The server of the peer.
    pub source: Server,
    /// The server with dq.
    pub target: Server,
    /// The ledger.
    pub ledger: Ledger,
    /// The wait for the disks of the ledger and of the target.
    pub disk: Disk,
    /// The scripts: claims and their return, the end of a batch, the lease, sending, and what takes messages out again.
    pub peer: Script,
    settle: Script,
    lease: Script,
    send: Script,
    back: Script,
}

impl Ends {
    /// Makes the scripts known. `waiting` is another connection to the target.
    pub fn new(
        source: Server,
        target: Server,
        waiting: Server,
        ledger: Ledger,
        peer: &dyn Peer,
    ) -> Result<Ends, Failure> {
        let mut ends = Ends {
            source,
            target,
            disk: Disk::start(ledger.file()?, waiting)?,
            ledger,
            peer: Script::new(&[&peer.row().script()]),
            settle: Script::new(&[include_str!("lua/settle.lua")]),
            lease: Script::new(&[include_str!("lua/lease.lua")]),
            send: Script::new(&[include_str!("lua/send.lua")]),
            back: Script::new(&[include_str!("lua/purge.lua"), include_str!("lua/back.lua")]),
        };
        for script in [&mut ends.peer, &mut ends.settle, &mut ends.lease] {
            script.load(&mut ends.source).map_err(at_source)?;
        }
        for script in [&mut ends.send, &mut ends.back] {
            script.load(&mut ends.target).map_err(at_target_end)?;
        }
        Ok(ends)
    }

    /// Takes or renews the lease. Fails with BUSY if another ledger has it.
    pub fn hold(&mut self, keys: &Keys, token: &str) -> Result<(), Failure> {
        let mut cmd = self.lease.call(&[&keys.lease]);
        cmd.arg(token);
        let held = text(self.source.call(&cmd).map_err(at_source)?).unwrap_or_default();
        match held.is_empty() {
            true => Ok(()),
            false => Err(Failure::mistake(format!(
                "BUSY another import has this queue, with the ledger {}",
                String::from_utf8_lossy(&held)
                    .split(' ')
                    .nth(1)
                    .unwrap_or_default()
            ))),
        }
    }

    /// Begins to send jobs. Numbers up to the marker are passed over, so a call may be repeated.
    pub fn begin(&mut self, key: &[u8], marker: &str, jobs: &[Job]) -> Result<(), Failure> {
        sending::begin(&mut self.target, &self.send, key, marker, jobs)
    }

    /// Waits for the outcome of the jobs that are being sent.
    pub fn sent(&mut self, jobs: &[Job]) -> Result<Sent, Failure> {
        sending::outcome(&mut self.target, jobs)
    }

    /// Takes the first `count` jobs off the claim list. Ledger and target have them on their disks by now.
    pub fn settle(
        &mut self,
        keys: &Keys,
        token: &str,
        count: usize,
        stays: &[Bytes],
    ) -> Result<(), Failure> {
        let mut cmd = self.settle.call(&[&keys.claim, &keys.stays, &keys.lease]);
        cmd.arg(token).arg(count).arg(stays);
        self.source.call(&cmd).map_err(at_source)?;
        Ok(())
    }

    /// Takes messages out of the queue that nobody has got. Each is given as its place in the undo, its id, and the commands
    /// that follow its going. Returns the places of those that went.
    pub fn take_back(
        &mut self,
        key: &[u8],
        list: &[u8],
        jobs: &[(usize, Bytes, Vec<Words>)],
    ) -> Result<Vec<usize>, Failure> {
        let mut cmd = self.back.call(&[key, list]);
        for (place, id, commands) in jobs {
            cmd.arg(*place).arg(id).arg(commands.len());
            for words in commands {
                cmd.arg(words.len()).arg(words);
            }
        }
        let gone = texts(self.target.call(&cmd).map_err(at_target_end)?).into_iter();
        Ok(gone
            .filter_map(|place| String::from_utf8(place).ok()?.parse().ok())
            .collect())
    }

    /// Puts records back, the last claimed first, and notes how far it has come. Returns the ids that are in use again.
    pub fn put_back(
        &mut self,
        keys: &Keys,
        records: &[Record],
        how: Back,
    ) -> Result<Vec<Bytes>, Failure> {
        let (list, count, word) = match how {
            Back::Stays => (&keys.stays, records.len() as u64, "trim"),
            Back::Undo(place) => (&keys.undone, place, "mark"),
        };
        let mut cmd = self.peer.call(&[list, &keys.stem, &keys.conflicts]);
        cmd.arg(count).arg(word);
        for record in records {
            cmd.arg(&record.packed);
        }
        Ok(texts(self.source.call(&cmd).map_err(at_source)?))
    }
}

/// The records that are put back: which, and why.
#[derive(Debug, Clone, Copy)]
pub enum Back {
    /// The end of the list of those that stay.
    Stays,
    /// The messages of an undo up to this place.
    Undo(u64),
}
