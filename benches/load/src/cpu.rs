//! The processor time of another process, from the kernel's own accounting.

use std::fs;

/// Returns the processor time of the main thread of process `pid`, in
/// nanoseconds. It takes a few microseconds and does not disturb the process.
///
/// The main thread runs every command, so 1 s divided by its time for a message
/// is the maximum rate of the server.
///
/// # Errors
/// A sentence that names the file which cannot be read.
pub fn main_thread_nanos(pid: u32) -> Result<u64, String> {
    let path = format!("/proc/{pid}/task/{pid}/schedstat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    text.split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| format!("{path}: no number"))
}
