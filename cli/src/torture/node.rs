//! A server of a round, in a directory of its own.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use redis::Value;

#[cfg(target_os = "linux")]
use super::power::{Failed, Watched};
use crate::command::server::{become_engine_command, quoted, Programs};
use crate::failure::Failure;
use crate::model::record::shown;
use crate::server::{Endpoint, Server};

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
/// Leases that run when the server has loaded its data last so much longer, in ms.
const GRACE: u32 = 300;

/// A server.
pub struct Node<'a> {
    programs: &'a Programs,
    /// The directory of its files.
    pub folder: PathBuf,
    /// Its port.
    pub port: u16,
    appendfsync: &'static str,
    watched: bool,
    running: Option<Running>,
    /// How long each sync took, and how many bytes were and were not lost to power failures.
    pub disk: Disk,
}

/// The work of the server's disk.
#[derive(Debug, Default)]
pub struct Disk {
    /// The time of each sync, where they were watched.
    pub syncs: Vec<Duration>,
    /// How many bytes were written and not synced when the power failed.
    pub unsynced: u64,
    /// How many of them were cut off.
    pub cut: u64,
}

enum Running {
    Plain(Child),
    #[cfg(target_os = "linux")]
    Watched(Watched),
}

impl<'a> Node<'a> {
    /// Prepares a server. If it is watched, its power can fail.
    pub fn new(
        programs: &'a Programs,
        folder: PathBuf,
        appendfsync: &'static str,
        watched: bool,
    ) -> Result<Node<'a>, Failure> {
        fs::create_dir(&folder)?;
        Ok(Node {
            programs,
            folder,
            port: free_port()?,
            appendfsync,
            watched,
            running: None,
            disk: Disk::default(),
        })
    }

    /// Starts the server and waits until it answers. `primary` is the port of the server that it follows.
    pub fn start(&mut self, primary: Option<u16>) -> Result<(), Failure> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = become_engine_command(self.programs, true, self.watched)?;
        command
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log);
        let settings = self.settings(primary);
        self.running = Some(self.spawn(command, settings)?);
        let begin = Instant::now();
        while !self.answers() {
            if self.has_ended() || begin.elapsed() > PATIENCE {
                let log = fs::read(self.log()).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).into_owned();
                let lines: Vec<&str> = log.lines().rev().take(12).collect();
                let lines = lines.into_iter().rev().collect::<Vec<_>>().join("\n  ");
                return Err(Failure::mistake(format!(
                    "the server does not start. Its last lines:\n  {lines}"
                )));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn spawn(&self, command: Command, settings: String) -> Result<Running, Failure> {
        match self.watched {
            true => Ok(Running::Watched(Watched::start(
                command,
                settings,
                &self.log_folder(),
            )?)),
            false => plain(command, &settings),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn spawn(&self, command: Command, settings: String) -> Result<Running, Failure> {
        plain(command, &settings)
    }

    fn settings(&self, primary: Option<u16>) -> String {
        let folder = quoted(self.folder.as_os_str().as_encoded_bytes());
        let module = quoted(self.programs.module.as_os_str().as_encoded_bytes());
        let mut text = format!(
            "bind 127.0.0.1\nport {}\ndir {folder}\nsave \"\"\nappendonly yes\nappendfsync {}\n\
             auto-aof-rewrite-percentage 0\nrepl-diskless-sync-delay 0\nmaxmemory-policy noeviction\n\
             loadmodule {module}\ndq.start-grace {GRACE}\n",
            self.port, self.appendfsync
        );
        if let Some(primary) = primary {
            let _ = writeln!(text, "replicaof 127.0.0.1 {primary}");
        }
        text
    }

    fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Returns the folder of the append-only files.
    #[cfg(target_os = "linux")]
    fn log_folder(&self) -> PathBuf {
        self.folder.join("appendonlydir")
    }

    fn answers(&self) -> bool {
        self.connect()
            .is_ok_and(|mut server| server.call(&redis::cmd("PING")).is_ok())
    }

    fn has_ended(&mut self) -> bool {
        match &mut self.running {
            None => true,
            Some(Running::Plain(child)) => !matches!(child.try_wait(), Ok(None)),
            #[cfg(target_os = "linux")]
            Some(Running::Watched(watched)) => watched.has_ended(),
        }
    }

    /// Connects to the server.
    pub fn connect(&self) -> Result<Server, Failure> {
        Endpoint::local(self.port).connect()
    }

    /// Ends the server at once, as `kill -9`.
    pub fn kill(&mut self) {
        match self.running.take() {
            None => {}
            Some(Running::Plain(mut child)) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            #[cfg(target_os = "linux")]
            Some(Running::Watched(watched)) => {
                let failed = watched.fail(false);
                self.disk.syncs.extend(failed.syncs.times);
            }
        }
    }

    /// Lets the power of the server fail, and cuts off what its disk may lose. Without a watch it is a `kill -9`.
    pub fn lose_power(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        if let Some(Running::Watched(watched)) =
            self.running.take_if(|r| matches!(r, Running::Watched(_)))
        {
            let failed: Failed = watched.fail(rng.bool());
            let (unsynced, cut) = failed.cut(&self.log_folder(), rng)?;
            self.disk.unsynced += unsynced;
            self.disk.cut += cut;
            self.disk.syncs.extend(failed.syncs.times);
        }
        let _ = rng;
        self.kill();
        Ok(())
    }

    /// Sets a setting of the running server.
    pub fn set(&self, name: &str, value: &str) -> Result<(), Failure> {
        self.connect()?
            .call(redis::cmd("CONFIG").arg(&["SET", name, value]))?;
        Ok(())
    }

    /// Reads a field of INFO.
    pub fn info(&self, section: &str, field: &str) -> Result<String, Failure> {
        let reply = self.connect()?.call(redis::cmd("INFO").arg(section))?;
        let text = match &reply {
            Value::VerbatimString { text, .. } => text.clone(),
            Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => shown(other),
        };
        let found = text
            .lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .find(|(name, _)| *name == field);
        Ok(found.map(|(_, value)| value.to_owned()).unwrap_or_default())
    }

    /// Waits until a field of INFO has a value.
    pub fn wait_for(&self, section: &str, field: &str, value: &str) -> Result<(), Failure> {
        let begin = Instant::now();
        while self.info(section, field).ok().as_deref() != Some(value) {
            if begin.elapsed() > PATIENCE {
                return Err(Failure::mistake(format!(
                    "the server did not come to {field}:{value}; its log is {}",
                    self.log().display()
                )));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a port that nobody uses, below those which the kernel gives to outgoing connections: one of those could be
/// taken while the server is down.
fn free_port() -> Result<u16, Failure> {
    for _ in 0..100 {
        let port = fastrand::u16(11_000..22_000);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Failure::mistake(
        "there is no free port from 11000 to 22000",
    ))
}

fn plain(mut command: Command, settings: &str) -> Result<Running, Failure> {
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A server that ends at once says why in its log.
        let _ = input.write_all(settings.as_bytes());
    }
    Ok(Running::Plain(child))
}

/// A small disk of its own, which is gone with this value.
pub struct SmallDisk<'a> {
    folder: &'a Path,
}

impl SmallDisk<'_> {
    /// Mounts it at a folder. Only root may, and only on Linux.
    #[cfg(target_os = "linux")]
    pub fn mount(folder: &Path) -> Result<SmallDisk<'_>, Failure> {
        use rustix::mount::{mount, MountFlags};
        mount("tmpfs", folder, "tmpfs", MountFlags::empty(), c"size=64m")
            .map_err(|error| Failure::mistake(format!("no small disk can be mounted: {error}")))?;
        Ok(SmallDisk { folder })
    }

    /// Fails: other systems have no disk in memory that a program can mount.
    #[cfg(not(target_os = "linux"))]
    pub fn mount(_: &Path) -> Result<SmallDisk<'_>, Failure> {
        Err(Failure::mistake(
            "a small disk can be mounted only on Linux",
        ))
    }

    /// Writes until nothing more fits.
    pub fn fill(&self) -> Result<(), Failure> {
        let mut file = File::create(self.filler())?;
        for size in [1 << 20, 1 << 12, 1] {
            while file
                .write(&vec![0; size])
                .is_ok_and(|written| written == size)
            {}
        }
        Ok(())
    }

    /// Makes room again.
    pub fn clear(&self) -> Result<(), Failure> {
        Ok(fs::remove_file(self.filler())?)
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::mount::unmount(self.folder, rustix::mount::UnmountFlags::DETACH);
    }
}
