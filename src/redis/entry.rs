//! The entry point: the server calls it when it loads the module.

use super::guard::{contain, log_panics};
use super::log::warn;
use super::spec::CommandSpec;
use super::{
    config, context, raw, registration, slots, value, Args, Context, Setting, TextSetting,
};
use std::os::raw::c_int;

/// The version as a number, for example 10203 for 1.2.3, because MODULE LIST shows only a number.
/// INFO shows the version as text.
const VERSION: c_int = version();

const fn version() -> c_int {
    const fn number(text: &str) -> c_int {
        let bytes = text.as_bytes();
        let (mut value, mut index) = (0, 0);
        while index < bytes.len() {
            value = value * 10 + (bytes[index] - b'0') as c_int;
            index += 1;
        }
        value
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + number(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + number(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The parts of the module that the layers above hand in.
pub struct Module {
    /// All commands.
    pub commands: &'static [CommandSpec],
    /// All settings.
    pub settings: &'static [&'static Setting],
    /// The settings that are texts.
    pub text_settings: &'static [&'static TextSetting],
    /// Runs at the end of the load. If it returns an error, the module is not loaded.
    pub start: fn(&mut Context) -> Result<(), String>,
}

/// Defines the function that the server calls when it loads the module. The argument is a static
/// [`Module`].
#[macro_export]
macro_rules! entry_point {
    ($module:path) => {
        /// The server calls this function by name when it loads the module. A second load of a
        /// module with this name is refused here. The server refuses to unload the module, because
        /// it has a data type.
        ///
        /// # Safety
        /// Only the server may call it.
        #[no_mangle]
        #[allow(unsafe_code)]
        pub unsafe extern "C" fn RedisModule_OnLoad(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            argv: *mut *mut redis_module::raw::RedisModuleString,
            argc: std::os::raw::c_int,
        ) -> std::os::raw::c_int {
            // SAFETY: the server passes valid arguments.
            unsafe { $crate::redis::on_load(ctx, argv, argc, &$module) }
        }
    };
}

/// Loads the module: the body of the function that [`entry_point!`] defines. Logs an error and
/// returns `REDISMODULE_ERR` if the module cannot be loaded.
///
/// # Safety
/// Only the server may call it, when it loads the module.
pub unsafe fn on_load(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    module: &'static Module,
) -> c_int {
    // Nothing may allocate before this call, because this call finds the allocator.
    // SAFETY: the context is the server's.
    let ready = unsafe {
        raw::Export_RedisModule_Init(
            ctx,
            c"dq".as_ptr(),
            VERSION,
            raw::REDISMODULE_APIVER_1 as c_int,
        )
    };
    if ready != raw::REDISMODULE_OK as c_int {
        return raw::REDISMODULE_ERR as c_int;
    }
    log_panics();
    // SAFETY: context and arguments are valid for this call.
    let loaded = contain(Err("an internal error".into()), || unsafe {
        load(ctx, Args::new(argv, argc), module)
    });
    match loaded {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(why) => {
            warn(&format!("not loaded: {why}"));
            module.text_settings.iter().for_each(|text| text.forget());
            raw::REDISMODULE_ERR as c_int
        }
    }
}

/// Loads the module. Subscriptions and timers come last: if a step fails, the server unloads the
/// module but keeps its subscriptions and timers, and would call code that is gone.
///
/// # Safety
/// `ctx` must be the context of the module's load.
unsafe fn load(
    ctx: *mut raw::RedisModuleCtx,
    args: Args<'_>,
    module: &'static Module,
) -> Result<(), String> {
    if !is_new_enough() {
        return Err("it needs Redis 7.0 or Valkey, or newer".into());
    }
    // SAFETY: the caller guarantees it.
    unsafe {
        context::resolve();
        Context::new(ctx).look_for_cluster();
        config::register(ctx, args, module.settings, module.text_settings)?;
        if !value::register(ctx) {
            return Err("the server refuses the data type".into());
        }
        registration::register(ctx, module.commands)?;
        set_options(ctx);
        slots::subscribe(&Context::new(ctx));
        (module.start)(&mut Context::new(ctx))
    }
}

/// Whether the server has all functions that the module needs: the most recent ones are checked.
fn is_new_enough() -> bool {
    macro_rules! has {
        ($name:ident) => {
            // SAFETY: the pointers were set when the API was initialised, and never change.
            unsafe { raw::$name }.is_some()
        };
    }
    has!(RedisModule_SetCommandInfo)
        && has!(RedisModule_RegisterNumericConfig)
        && has!(RedisModule_LoadConfigs)
        && has!(RedisModule_ReplyWithMap)
        && has!(RedisModule_BlockClientOnKeys)
        && has!(RedisModule_EventLoopAddOneShot)
        && has!(RedisModule_GetDbIdFromOptCtx)
}

/// Sets the options of the module:
///
/// - It handles I/O errors. Otherwise a truncated RESTORE payload would end the server.
/// - It signals changed keys itself. Otherwise a FETCH that finds nothing would break WATCH.
/// - It supports loading a new copy while the old data is served, because all state is in the keys.
/// - It leaves the keys of a slot that is being imported alone ([`Context::owns`]).
///
/// # Safety
/// `ctx` must be the context of the module's load.
unsafe fn set_options(ctx: *mut raw::RedisModuleCtx) {
    let wanted = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    // SAFETY: the caller guarantees it. Redis 7.0 cannot list the options that it knows, but it
    // knows these.
    unsafe {
        let known = raw::RedisModule_GetModuleOptionsAll.map_or(wanted, |all| all() as u32);
        let options = (wanted & known) | slots::options(known);
        api!(RedisModule_SetModuleOptions(ctx, options as c_int));
    }
}
