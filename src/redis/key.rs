//! Opening a key as a queue.
//!
//! Opening may expire the key, which frees its value and runs other modules'
//! handlers; so it borrows the context mutably, and while a key is open no
//! other can be opened and nothing else can run.

use super::value::{value_type, Value};
use super::{raw, Context, Name};
use std::os::raw::{c_int, c_void};
use std::ptr::NonNull;

/// The key holds something that is no queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

impl WrongType {
    /// The error that every client library knows.
    pub const TEXT: &'static str =
        "WRONGTYPE Operation against a key holding the wrong kind of value";
}

impl From<WrongType> for super::Failure {
    fn from(_: WrongType) -> Self {
        WrongType::TEXT.into()
    }
}

impl Context {
    /// Opens a key for reading.
    pub fn open_read(&mut self, name: Name<'_>) -> Result<KeyRead<'_>, WrongType> {
        let mode = raw::REDISMODULE_READ as c_int;
        // SAFETY: the context and the name are live.
        unsafe { Handle::open(self, name, mode) }.map(KeyRead)
    }

    /// Whether a key holds a queue.
    pub fn holds_queue(&mut self, name: Name<'_>) -> bool {
        self.open_read(name).is_ok_and(|key| key.get().is_some())
    }

    /// Opens a key for changing, or to put a queue there.
    #[inline]
    pub fn open_write<'a>(&'a mut self, name: Name<'a>) -> Result<KeyWrite<'a>, WrongType> {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        // SAFETY: the context and the name are live.
        unsafe { Handle::open(self, name, mode) }.map(|handle| KeyWrite { handle })
    }
}

/// An open key; closed when dropped.
struct Handle<'a> {
    ctx: &'a Context,
    /// Null where the server gives no handle for a missing key.
    key: *mut raw::RedisModuleKey,
    value: Option<NonNull<Value>>,
}

impl<'a> Handle<'a> {
    /// # Safety
    /// The context must be live and the name too.
    #[inline(always)]
    unsafe fn open(ctx: &'a Context, name: Name<'_>, mode: c_int) -> Result<Self, WrongType> {
        // SAFETY: vouched for by the caller; what the server answers about the
        // key holds until it is closed, since nothing else runs meanwhile.
        unsafe {
            let key = api!(RedisModule_OpenKey(ctx.as_ptr(), name.as_ptr(), mode)).cast();
            let mut handle = Handle {
                ctx,
                key,
                value: None,
            };
            if key.is_null() {
                return Ok(handle);
            }
            let found = api!(RedisModule_ModuleTypeGetType(key));
            if !found.is_null() && found == value_type() {
                handle.value = NonNull::new(api!(RedisModule_ModuleTypeGetValue(key)).cast());
                Ok(handle)
            } else if api!(RedisModule_KeyType(key)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int {
                Ok(handle)
            } else {
                Err(WrongType)
            }
        }
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if !self.key.is_null() {
            // SAFETY: opened by us, closed once.
            unsafe { api!(RedisModule_CloseKey(self.key)) };
        }
    }
}

/// A key that is open for reading.
pub struct KeyRead<'a>(Handle<'a>);

impl KeyRead<'_> {
    /// The queue, if the key exists.
    #[inline]
    pub fn get(&self) -> Option<&Value> {
        // SAFETY: the key is open, so the value lives and nobody changes it.
        self.0.value.map(|value| unsafe { value.as_ref() })
    }

    /// The context, for replies while the queue is borrowed.
    #[inline]
    pub fn context(&self) -> &Context {
        self.0.ctx
    }
}

/// A key that is open for changing.
pub struct KeyWrite<'a> {
    handle: Handle<'a>,
}

impl<'a> KeyWrite<'a> {
    /// The queue to change, if the key exists.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut Value> {
        // SAFETY: as in get; self is borrowed mutably.
        self.handle.value.map(|mut value| unsafe { value.as_mut() })
    }

    /// The context and the queue at once: to reply and replicate while the
    /// queue is borrowed.
    #[inline]
    pub fn split(&mut self) -> (&'a Context, Option<&mut Value>) {
        (self.handle.ctx, self.get_mut())
    }

    /// Puts a queue there, in place of one that may be there.
    pub fn create(&mut self, value: Value) -> &mut Value {
        let value = NonNull::from(Box::leak(Box::new(value)));
        // SAFETY: the key is open for writing, where the handle is never null;
        // from here on the value is the server's, which frees it by our
        // callback.
        unsafe {
            let stored = api!(RedisModule_ModuleTypeSetValue(
                self.handle.key,
                value_type(),
                value.as_ptr().cast::<c_void>()
            ));
            assert_eq!(stored, raw::REDISMODULE_OK as c_int, "a value was refused");
            self.handle.value = Some(value);
            &mut *value.as_ptr()
        }
    }
}
