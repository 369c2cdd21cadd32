//! Opens keys that hold queues.
//!
//! Opening a key may expire it, which frees its value and runs handlers of other modules. So
//! opening borrows the context mutably: while a key is open, no other key can be opened and no code
//! of other modules can run.

use super::value::{value_type, Value};
use super::{raw, Context, Name};
use dq_queue::Queue;
use std::os::raw::{c_int, c_void};
use std::ptr::NonNull;

/// The key holds a value that is not a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

impl WrongType {
    /// The text of the error, which all client libraries recognise.
    pub const TEXT: &'static str =
        "WRONGTYPE Operation against a key holding the wrong kind of value";
}

impl From<WrongType> for super::Failure {
    fn from(_: WrongType) -> Self {
        WrongType::TEXT.into()
    }
}

impl Context {
    /// Opens a key for reading. Error: it holds another type.
    pub fn open_read(&mut self, name: Name<'_>) -> Result<KeyRead<'_>, WrongType> {
        let mode = raw::REDISMODULE_READ as c_int;
        // SAFETY: the context and the name are live.
        unsafe { Handle::open(self, name, mode) }.map(KeyRead)
    }

    /// Whether a key holds a queue.
    pub fn holds_queue(&mut self, name: Name<'_>) -> bool {
        self.open_read(name).is_ok_and(|key| key.get().is_some())
    }

    /// Whether a key holds anything.
    pub fn is_used(&mut self, name: Name<'_>) -> bool {
        self.open_read(name).map_or(true, |key| key.get().is_some())
    }

    /// Opens a key to change its queue or to create one. Error: it holds another type.
    #[inline]
    pub fn open_write<'a>(&'a mut self, name: Name<'a>) -> Result<KeyWrite<'a>, WrongType> {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        // SAFETY: the context and the name are live.
        unsafe { Handle::open(self, name, mode) }.map(|handle| KeyWrite { handle })
    }
}

/// An open key. It is closed when dropped.
struct Handle<'a> {
    ctx: &'a Context,
    /// Null if the server gives no handle for a missing key.
    key: *mut raw::RedisModuleKey,
    value: Option<NonNull<Value>>,
}

impl<'a> Handle<'a> {
    /// # Safety
    /// The context and the name must be live.
    #[inline(always)]
    unsafe fn open(ctx: &'a Context, name: Name<'_>, mode: c_int) -> Result<Self, WrongType> {
        // SAFETY: the caller guarantees it. The answers of the server about the key hold until it
        // is closed, because nothing else runs until then.
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
            // SAFETY: opened by `open`, closed once.
            unsafe { api!(RedisModule_CloseKey(self.key)) };
        }
    }
}

/// A key that is open for reading.
pub struct KeyRead<'a>(Handle<'a>);

impl KeyRead<'_> {
    /// The queue, if the key exists.
    #[inline]
    pub fn get(&self) -> Option<&Queue> {
        // SAFETY: the key is open, so the value is live and nothing else changes it.
        self.0.value.map(|value| unsafe { value.as_ref() }.queue())
    }

    /// The context, to write replies while the queue is borrowed.
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
        // SAFETY: as in `KeyRead::get`, and self is borrowed mutably.
        self.handle.value.map(|mut value| unsafe { value.as_mut() })
    }

    /// The context and the queue, to reply and replicate while the queue is borrowed.
    #[inline]
    pub fn split(&mut self) -> (&'a Context, Option<&mut Value>) {
        (self.handle.ctx, self.get_mut())
    }

    /// Puts a queue into the key. It replaces the queue that the key may hold.
    pub fn create(&mut self, queue: Queue) -> &mut Value {
        let value = NonNull::from(Box::leak(Box::new(Value::new(queue))));
        // SAFETY: the key is open for writing, so the handle is not null. The server owns the value
        // from here on, and frees it with the callback of the data type.
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
