//! Writes replies. They are streamed: building them as a tree first would cost 50 % more.

use super::context::CTX_RESP3;
use super::log::c_text;
use super::{raw, Context};
use dq_queue::args::ArgError;
use dq_queue::message::score::{Number, Score};
use std::borrow::Cow;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_int, c_long, c_longlong};

/// The text of an error reply. It starts with the error's code (`ERR no such queue`).
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

/// The result of a handler: `Ok` if it has written its reply, or the error to reply with. A handler
/// that returns an error must not have written or changed anything.
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

    /// Starts an array. The caller must then write `count` elements.
    #[inline]
    pub fn array(self, count: usize) {
        // SAFETY: the context is live (see new), here and below.
        unsafe { api!(RedisModule_ReplyWithArray(self.ctx, count as c_long)) };
    }

    /// Starts a map. The caller must then write `count` pairs, each key before its value. Under
    /// RESP2 it is an array of twice as many elements.
    #[inline]
    pub fn map(self, count: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap(self.ctx, count as c_long)) };
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(self, value: i64) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.ctx, value as c_longlong)) };
    }

    /// Writes an integer. A value above `i64::MAX` becomes `i64::MAX`.
    #[inline]
    pub fn unsigned(self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Writes a string of any bytes.
    #[inline]
    pub fn bulk(self, bytes: &[u8]) {
        // SAFETY: as above. The server copies the bytes.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(
                self.ctx,
                bytes.as_ptr().cast(),
                bytes.len()
            ))
        };
    }

    /// Writes a status such as `OK`.
    #[inline]
    pub fn status(self, text: &'static CStr) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.ctx, text.as_ptr())) };
    }

    /// Writes null.
    #[inline]
    pub fn null(self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull(self.ctx)) };
    }

    /// Writes null instead of an array. RESP2 has a null of its own for that.
    #[inline]
    pub fn null_array(self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNullArray(self.ctx)) };
    }

    /// Writes a boolean. Under RESP2 it is 0 or 1.
    #[inline]
    pub fn boolean(self, value: bool) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithBool(self.ctx, c_int::from(value))) };
    }

    /// Writes a double. Under RESP2 it is the shortest text that reads back as the same double: it
    /// is composed here, because servers differ in how they write doubles.
    pub fn double(self, value: f64) {
        if self.is_resp3() {
            // SAFETY: as above.
            unsafe { api!(RedisModule_ReplyWithDouble(self.ctx, value)) };
        } else if value.abs() >= 1e17 || (value != 0.0 && value.abs() < 1e-7) {
            self.bulk(format!("{value:e}").as_bytes());
        } else {
            self.bulk(format!("{value}").as_bytes());
        }
    }

    /// Writes a score. It is a double up to 2^53 and beyond the integers of 64 bits. In between it is
    /// an integer: many clients would round the double. Under RESP2 it is a string in any case.
    pub fn score(self, score: Score) {
        let text = match score.number() {
            Number::Double(number) => return self.double(number),
            Number::Integer(number) if self.is_resp3() => return self.integer(number),
            Number::Integer(number) => number.to_string(),
            Number::Large(number) => number.to_string(),
        };
        // SAFETY: as above. The server copies the text.
        unsafe {
            api!(RedisModule_ReplyWithBigNumber(
                self.ctx,
                text.as_ptr().cast(),
                text.len()
            ))
        };
    }

    /// Writes a double that the server has written as text. Under RESP2 it is that text.
    pub fn double_text(self, text: &[u8]) {
        let number = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        match number.filter(|_| self.is_resp3()) {
            Some(number) => self.double(number),
            None => self.bulk(text),
        }
    }

    /// Writes the name of a field of a map. The caller must then write its value.
    #[inline]
    pub fn name(self, name: &str) {
        self.bulk(name.as_bytes());
    }

    /// Writes a field of a map: its name and its value.
    #[inline]
    pub fn field(self, name: &str, value: impl ReplyValue) {
        self.name(name);
        value.write(self);
    }

    /// Writes a value.
    #[inline]
    pub fn value(self, value: impl ReplyValue) {
        value.write(self);
    }

    fn is_resp3(self) -> bool {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetContextFlags(self.ctx)) & CTX_RESP3 != 0 }
    }

    /// Writes an error. `text` starts with the error's code. Line ends and other control characters
    /// become spaces, because they could forge a second reply.
    pub fn error(self, text: &str) {
        let line = if text.bytes().any(|byte| byte < b' ') {
            c_text(&text.replace(|c: char| c < ' ', " "))
        } else {
            c_text(text)
        };
        // SAFETY: as above. The server copies the line.
        unsafe { api!(RedisModule_ReplyWithError(self.ctx, line.as_ptr())) };
    }
}

/// A value that a reply can have.
pub trait ReplyValue {
    /// Writes the value.
    fn write(self, reply: Reply<'_>);
}

impl ReplyValue for u64 {
    #[inline]
    fn write(self, reply: Reply<'_>) {
        reply.unsigned(self);
    }
}

impl ReplyValue for i64 {
    #[inline]
    fn write(self, reply: Reply<'_>) {
        reply.integer(self);
    }
}

impl ReplyValue for bool {
    #[inline]
    fn write(self, reply: Reply<'_>) {
        reply.boolean(self);
    }
}

impl ReplyValue for Score {
    fn write(self, reply: Reply<'_>) {
        reply.score(self);
    }
}

/// Text, of any bytes.
impl<T: AsRef<[u8]> + ?Sized> ReplyValue for &T {
    #[inline]
    fn write(self, reply: Reply<'_>) {
        reply.bulk(self.as_ref());
    }
}

/// Null where there is no value.
impl<T: ReplyValue> ReplyValue for Option<T> {
    #[inline]
    fn write(self, reply: Reply<'_>) {
        match self {
            Some(value) => value.write(reply),
            None => reply.null(),
        }
    }
}
