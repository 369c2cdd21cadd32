//! A power failure takes everything that was written and not synced.
//!
//! The server runs under ptrace, which needs no rights and no library in the server. At each fsync and fdatasync it is
//! noted how long the file is, before the call. When the power fails, the server is killed and each file is cut somewhere
//! between that length and its end. Everything that a later length would need has not been confirmed by the kernel.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use crate::command::server::{become_engine_command, Programs};
use crate::failure::Failure;

/// How long the power waits for a sync to fail in. A server that never syncs loses its power then.
const SYNC_MAY_TAKE: Duration = Duration::from_millis(1500);

/// The lengths of the files that were synced, by inode, and how long each sync took.
#[derive(Debug, Default)]
pub struct Syncs {
    lengths: HashMap<u64, u64>,
    /// The time that each sync took.
    pub times: Vec<Duration>,
    /// Whether the process was traced at all.
    traced: bool,
}

/// A server whose syncs are watched.
pub struct Watched {
    process: Pid,
    fails_at_sync: Arc<AtomicBool>,
    watcher: JoinHandle<Syncs>,
    /// The lengths of the files at the start, which the disk has.
    before: HashMap<u64, u64>,
}

impl Watched {
    /// Starts the server. Its program must ask to be traced, as `dq server --become-engine` does with `--traced`.
    pub fn start(
        mut command: Command,
        settings: String,
        folder: &Path,
    ) -> Result<Watched, Failure> {
        let before = files(folder)?.iter().map(|f| (f.ino(), f.len())).collect();
        let fails_at_sync = Arc::new(AtomicBool::new(false));
        let fails = fails_at_sync.clone();
        let (sender, receiver) = mpsc::channel();
        // The thread that starts a process is the one that may trace it.
        let watcher = thread::spawn(move || {
            let started = command.spawn().and_then(|mut child| {
                let process = Pid::from_raw(child.id().cast_signed());
                let written = child
                    .stdin
                    .take()
                    .map(|mut input| input.write_all(settings.as_bytes()));
                written.unwrap_or(Ok(())).map(|()| process)
            });
            let process = started.as_ref().ok().copied();
            let _ = sender.send(started);
            process.map_or_else(Syncs::default, |process| watch(process, &fails))
        });
        let process = receiver
            .recv()
            .map_err(|_| Failure::mistake("the thread that watches the server has ended"))??;
        Ok(Watched {
            process,
            fails_at_sync,
            watcher,
            before,
        })
    }

    /// Lets the power fail: now, or in the next sync, which then has not begun.
    pub fn fail(self, at_sync: bool) -> Failed {
        if at_sync {
            self.fails_at_sync.store(true, Ordering::Release);
            let begin = Instant::now();
            while !self.watcher.is_finished() && begin.elapsed() < SYNC_MAY_TAKE {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let _ = kill(self.process, Signal::SIGKILL);
        let syncs = self.watcher.join().unwrap_or_default();
        Failed {
            syncs,
            before: self.before,
        }
    }

    /// Returns whether the server has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.watcher.is_finished()
    }
}

/// The state of the disk behind a power failure.
pub struct Failed {
    /// The syncs of the server.
    pub syncs: Syncs,
    before: HashMap<u64, u64>,
}

impl Failed {
    /// Cuts the files of the folder as the failure might have. Returns how many bytes were not synced, and how many of
    /// them are gone.
    pub fn cut(&self, folder: &Path, rng: &mut Rng) -> Result<(u64, u64), Failure> {
        let (mut unsynced, mut gone) = (0, 0);
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let file = entry.metadata()?;
            let synced = self.syncs.lengths.get(&file.ino());
            let kept = synced.or_else(|| self.before.get(&file.ino())).copied();
            let kept = kept.unwrap_or(0).min(file.len());
            // In half of the cases everything that is not synced is gone, in the others some of it is on the disk.
            let length = if rng.bool() {
                kept
            } else {
                rng.u64(kept..=file.len())
            };
            unsynced += file.len() - kept;
            gone += file.len() - length;
            File::options()
                .write(true)
                .open(entry.path())?
                .set_len(length)?;
        }
        Ok((unsynced, gone))
    }
}

