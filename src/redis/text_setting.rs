//! A setting of the module that is a text, and how the server reads and changes it.

use super::guard::contain;
use super::log::c_text;
use super::raw;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A setting that is a text, which can be changed while the server runs.
#[derive(Debug)]
pub struct TextSetting {
    /// Its name, without the `dq.` that the server puts before it.
    pub name: &'static str,
    /// Its value if it is not configured.
    pub default: &'static str,
    /// Sets a new value. Returns what is wrong with it if it is not valid.
    take: fn(&str) -> Result<(), String>,
    /// The text, as the server asks for it. Null before the server has set it.
    text: AtomicPtr<raw::RedisModuleString>,
}

impl TextSetting {
    /// A setting with this default. `take` gets each new value, also the first.
    pub const fn new(
        name: &'static str,
        default: &'static str,
        take: fn(&str) -> Result<(), String>,
    ) -> Self {
        TextSetting {
            name,
            default,
            take,
            text: AtomicPtr::new(null_mut()),
        }
    }

    /// Checks a value, and makes it the current one if it is valid.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        (self.take)(text)
    }

    /// Frees the text. For a module that is not loaded after all.
    pub(super) fn forget(&self) {
        let text = self.text.swap(null_mut(), Relaxed);
        if !text.is_null() {
            // SAFETY: the reference that `set` has kept, which nobody else frees.
            unsafe { api!(RedisModule_FreeString(null_mut(), text)) };
        }
    }

    /// Registers the setting with the server. Returns whether the server accepts it.
    ///
    /// # Safety
    /// `ctx` must be the context of the module's load.
    pub(super) unsafe fn register(
        &'static self,
        ctx: *mut raw::RedisModuleCtx,
        default: &str,
    ) -> bool {
        let (name, default) = (c_text(self.name), c_text(default));
        // SAFETY: name and default are C strings, which the server copies. The private data is a
        // static.
        let done = unsafe {
            api!(RedisModule_RegisterStringConfig(
                ctx,
                name.as_ptr(),
                default.as_ptr(),
                raw::REDISMODULE_CONFIG_DEFAULT,
                Some(get),
                Some(set),
                None,
                std::ptr::from_ref(self).cast_mut().cast()
            ))
        };
        done == raw::REDISMODULE_OK as c_int
    }
}

unsafe extern "C" fn get(_: *const c_char, setting: *mut c_void) -> *mut raw::RedisModuleString {
    // SAFETY: the private data is the static that was given at registration. The server copies the
    // text.
    unsafe { &*setting.cast::<TextSetting>() }
        .text
        .load(Relaxed)
}

unsafe extern "C" fn set(
    _: *const c_char,
    value: *mut raw::RedisModuleString,
    setting: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: as in `get`. The value is a live string, and the module may keep a reference to it.
    // The server frees the text of an error.
    unsafe {
        let setting = &*setting.cast::<TextSetting>();
        let text = String::from_utf8_lossy(super::name::string_bytes(value));
        let taken = contain(Err("an internal error".to_owned()), || setting.check(&text));
        if let Err(why) = taken {
            let why = c_text(&why);
            *error = api!(RedisModule_CreateString(
                null_mut(),
                why.as_ptr(),
                why.as_bytes().len()
            ));
            return raw::REDISMODULE_ERR as c_int;
        }
        api!(RedisModule_RetainString(null_mut(), value));
        setting.forget();
        setting.text.store(value, Relaxed);
    }
    raw::REDISMODULE_OK as c_int
}
