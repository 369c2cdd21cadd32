//! The native data type, and its callbacks.
//!
//! The callbacks are mandatory in practice: servers call `aof_rewrite` without checking that it is
//! set, and use it to migrate slots.

use super::guard::contain;
use super::log::c_text;
use super::name::string_bytes;
use super::notes::Notes;
use super::{events, raw};
use dq_queue::Queue;
use std::ffi::CStr;
use std::ops::{Deref, DerefMut};
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The value of a key of the module's type. It may be freed on any thread and is saved in a forked
/// child, so it owns everything it refers to and uses no locks.
#[derive(Debug)]
pub struct Value {
    queue: Queue,
    /// The notes that this server keeps of the queue.
    pub notes: Notes,
}

impl Value {
    /// A queue that is new in its key.
    pub fn new(queue: Queue) -> Value {
        Value {
            queue,
            notes: Notes::default(),
        }
    }

    /// The queue.
    #[inline]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Deref for Value {
    type Target = Queue;

    #[inline]
    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl DerefMut for Value {
    #[inline]
    fn deref_mut(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

/// The name of the data type, as TYPE shows it. It must have 9 bytes.
pub const TYPE_NAME: &CStr = c"dqueue-rs";

/// The smallest result of `free_effort`. The server frees values with little effort at once, and
/// others in the background.
const LEAST_EFFORT: usize = 1;

static TYPE: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(ptr::null_mut());

/// The registered type. Null before it is registered.
#[inline]
pub(super) fn value_type() -> *mut raw::RedisModuleType {
    TYPE.load(Ordering::Relaxed)
}

/// Registers the data type. Returns false if the server refuses it.
///
/// # Safety
/// `ctx` must be the context of the module's load.
pub(super) unsafe fn register(ctx: *mut raw::RedisModuleCtx) -> bool {
    let mut methods = raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load: Some(rdb_load),
        rdb_save: Some(rdb_save),
        aof_rewrite: Some(aof_rewrite),
        mem_usage: None,
        digest: Some(digest),
        free: Some(free),
        // No state is stored outside the keys, because slot migration would lose it.
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: None,
        unlink: None,
        copy: None,
        // The server could move only the value's own block, not the maps inside it.
        defrag: None,
        mem_usage2: Some(mem_usage2),
        free_effort2: Some(free_effort2),
        unlink2: Some(unlink2),
        copy2: Some(copy2),
        aux_save2: None,
    };
    // SAFETY: the server copies the table.
    let made = unsafe {
        api!(RedisModule_CreateDataType(
            ctx,
            TYPE_NAME.as_ptr(),
            Queue::VERSION as c_int,
            &mut methods
        ))
    };
    TYPE.store(made, Ordering::Relaxed);
    !made.is_null()
}

/// # Safety
/// `value` must be a value of this type, which nothing changes during the borrow.
unsafe fn borrow<'a>(value: *const c_void) -> &'a Value {
    // SAFETY: the server passes only values that `create`, `rdb_load` or `copy2` has made.
    unsafe { &*value.cast::<Value>() }
}

fn into_server(queue: Queue) -> *mut c_void {
    Box::into_raw(Box::new(Value::new(queue))).cast()
}

unsafe extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // A save that was aborted must not look complete: without the empty block at the end, the value
    // cannot be loaded.
    contain((), || {
        // SAFETY: `io` and `value` are valid for this call.
        let save = |block: &[u8]| unsafe {
            api!(RedisModule_SaveStringBuffer(
                io,
                block.as_ptr().cast(),
                block.len()
            ));
        };
        // SAFETY: as above.
        unsafe { borrow(value) }.save(&mut |block| {
            if !block.is_empty() {
                save(block);
            }
        });
        save(&[]);
    });
}

unsafe extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    contain(ptr::null_mut(), || {
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        let mut ended = false;
        let mut next = || {
            if ended {
                return None;
            }
            // SAFETY: `io` is valid for this call.
            let block = unsafe { load_block(io) };
            ended = block.is_none();
            block
        };
        let loaded = Queue::load(version, &mut next);
        let is_complete = next().is_none();
        // SAFETY: as above.
        let is_broken = unsafe { api!(RedisModule_IsIOError(io)) } != 0;
        match loaded {
            _ if is_broken => refuse(io, "the input ends too early"),
            Ok(queue) if is_complete => {
                events::loaded();
                return into_server(queue);
            }
            Ok(_) => refuse(io, "there are bytes after the end"),
            Err(why) => refuse(io, &why),
        }
        ptr::null_mut()
    })
}

