//! Registers the settings with the server.
//!
//! A load argument (`loadmodule libdq.so dq.lease 7000`) becomes the setting's default. So the
//! configuration file, `MODULE LOADEX ... CONFIG` and CONFIG SET override it. CONFIG REWRITE keeps
//! the load arguments, and writes a line for each setting whose value differs from them.

use super::log::c_text;
use super::{raw, Args, Setting, TextSetting};
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
    texts: &[&'static TextSetting],
) -> Result<(), String> {
    let (defaults, default_texts) = defaults(args, settings, texts)?;
    for (setting, default) in texts.iter().zip(default_texts) {
        // SAFETY: the context is that of the load.
        if !unsafe { setting.register(ctx, &default) } {
            return Err(format!("the server refuses the setting {}", setting.name));
        }
    }
    for (setting, default) in settings.iter().zip(defaults) {
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

/// The defaults of the settings, in the order of `settings` and `texts`. A load argument replaces
/// the built-in default of its setting.
fn defaults(
    args: Args<'_>,
    settings: &[&'static Setting],
    texts: &[&'static TextSetting],
) -> Result<(Vec<i64>, Vec<String>), String> {
    let mut defaults: Vec<i64> = settings.iter().map(|setting| setting.default).collect();
    let mut default_texts: Vec<String> = texts.iter().map(|text| text.default.into()).collect();
    let text = |index| args.get(index).map(String::from_utf8_lossy);
    let mut index = 0;
    while let Some(name) = text(index) {
        let value = text(index + 1).ok_or(format!("load argument '{name}' needs a value"));
        let numbers = settings.iter().zip(&mut defaults);
        let mut numbers = numbers.filter(|(setting, _)| is_named(setting.name, &name));
        let others = texts.iter().zip(&mut default_texts);
        let mut others = others.filter(|(setting, _)| is_named(setting.name, &name));
        if let Some((setting, default)) = numbers.next() {
            let value = value?;
            *default = setting.parse(&value).ok_or_else(|| {
                format!(
                    "load argument '{name}' must be between {} and {}, not '{value}'",
                    setting.min, setting.max
                )
            })?;
        } else if let Some((setting, default)) = others.next() {
            let value = value?;
            let taken = setting.check(&value);
            taken.map_err(|why| format!("load argument '{name}': {why}"))?;
            *default = value.into_owned();
        } else {
            return Err(format!("unknown load argument '{name}'"));
        }
        index += 2;
    }
    Ok((defaults, default_texts))
}

/// Whether `text` is the full name of the setting `name` (`dq.lease`, in any case).
fn is_named(name: &str, text: &str) -> bool {
    text.split_once('.').is_some_and(|(module, setting)| {
        module.eq_ignore_ascii_case("dq") && setting.eq_ignore_ascii_case(name)
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
        assert!(is_named("retain-count", "dq.retain-count"));
        assert!(is_named("retain-count", "DQ.Retain-Count"));
        for name in [
            "retain-count",
            "dq.",
            "dq.retain-counts",
            "dx.retain-count",
            "",
        ] {
            assert!(!is_named("retain-count", name), "{name}");
        }
    }
}
