//! Registers the settings with the server.
//!
//! A load argument (`loadmodule libdq.so dq.lease 7000`) becomes the setting's default. So the
//! configuration file, `MODULE LOADEX ... CONFIG` and CONFIG SET override it. CONFIG REWRITE keeps
//! the load arguments, and writes a line for each setting whose value differs from them.

use super::log::c_text;
use super::{raw, Args, Setting};
use std::os::raw::{c_char, c_int, c_longlong, c_uint, c_void};

/// Registers the settings and loads their configured values. Errors: an unknown load argument, a
/// bad value, or the server refuses a setting. The error text says why the module cannot be loaded.
///
/// # Safety
/// `ctx` must be the context of the module's load.
pub(super) unsafe fn register(
    ctx: *mut raw::RedisModuleCtx,
    args: Args<'_>,
    settings: &[&'static Setting],
) -> Result<(), String> {
    for (setting, default) in settings.iter().zip(defaults(args, settings)?) {
        let name = c_text(setting.name);
        let flags = if setting.memory {
            raw::REDISMODULE_CONFIG_MEMORY
        } else {
            raw::REDISMODULE_CONFIG_DEFAULT
        };
        // SAFETY: the name is a C string, which the server copies. The private data is a static.
        let done = unsafe {
            api!(RedisModule_RegisterNumericConfig(
                ctx,
                name.as_ptr(),
                default,
                flags as c_uint,
                setting.min,
                setting.max,
                Some(get),
                Some(set),
                None,
                std::ptr::from_ref(*setting).cast_mut().cast()
            ))
        };
        if done != raw::REDISMODULE_OK as c_int {
            return Err(format!("the server refuses the setting {}", setting.name));
        }
    }
    // SAFETY: the context is that of the load.
    if unsafe { api!(RedisModule_LoadConfigs(ctx)) } != raw::REDISMODULE_OK as c_int {
        return Err("a setting of the module has a bad value".into());
    }
    Ok(())
}

/// The defaults of the settings, in the order of `settings`. A load argument replaces the built-in
/// default of its setting.
fn defaults(args: Args<'_>, settings: &[&'static Setting]) -> Result<Vec<i64>, String> {
    let mut defaults: Vec<i64> = settings.iter().map(|setting| setting.default).collect();
    let text = |index| args.get(index).map(String::from_utf8_lossy);
    let mut index = 0;
    while let Some(name) = text(index) {
        let Some(position) = settings.iter().position(|setting| is_named(setting, &name)) else {
            return Err(format!("unknown load argument '{name}'"));
        };
        let Some(value) = text(index + 1) else {
            return Err(format!("load argument '{name}' needs a value"));
        };
        let (Some(setting), Some(default)) = (settings.get(position), defaults.get_mut(position))
        else {
            continue;
        };
        *default = setting.parse(&value).ok_or_else(|| {
            format!(
                "load argument '{name}' must be between {} and {}, not '{value}'",
                setting.min, setting.max
            )
        })?;
        index += 2;
    }
    Ok(defaults)
}

/// Whether this is the full name of the setting (`dq.lease`, in any case).
fn is_named(setting: &Setting, name: &str) -> bool {
    name.split_once('.').is_some_and(|(module, name)| {
        module.eq_ignore_ascii_case("dq") && name.eq_ignore_ascii_case(setting.name)
    })
}

unsafe extern "C" fn get(_: *const c_char, setting: *mut c_void) -> c_longlong {
    // SAFETY: the private data is the static that was given at registration.
    unsafe { &*setting.cast::<Setting>() }.get()
}

unsafe extern "C" fn set(
    _: *const c_char,
    value: c_longlong,
    setting: *mut c_void,
    _: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: as in `get`. The server has checked the range.
    unsafe { &*setting.cast::<Setting>() }.set(value);
    raw::REDISMODULE_OK as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_matches_its_full_name_in_any_case() {
        let setting = Setting::new("retain-count", 0, 0, 9);
        assert!(is_named(&setting, "dq.retain-count"));
        assert!(is_named(&setting, "DQ.Retain-Count"));
        for name in [
            "retain-count",
            "dq.",
            "dq.retain-counts",
            "dx.retain-count",
            "",
        ] {
            assert!(!is_named(&setting, name), "{name}");
        }
    }
}
