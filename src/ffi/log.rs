//! The server's log. Its messages are printf formats, and a NUL ends them:
//! text goes through `%s`, NULs are replaced.

use super::raw;
use std::ffi::{CStr, CString};
use std::ptr;

/// How loud a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Only of interest while looking for a fault.
    Debug,
    /// Worth knowing.
    Notice,
    /// Somebody should look.
    Warning,
}

impl Level {
    fn name(self) -> &'static CStr {
        match self {
            Level::Debug => c"debug",
            Level::Notice => c"notice",
            Level::Warning => c"warning",
        }
    }
}

/// Text as a C string, with its NULs replaced.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "?")).unwrap_or_default())
}

/// Writes a line to the server's log, marked as this module's. Never give it
/// anything that came out of a payload.
pub fn log(level: Level, text: &str) {
    let line = c_text(&format!("dq: {text}"));
    // SAFETY: a null context is allowed; level, format and line are C strings
    // and the format takes one string.
    unsafe {
        if let Some(write) = raw::RedisModule_Log {
            write(
                ptr::null_mut(),
                level.name().as_ptr(),
                c"%s".as_ptr(),
                line.as_ptr(),
            );
        }
    }
}
