//! The process of the server.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::thread;

use rustix::process::{kill_process, Pid, Signal};

use super::args::Args;
use super::event::{Ended, Event};
use super::programs::Programs;
use super::settings::Settings;
use crate::failure::Failure;

/// A server that runs.
pub struct Engine {
    process: Pid,
    /// Then the number may be that of another process.
    ended: Arc<AtomicBool>,
}

impl Engine {
    /// Starts the server with its settings. Its log and its end come as events.
    pub fn start(
        programs: &Programs,
        settings: &Settings,
        ephemeral: bool,
        sender: Sender<Event>,
    ) -> Result<Engine, Failure> {
        let (log, output) = io::pipe()?;
        let mut command = become_engine_command(programs, ephemeral, false)?;
        command
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output);
        let mut child = command.spawn()?;
        // The command holds ends of the pipe, which would keep the log open.
        drop(command);
        let process = Pid::from_child(&child);
        if let Some(mut input) = child.stdin.take() {
            // A server that ends at once says why in its log.
            let _ = input.write_all(settings.text().as_bytes());
        }
        let ended = Arc::new(AtomicBool::new(false));
        let noted = ended.clone();
        thread::spawn(move || {
            let mut log = BufReader::new(log);
            let mut line = Vec::new();
            while matches!(log.read_until(b'\n', &mut line), Ok(1..)) {
                let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                let _ = sender.send(Event::Line(text));
                line.clear();
            }
            let status = child.wait();
            noted.store(true, Ordering::Release);
            if let Ok(status) = status {
                let _ = sender.send(Event::Ended(Ended(status)));
            }
        });
        Ok(Engine { process, ended })
    }

    /// Asks the server to write its data and end.
    pub fn ask_to_end(&self) {
        self.send(Signal::TERM);
    }

    /// Ends the server at once.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        if !self.ended.load(Ordering::Acquire) {
            let _ = kill_process(self.process, signal);
        }
    }
}

impl Drop for Engine {
    /// Ends the server, if it has not ended. The data in the log of a durable server is kept.
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the command that starts a server, which reads its settings from its standard input.
///
/// First the new process is this program again, which binds its life to the thread that has started it and then
/// becomes the server: only the process itself can do that without unsafe code. It is no part of the terminal's
/// foreground, so that Ctrl-C asks us and not the server. If it is `traced`, that thread must trace it.
pub fn become_engine_command(
    programs: &Programs,
    ephemeral: bool,
    traced: bool,
) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["server", "--with", &std::process::id().to_string()]);
    command.arg("--become-engine").arg(&programs.engine);
    if ephemeral {
        command.arg("--ephemeral");
    }
    if traced {
        command.arg("--traced");
    }
    command.process_group(0);
    Ok(command)
}

/// Becomes the server. Returns only if that fails.
///
/// The kernel ends the server when the process that has started this one ends, in
/// whatever way: a server that keeps data may still write it.
pub fn become_engine(program: &Path, args: &Args) -> Failure {
    #[cfg(target_os = "linux")]
    {
        let signal = if args.ephemeral {
            Signal::KILL
        } else {
            Signal::TERM
        };
        let bound = rustix::process::set_parent_process_death_signal(Some(signal));
        let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get() as u32);
        // The parent process may have ended before this.
        if bound.is_err() || parent != args.with {
            return Failure::mistake("the process that wanted the server has ended");
        }
        if args.traced {
            if let Err(error) = nix::sys::ptrace::traceme() {
                return Failure::mistake(format!("this system lets nobody trace: {error}"));
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = args;
    let error = Command::new(program).arg("-").exec();
    Failure::mistake(format!("{} cannot be started: {error}", program.display()))
}
