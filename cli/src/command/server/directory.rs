//! The directory of a server's data, which only one server uses at a time.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::io::{fcntl_setfd, FdFlags};

use super::event::Ended;
use crate::data_folder::data_folder;
use crate::failure::Failure;

/// A directory that is locked for this server. `make run` locks it in the same way.
pub struct Directory {
    path: PathBuf,
    lock: File,
}

impl Directory {
    /// Makes the directory if it is missing, and locks it.
    ///
    /// The server inherits the lock, and so do the processes that it forks to save. So
    /// the lock is held until the last of them has ended, even if this program is killed.
    /// A lock of a process that is gone does not exist: the kernel has released it.
    pub fn open(named: Option<&Path>, port: u16) -> Result<Directory, Failure> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => default(port)?,
        };
        let path = std::path::absolute(&path)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| unusable(&path, &error))?;
        let lock = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(|error| unusable(&path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&path, lock)),
            Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
        }
        let mut directory = Directory { path, lock };
        if let Some(process) = directory.owner() {
            eprintln!("dq server: the last server here (process {process}) was not stopped properly; its log is read");
        }
        directory.name_owner()?;
        fcntl_setfd(&directory.lock, FdFlags::empty()).map_err(std::io::Error::from)?;
        Ok(directory)
    }

    /// Returns the absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the server has ended properly, if it has.
    pub fn leave(&self, ended: &Ended) {
        if ended.code() == 0 {
            // If this fails, the next server says that this one was not stopped properly.
            let _ = self.lock.set_len(0);
        }
    }

    fn owner(&mut self) -> Option<u32> {
        owner(&mut self.lock)
    }

    fn name_owner(&mut self) -> Result<(), Failure> {
        self.lock.set_len(0)?;
        writeln!(self.lock, "{}", std::process::id())?;
        Ok(())
    }
}

/// Returns the process that has written its number into the lock file last.
fn owner(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.rewind().ok()?;
    lock.read_to_string(&mut text).ok()?;
    text.lines().last()?.trim().parse().ok()
}

/// The default directory of the data, which is the one for the data of the user's programs.
fn default(port: u16) -> Result<PathBuf, Failure> {
    let ours = data_folder().ok_or_else(|| {
        Failure::mistake("there is no home directory for the data: name a place with --data DIR")
    })?;
    Ok(ours.join(port.to_string()))
}

fn in_use(path: &Path, mut lock: File) -> Failure {
    let who = match owner(&mut lock) {
        Some(process) => format!(" (process {process})"),
        None => String::new(),
    };
    Failure::mistake(format!(
        "the data directory {} is in use by another server{who}: stop that one, or take another with --data DIR",
        path.display()
    ))
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::mistake(match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => format!(
            "the data directory {path} is not writable for this user: take another with --data DIR"
        ),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            format!("{path} is no directory: take another with --data DIR")
        }
        _ => format!("the data directory {path} cannot be used: {error}"),
    })
}

/// A directory for a server that keeps nothing. It is deleted when this value goes.
pub struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Makes a directory that only this user can enter.
    pub fn new() -> Result<Temporary, Failure> {
        let base = env::temp_dir();
        for attempt in 0..100 {
            let path = base.join(format!("dq-server-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Temporary { path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unusable(&base, &error)),
            }
        }
        Err(Failure::mistake(format!(
            "{} is full of our directories",
            base.display()
        )))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