/// Fails if this system lets no process be traced.
pub fn is_possible(folder: &Path) -> Result<(), Failure> {
    let programs = Programs {
        engine: "/bin/true".into(),
        module: "/dev/null".into(),
    };
    let mut command = become_engine_command(&programs, true, true)?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let watched = Watched::start(command, String::new(), folder)?;
    match watched.watcher.join() {
        Ok(syncs) if syncs.traced => Ok(()),
        _ => Err(Failure::mistake("this system lets no process be traced")),
    }
}

/// Returns the files of a folder, which may not be there yet.
fn files(folder: &Path) -> Result<Vec<fs::Metadata>, Failure> {
    match folder.is_dir() {
        true => Ok(fs::read_dir(folder)?
            .map(|entry| entry?.metadata())
            .collect::<Result<_, _>>()?),
        false => Ok(Vec::new()),
    }
}

/// Watches the process, its threads and its children until it has ended.
fn watch(process: Pid, fails_at_sync: &AtomicBool) -> Syncs {
    let mut syncs = Syncs::default();
    // Each thread is in nothing, in a call that is none of ours, or in a sync.
    let mut threads: HashMap<Pid, Option<Call>> = HashMap::new();
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        let status = match waitpid(None, Some(flags)) {
            Ok(status) => status,
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return syncs,
        };
        let Some(thread) = status.pid() else { continue };
        let signal = match status {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                threads.remove(&thread);
                continue;
            }
            WaitStatus::PtraceSyscall(_) => {
                let call = threads.entry(thread).or_default();
                match call.take() {
                    Some(Call::Sync {
                        inode,
                        length,
                        begin,
                    }) => {
                        syncs.lengths.insert(inode, length);
                        syncs.times.push(begin.elapsed());
                    }
                    Some(Call::Other) => {}
                    None => {
                        *call = Some(Call::entered(thread));
                        if matches!(call, Some(Call::Sync { .. }))
                            && fails_at_sync.load(Ordering::Acquire)
                        {
                            let _ = kill(process, Signal::SIGKILL);
                            continue;
                        }
                    }
                }
                None
            }
            // The first stop: the program has become the server.
            WaitStatus::Stopped(_, Signal::SIGTRAP) if !syncs.traced => {
                syncs.traced = true;
                let options = Options::PTRACE_O_TRACESYSGOOD
                    | Options::PTRACE_O_TRACECLONE
                    | Options::PTRACE_O_TRACEFORK
                    | Options::PTRACE_O_TRACEVFORK
                    | Options::PTRACE_O_TRACEEXEC
                    | Options::PTRACE_O_EXITKILL;
                let _ = ptrace::setoptions(thread, options);
                None
            }
            WaitStatus::PtraceEvent(..) => None,
            // A new thread begins with a stop that is not for it.
            WaitStatus::Stopped(_, Signal::SIGSTOP) => None,
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        // If it fails, the thread is gone.
        let _ = ptrace::syscall(thread, signal);
    }
}

/// A system call that a thread is in.
enum Call {
    Sync {
        inode: u64,
        length: u64,
        begin: Instant,
    },
    Other,
}

impl Call {
    /// Reads which call a thread has just entered.
    fn entered(thread: Pid) -> Call {
        Call::sync(thread).unwrap_or(Call::Other)
    }

    fn sync(thread: Pid) -> Option<Call> {
        let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
        let mut words = text.split(' ');
        let number: libc::c_long = words.next()?.parse().ok()?;
        if number != libc::SYS_fsync && number != libc::SYS_fdatasync {
            return None;
        }
        let descriptor = i64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        let file = fs::metadata(format!("/proc/{thread}/fd/{descriptor}")).ok()?;
        file.is_file().then(|| Call::Sync {
            inode: file.ino(),
            length: file.len(),
            begin: Instant::now(),
        })
    }
}
