//! The server's log. The server takes messages as printf formats that end with a NUL. So text is
//! passed as an argument of `%s`, and NULs in it are replaced.

use super::raw;
use std::ffi::CString;
use std::ptr;

/// Converts text to a C string. NULs become question marks.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', "?")).unwrap_or_default())
}

/// Writes a warning to the server's log, with `dq:` before it. The text must not contain any part
/// of a payload.
pub fn warn(text: &str) {
    let line = c_text(&format!("dq: {text}"));
    // SAFETY: a null context is allowed. Level, format and line are C strings, and the format takes
    // one string.
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
