//! The process that has started this one.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::process::getppid;

use super::event::Event;

/// The pause between two checks, on systems whose kernel cannot report the end.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends an event when the process that has started this one ends.
///
/// The death signal of Linux would not do: it tells of the end of the *thread* that has
/// started us, and runtimes such as Go's end threads at any time.
pub fn watch(sender: Sender<Event>) {
    // In a container the parent may be outside, where it cannot be seen.
    let Some(parent) = getppid() else { return };
    thread::spawn(move || {
        #[cfg(target_os = "linux")]
        {
            use rustix::event::{poll, PollFd, PollFlags};
            use rustix::process::{pidfd_open, PidfdFlags};

            if let Ok(file) = pidfd_open(parent, PidfdFlags::empty()) {
                // If the parent has ended before, the file may be another process.
                if getppid() == Some(parent) {
                    let mut wanted = [PollFd::new(&file, PollFlags::IN)];
                    while poll(&mut wanted, None).is_err() {}
                }
            }
        }
        while getppid() == Some(parent) {
            thread::sleep(PAUSE);
        }
        let _ = sender.send(Event::Orphaned);
    });
}
