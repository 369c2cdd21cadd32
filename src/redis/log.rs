//! The server's log. Its messages are printf formats, and a NUL ends them:
//! text goes through `%s`, NULs are replaced.

use super::raw;
use std::ffi::CString;
use std::ptr;

/// Text as a C string, with its NULs replaced.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "?")).unwrap_or_default())
}

/// Writes a warning to the server's log, marked as this module's. Never give it
/// anything that came out of a payload.
pub fn warn(text: &str) {
    let line = c_text(&format!("dq: {text}"));
    // SAFETY: a null context is allowed; the level, format and line are C strings
    // and the format takes one string.
    unsafe {
        if let Some(write) = raw::RedisModule_Log {
            write(
                ptr::null_mut(),
                c"warning".as_ptr(),
                c"%s".as_ptr(),
                line.as_ptr(),
            );
        }
    }
}
