//! The module's sections of INFO.

use super::guard::contain;
use super::log::c_text;
use super::{raw, Context};
use std::cell::Cell;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_int, c_ulonglong};
use std::ptr;

/// Writes sections and fields of INFO.
pub struct InfoWriter<'a> {
    info: *mut raw::RedisModuleInfoCtx,
    life: PhantomData<&'a ()>,
}

thread_local! {
    static SOURCE: Cell<Option<fn(&mut InfoWriter<'_>)>> = const { Cell::new(None) };
}

thread_local! {
    /// A context without a client, in which queues are read.
    static DETACHED: Cell<*mut raw::RedisModuleCtx> = const { Cell::new(ptr::null_mut()) };
}

impl InfoWriter<'_> {
    /// Runs `read` with a context in which queues can be opened for reading.
    pub fn with_context(&self, read: impl FnOnce(&mut Context)) {
        let ctx = DETACHED.get();
        if !ctx.is_null() {
            // SAFETY: made at load and never freed. INFO is written on the server's main thread,
            // while no other call of the module runs.
            read(&mut unsafe { Context::new(ctx) });
        }
    }

    /// Starts a section. The server puts `dq_` before its name. Returns false if the client did not
    /// ask for this section: then its fields must not be written.
    pub fn section(&mut self, name: &'static CStr) -> bool {
        // SAFETY: `info` is live, here and below.
        unsafe { api!(RedisModule_InfoAddSection(self.info, name.as_ptr())) == OK }
    }

    /// Writes a field that holds a count. The server puts `dq_` before its name.
    pub fn count(&mut self, name: &str, value: u64) {
        let name = c_text(name);
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_InfoAddFieldULongLong(
                self.info,
                name.as_ptr(),
                value as c_ulonglong
            ))
        };
    }

    /// Writes a field that holds a text. The server puts `dq_` before its name.
    pub fn text(&mut self, name: &str, value: &str) {
        let (name, value) = (c_text(name), c_text(value));
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_InfoAddFieldCString(
                self.info,
                name.as_ptr(),
                value.as_ptr()
            ))
        };
    }
}

const OK: c_int = raw::REDISMODULE_OK as c_int;

/// Installs the function that writes the module's sections of INFO. It is not called for a crash
/// report, which is written in a signal handler, where nothing may allocate.
pub fn install(ctx: &Context, source: fn(&mut InfoWriter<'_>)) {
    SOURCE.set(Some(source));
    // SAFETY: the context is live. The new one lives as long as the module.
    let detached = unsafe { api!(RedisModule_GetDetachedThreadSafeContext(ctx.as_ptr())) };
    DETACHED.set(detached);
    // SAFETY: as above.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx.as_ptr(), Some(write))) };
}

unsafe extern "C" fn write(info: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    if for_crash_report != 0 {
        return;
    }
    contain((), || {
        if let Some(source) = SOURCE.get() {
            source(&mut InfoWriter {
                info,
                life: PhantomData,
            });
        }
    });
}
