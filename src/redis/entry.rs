//! Where the server enters when it loads the module.

use super::guard::{contain, log_panics};
use super::log::warn;
use super::spec::CommandSpec;
use super::{config, context, raw, registration, slots, value, Args, Context, Setting};
use std::os::raw::c_int;

/// 1.2.3 as 10203: MODULE LIST has a number only. INFO has the whole version.
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

/// What the layers above hand in.
pub struct Module {
    /// All commands.
    pub commands: &'static [CommandSpec],
    /// All settings.
    pub settings: &'static [&'static Setting],
    /// Runs at the end of the load; an error refuses it.
    pub start: fn(&mut Context) -> Result<(), String>,
}

/// Defines the function that the server calls when it loads the module, for this [`Module`].
#[macro_export]
macro_rules! entry_point {
    ($module:path) => {
        /// Called once by the server, by this name. A second load of a module of this
        /// name is refused here; unloading is refused by the server, because the
        /// module has a data type.
        ///
        /// # Safety
        /// Only for the server to call.
        #[no_mangle]
        #[allow(unsafe_code)]
        pub unsafe extern "C" fn RedisModule_OnLoad(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            argv: *mut *mut redis_module::raw::RedisModuleString,
            argc: std::os::raw::c_int,
        ) -> std::os::raw::c_int {
            // SAFETY: the server's own arguments.
            unsafe { $crate::redis::on_load(ctx, argv, argc, &$module) }
        }
    };
}

/// Loads the module; the body of what [`entry_point!`] defines.
///
/// # Safety
/// Only for the server to call, at the module's load.
pub unsafe fn on_load(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    module: &'static Module,
) -> c_int {
    // Before this nothing may allocate: it finds the allocator.
    // SAFETY: the server's context.
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
    // SAFETY: context and arguments are the server's, for this call.
    let loaded = contain(Err("a bug".into()), || unsafe {
        load(ctx, Args::new(argv, argc), module)
    });
    match loaded {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(why) => {
            warn(&format!("not loaded: {why}"));
            raw::REDISMODULE_ERR as c_int
        }
    }
}

/// Subscriptions and timers come last: where something before them fails, the
/// server forgets the module but not those, and would call code that is gone.
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
    // SAFETY: vouched for by the caller.
    unsafe {
        context::resolve();
        config::register(ctx, args, module.settings)?;
        if !value::register(ctx) {
            return Err("the server refuses the data type".into());
        }
        registration::register(ctx, module.commands)?;
        set_options(ctx);
        slots::watch(&Context::new(ctx));
        (module.start)(&mut Context::new(ctx))
    }
}

/// Whether the server has what came last of what is needed.
fn is_new_enough() -> bool {
    macro_rules! has {
        ($name:ident) => {
            // SAFETY: the pointers are set by now and stay.
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

/// - Without handling of I/O errors a cut-off RESTORE payload ends the server.
/// - With implicit signals a FETCH that finds nothing breaks WATCH.
/// - Loading beside the old data is safe, because all state is in the keys.
/// - Keys that come before their slot are left alone ([`Context::owns`]).
///
/// # Safety
/// `ctx` must be the context of the module's load.
unsafe fn set_options(ctx: *mut raw::RedisModuleCtx) {
    let wanted = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    // SAFETY: vouched for by the caller. Servers of 7.0 do not tell what they
    // know, but know these.
    unsafe {
        let known = raw::RedisModule_GetModuleOptionsAll.map_or(wanted, |all| all() as u32);
        let options = (wanted & known) | slots::options(known);
        api!(RedisModule_SetModuleOptions(ctx, options as c_int));
    }
}
