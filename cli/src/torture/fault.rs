//! The faults, and what each of them does to the servers of a round.

use std::path::Path;
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::history::{Journal, Ms, Window};
use super::link::Place;
use super::node::{Node, SmallDisk};
use crate::failure::Failure;

/// With `appendfsync everysec` a server answers for at most this time, in ms, before a sync: a second, and up to two where
/// a sync takes long.
const EVERYSEC: Ms = 2200.0;
/// How long a full disk stays full, in ms.
const FULL: u64 = 600;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// kill -9, with appendfsync always
    Kill,
    /// The power fails, with appendfsync always
    PowerAlways,
    /// The power fails, with appendfsync everysec
    PowerEverysec,
    /// The primary dies and its replica goes on; calls are confirmed by WAIT
    Failover,
    /// The disk is full for a moment, with appendfsync everysec
    DiskFull,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 5] = [
        Fault::Kill,
        Fault::PowerAlways,
        Fault::PowerEverysec,
        Fault::Failover,
        Fault::DiskFull,
    ];

    /// Returns its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::PowerAlways => "power-always",
            Fault::PowerEverysec => "power-everysec",
            Fault::Failover => "failover",
            Fault::DiskFull => "disk-full",
        }
    }

    /// Returns the promise that it tests.
    pub fn promise(self) -> &'static str {
        match self {
            Fault::Kill | Fault::PowerAlways => "nothing that was answered is lost",
            Fault::PowerEverysec => "at most the last 2.2 s are lost, and only the end",
            Fault::Failover => "nothing that WAIT has confirmed is lost",
            Fault::DiskFull => "what is refused is not there, all else goes on",
        }
    }

    /// Returns the setting of the server.
    pub fn appendfsync(self) -> &'static str {
        match self {
            Fault::PowerEverysec | Fault::DiskFull => "everysec",
            _ => "always",
        }
    }

    /// Returns whether the syncs of the server must be watched.
    pub fn watches(self) -> bool {
        matches!(self, Fault::PowerAlways | Fault::PowerEverysec)
    }

    /// Fails where this system or this user cannot do it. The folder is there and empty.
    pub fn is_possible(self, folder: &Path) -> Result<(), Failure> {
        match self {
            Fault::DiskFull => SmallDisk::mount(folder).map(drop),
            #[cfg(target_os = "linux")]
            Fault::PowerAlways | Fault::PowerEverysec => super::power::is_possible(folder),
            #[cfg(not(target_os = "linux"))]
            Fault::PowerAlways | Fault::PowerEverysec => {
                Err(Failure::mistake("syncs are watched only on Linux"))
            }
            Fault::Kill | Fault::Failover => Ok(()),
        }
    }

    /// Returns the time from one injection to the next, in ms.
    pub fn pause(self, rng: &mut Rng) -> Duration {
        let ms = match self {
            Fault::PowerEverysec => 2000..4500,
            _ => 500..2000,
        };
        Duration::from_millis(rng.u64(ms))
    }

    /// Does it once. Returns when the server answers again.
    pub fn inject(
        self,
        nodes: &mut [Node],
        disk: Option<&SmallDisk>,
        place: &Place,
        journal: &Journal,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        match (self, nodes, disk) {
            (Fault::DiskFull, [node, ..], Some(disk)) => fill(node, disk, journal, rng),
            (Fault::Failover, [one, other], _) => fail_over(one, other, place, journal, rng),
            (_, [node, ..], _) => crash(self, node, journal, rng),
            _ => Ok(()),
        }
    }
}

fn crash(fault: Fault, node: &mut Node, journal: &Journal, rng: &mut Rng) -> Result<(), Failure> {
    let at = journal.now();
    if fault == Fault::Kill {
        journal.fault("kill -9");
        node.kill();
    } else {
        journal.fault("the power fails");
        node.lose_power(rng)?;
    }
    let dead = journal.now();
    node.start(None)?;
    journal.fault("the server is back");
    if fault == Fault::PowerEverysec {
        let to = journal.now();
        let mut history = journal.open();
        // The disk has the data that an earlier failure left.
        let earlier = history.windows.last().map_or(0.0, |w| w.to);
        let from = (at - EVERYSEC).max(earlier);
        history.windows.push(Window { from, at: dead, to });
    }
    Ok(())
}

/// The primary dies, or hands over. The other one goes on, and the first comes back as its replica.
fn fail_over<'a>(
    one: &mut Node<'a>,
    other: &mut Node<'a>,
    place: &Place,
    journal: &Journal,
    rng: &mut Rng,
) -> Result<(), Failure> {
    let (old, new) = match place.port() == one.port {
        true => (one, other),
        false => (other, one),
    };
    if rng.bool() {
        journal.fault("FAILOVER");
        old.connect()?.call(&redis::cmd("FAILOVER"))?;
        new.wait_for("replication", "role", "master")?;
        place.is_at(new.port);
    } else {
        journal.fault("kill -9 of the primary");
        old.kill();
        let at = journal.now();
        new.connect()?
            .call(redis::cmd("REPLICAOF").arg(&["NO", "ONE"]))?;
        place.is_at(new.port);
        let to = journal.now();
        let mut history = journal.open();
        // The replica that goes on now has everything that came before it followed the old primary.
        let from = history.windows.last().map_or(0.0, |w| w.to);
        history.windows.push(Window { from, at, to });
        drop(history);
        old.start(Some(new.port))?;
    }
    old.wait_for("replication", "master_link_status", "up")?;
    journal.fault("the replica goes on, the old primary follows it");
    Ok(())
}

fn fill(node: &Node, disk: &SmallDisk, journal: &Journal, rng: &mut Rng) -> Result<(), Failure> {
    journal.fault("the disk is full");
    disk.fill()?;
    node.wait_for("persistence", "aof_last_write_status", "err")?;
    thread::sleep(Duration::from_millis(rng.u64(..FULL)));
    disk.clear()?;
    node.wait_for("persistence", "aof_last_write_status", "ok")?;
    journal.fault("there is room again");
    Ok(())
}