/// Reads the next block. Returns `None` for the empty block at the end, or if the input is broken.
///
/// # Safety
/// `io` must be live.
unsafe fn load_block(io: *mut raw::RedisModuleIO) -> Option<Vec<u8>> {
    let mut len = 0;
    // SAFETY: the server returns a block of its allocator with `len` bytes, or null if the input is
    // broken.
    unsafe {
        let block = api!(RedisModule_LoadStringBuffer(io, &mut len)).cast::<u8>();
        if block.is_null() {
            return None;
        }
        let bytes = (len > 0).then(|| std::slice::from_raw_parts(block, len).to_vec());
        api!(RedisModule_Free(block.cast()));
        bytes
    }
}

fn refuse(io: *mut raw::RedisModuleIO, why: &str) {
    let line = c_text(&format!("dq: a queue cannot be loaded: {why}"));
    // SAFETY: `io` is live; the format takes one string.
    unsafe {
        api!(RedisModule_LogIOError(
            io,
            c"warning".as_ptr(),
            c"%s".as_ptr(),
            line.as_ptr()
        ));
    }
}

unsafe extern "C" fn aof_rewrite(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    contain((), || {
        // SAFETY: key and value are valid for this call. The format gives the types of the
        // arguments.
        unsafe { borrow(value) }.rewrite(&mut |entry| unsafe {
            api!(RedisModule_EmitAOF(
                io,
                c"DQ.OP".as_ptr(),
                c"sb".as_ptr(),
                key,
                entry.as_ptr(),
                entry.len()
            ));
        });
    });
}

/// Frees a value. May run on any thread: FLUSHALL ASYNC and UNLINK free in the background.
unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server passes each value once, when it no longer needs it.
    contain((), || drop(unsafe { Box::from_raw(value.cast::<Value>()) }));
}

unsafe extern "C" fn mem_usage2(
    _: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
    _: usize,
) -> usize {
    contain(0, || {
        // SAFETY: the value is valid for this call.
        unsafe { borrow(value) }.memory_bytes() + size_of::<Notes>()
    })
}

unsafe extern "C" fn free_effort2(
    _: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
) -> usize {
    contain(LEAST_EFFORT, || {
        // SAFETY: the value is valid for this call.
        unsafe { borrow(value) }.free_effort().max(LEAST_EFFORT)
    })
}

/// The value was removed from its key: the key was deleted, overwritten, expired, evicted or
/// renamed. FLUSHALL does not call this.
unsafe extern "C" fn unlink2(ctx: *mut raw::RedisModuleKeyOptCtx, _: *const c_void) {
    contain((), || {
        // SAFETY: the server returns the key of this call, whose name lives until the call ends.
        unsafe {
            let name = api!(RedisModule_GetKeyNameFromOptCtx(ctx));
            if !name.is_null() {
                let db = api!(RedisModule_GetDbIdFromOptCtx(ctx));
                events::unlinked(db, string_bytes(name));
            }
        }
    });
}

unsafe extern "C" fn copy2(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> *mut c_void {
    contain(ptr::null_mut(), || {
        // SAFETY: the value is valid for this call.
        let value = unsafe { borrow(value) };
        let mut copy = Value::new(value.copy());
        // Replicas copy the queue before they know of the cut.
        copy.notes.cut = value.notes.cut;
        Box::into_raw(Box::new(copy)).cast()
    })
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    contain((), || {
        // SAFETY: digest and value are valid for this call.
        unsafe { borrow(value) }.digest(&mut |part| unsafe {
            api!(RedisModule_DigestAddStringBuffer(
                digest,
                part.as_ptr().cast(),
                part.len()
            ));
            api!(RedisModule_DigestEndSequence(digest));
        });
    });
}
