//! The processor time of another process, from the kernel's own accounting.

use std::fs;

/// Processor time of the main thread of process `pid`, in nanoseconds; the
/// error is a sentence. A few microseconds; the process is not disturbed.
///
/// The main thread is the one that runs every command, so that 1 s divided by
/// what a message takes of it is the ceiling of the server.
pub fn main_thread_nanos(pid: u32) -> Result<u64, String> {
    let path = format!("/proc/{pid}/task/{pid}/schedstat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    text.split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| format!("{path}: no number"))
}
