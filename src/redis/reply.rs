//! Replies, streamed: building them as a tree first costs half as much again.

use super::context::CTX_RESP3;
use super::log::c_text;
use super::{raw, Context};
use dq_queue::args::ArgError;
use std::borrow::Cow;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_int, c_long, c_longlong};

/// Why a command answers an error: its text, which starts with the code word
/// (`ERR no such queue`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub Cow<'static, str>);

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Failure(Cow::Borrowed(text))
    }
}

impl From<ArgError> for Failure {
    fn from(error: ArgError) -> Self {
        Failure(error.0)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure(Cow::Owned(text))
    }
}

/// What a handler answers: `Ok` once it has written its reply, or the error
/// to send instead. With an error nothing must have been written or changed.
pub type CommandResult = Result<(), Failure>;

/// Writes the reply of a call, part by part, in the order the client reads.
#[derive(Clone, Copy)]
pub struct Reply<'a> {
    ctx: *mut raw::RedisModuleCtx,
    life: PhantomData<&'a Context>,
}

impl<'a> Reply<'a> {
    /// # Safety
    /// `ctx` must be live for `'a`.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Reply {
            ctx,
            life: PhantomData,
        }
    }

    /// Starts an array of `count` elements, which must follow.
    #[inline]
    pub fn array(self, count: usize) {
        // SAFETY: the context is live (see new), here and below.
        unsafe { api!(RedisModule_ReplyWithArray(self.ctx, count as c_long)) };
    }

    /// Starts a map of `count` pairs, which must follow, key before value.
    /// Under RESP2 it is an array of twice as many elements.
    #[inline]
    pub fn map(self, count: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap(self.ctx, count as c_long)) };
    }

    /// An integer.
    #[inline]
    pub fn integer(self, value: i64) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.ctx, value as c_longlong)) };
    }

    /// An integer; what is beyond the largest signed one is that one.
    #[inline]
    pub fn unsigned(self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A string of any bytes.
    #[inline]
    pub fn bulk(self, bytes: &[u8]) {
        // SAFETY: as above; the server copies the bytes.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(
                self.ctx,
                bytes.as_ptr().cast(),
                bytes.len()
            ))
        };
    }

    /// A status such as `OK`.
    #[inline]
    pub fn status(self, text: &'static CStr) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.ctx, text.as_ptr())) };
    }

    /// Null.
    #[inline]
    pub fn null(self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull(self.ctx)) };
    }

    /// Null where the client expects an array or nothing; RESP2 has a null of
    /// its own for that.
    #[inline]
    pub fn null_array(self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNullArray(self.ctx)) };
    }

    /// A boolean; 0 or 1 under RESP2.
    #[inline]
    pub fn boolean(self, value: bool) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithBool(self.ctx, c_int::from(value))) };
    }

    /// A double; under RESP2 the shortest text that reads back as the same
    /// one, where servers differ among each other.
    pub fn double(self, value: f64) {
        // SAFETY: as above.
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) };
        if flags & CTX_RESP3 != 0 {
            // SAFETY: as above.
            unsafe { api!(RedisModule_ReplyWithDouble(self.ctx, value)) };
        } else if value.abs() >= 1e17 || (value != 0.0 && value.abs() < 1e-7) {
            self.bulk(format!("{value:e}").as_bytes());
        } else {
            self.bulk(format!("{value}").as_bytes());
        }
    }

    /// An error; `text` starts with its code word. Line ends and other control
    /// bytes, which could forge a second reply, become spaces.
    pub fn error(self, text: &str) {
        let line = if text.bytes().any(|byte| byte < b' ') {
            c_text(&text.replace(|c: char| c < ' ', " "))
        } else {
            c_text(text)
        };
        // SAFETY: as above; the server copies the line.
        unsafe { api!(RedisModule_ReplyWithError(self.ctx, line.as_ptr())) };
    }
}
