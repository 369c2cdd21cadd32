//! The module's part of INFO.

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
    /// A context of no client, for looking at queues.
    static LOOKING: Cell<*mut raw::RedisModuleCtx> = const { Cell::new(ptr::null_mut()) };
}

impl InfoWriter<'_> {
    /// Looks at queues while INFO is being written.
    pub fn with_context(&self, look: impl FnOnce(&mut Context)) {
        let ctx = LOOKING.get();
        if !ctx.is_null() {
            // SAFETY: made at load and never freed; INFO is written on the
            // server's own thread, during nothing else.
            look(&mut unsafe { Context::new(ctx) });
        }
    }

    /// Starts a section; the server puts `dq_` before its name. False where
    /// the client did not ask for it: then leave its fields out.
    pub fn section(&mut self, name: &'static CStr) -> bool {
        // SAFETY: `info` is live, here and below.
        unsafe { api!(RedisModule_InfoAddSection(self.info, name.as_ptr())) == OK }
    }

    /// A field that holds a count; the server puts `dq_` before its name.
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

    /// A field that holds a text; the server puts `dq_` before its name.
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

/// Says what INFO shows of this module. Not asked for a crash report: that is
/// written in a signal handler, where nothing may allocate.
pub fn install(ctx: &Context, source: fn(&mut InfoWriter<'_>)) {
    SOURCE.set(Some(source));
    // SAFETY: the context is live; the new one lives as long as the module.
    let looking = unsafe { api!(RedisModule_GetDetachedThreadSafeContext(ctx.as_ptr())) };
    LOOKING.set(looking);
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
