//! Clients that wait for keys.
//!
//! They are blocked *on keys* and in no other way: the server then moves them
//! along when a slot leaves the node, sends them away when the primary becomes
//! a replica, and serves them in the order they came.

use super::guard::contain;
use super::{raw, Context, Name, Reply};
use std::cell::Cell;
use std::os::raw::{c_int, c_longlong, c_void};
use std::ptr;
use std::rc::Rc;

/// What a blocked client waits for. Dropped when the wait is over, however it
/// ended: served, timed out or disconnected. That is a moment after the reply.
pub trait Wait: 'static {
    /// A key of this wait was signalled. True once the reply is written; false
    /// to go on waiting, and then nothing may have been changed or
    /// replicated: a server of 7.0 would end itself.
    ///
    /// Every waiter of a key is asked after every signal, so a "no" must be
    /// cheap.
    fn ready(&self, ctx: &mut Context, key: Name<'_>) -> bool;

    /// The time is over, or the wait was ended by its [`Handle`]: writes the
    /// reply.
    fn timed_out(&self, reply: Reply<'_>);
}

/// A way to end one wait from outside. Outlives it harmlessly.
#[derive(Clone)]
pub struct Handle {
    client: Rc<Client>,
}

impl Handle {
    /// Ends the wait as if its time were over; nothing where it has ended.
    pub fn end(&self) {
        let client = self.client.get();
        if !client.is_null() {
            // SAFETY: `freed` clears the pointer before the server frees what
            // it points to. For a client blocked on keys the server runs the
            // timeout callback at once.
            unsafe { api!(RedisModule_UnblockClient(client, ptr::null_mut())) };
        }
    }

    /// Whether the wait has ended and been cleared away.
    pub fn is_over(&self) -> bool {
        self.client.get().is_null()
    }
}

/// The server's record of a blocked client.
type Client = Cell<*mut raw::RedisModuleBlockedClient>;

struct Blocked<W> {
    wait: W,
    client: Rc<Client>,
}

/// Blocks the client of this call on keys, for `timeout_ms` milliseconds (0:
/// without end). Write no reply afterwards. `Err` gives the wait back where
/// this client cannot be blocked; ask [`Context::deny_blocking`] first, since
/// the server answers an error of its own in those cases.
pub fn block<W: Wait>(
    ctx: &mut Context,
    keys: &[Name<'_>],
    timeout_ms: u64,
    wait: W,
) -> Result<Handle, W> {
    let Ok(count) = c_int::try_from(keys.len()) else {
        return Err(wait);
    };
    let mut names: Vec<_> = keys.iter().map(|name| name.as_ptr()).collect();
    let client = Rc::new(Cell::new(ptr::null_mut()));
    let handle = Handle {
        client: Rc::clone(&client),
    };
    let private = Box::into_raw(Box::new(Blocked { wait, client }));
    // SAFETY: context and names are live; the server keeps names and private
    // data and gives the latter to the callbacks and then, once, to `freed`.
    let blocked = unsafe {
        api!(RedisModule_BlockClientOnKeys(
            ctx.as_ptr(),
            Some(ready::<W>),
            Some(timed_out::<W>),
            Some(freed::<W>),
            c_longlong::try_from(timeout_ms).unwrap_or(0),
            names.as_mut_ptr(),
            count,
            private.cast::<c_void>()
        ))
    };
    if blocked.is_null() {
        // SAFETY: the server took nothing.
        return Err(unsafe { Box::from_raw(private) }.wait);
    }
    handle.client.set(blocked);
    Ok(handle)
}

/// The private data of the blocked client whose call this is.
///
/// # Safety
/// `ctx` must be the context of a callback of a client blocked by `block::<W>`.
unsafe fn private<'a, W: Wait>(ctx: *mut raw::RedisModuleCtx) -> &'a Blocked<W> {
    // SAFETY: vouched for by the caller; only `freed` ends its life.
    unsafe { &*api!(RedisModule_GetBlockedClientPrivateData(ctx)).cast::<Blocked<W>>() }
}

unsafe extern "C" fn ready<W: Wait>(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    // SAFETY: the server's, for this call.
    let mut context = unsafe { Context::new(ctx) };
    // While it is asked, and once it has its reply, its handle must not end
    // it: that would be a second reply and a second end.
    // SAFETY: the context is of a client that `block::<W>` blocked.
    let client = unsafe { private::<W>(ctx) }.client.replace(ptr::null_mut());
    let served = contain(None, || {
        // SAFETY: the context is of a client that `block::<W>` blocked, and
        // the key's name lives until this call ends.
        unsafe {
            let key = api!(RedisModule_GetBlockedClientReadyKey(ctx));
            if key.is_null() {
                return Some(false);
            }
            Some(private::<W>(ctx).wait.ready(&mut context, Name::new(key)))
        }
    });
    match served {
        Some(false) => {
            // SAFETY: as above.
            unsafe { private::<W>(ctx) }.client.set(client);
            raw::REDISMODULE_ERR as c_int
        }
        Some(true) => raw::REDISMODULE_OK as c_int,
        // Something may have been replicated, so the client cannot stay.
        None => {
            context.reply().error("ERR internal error in the dq module");
            raw::REDISMODULE_OK as c_int
        }
    }
}

unsafe extern "C" fn timed_out<W: Wait>(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    // SAFETY: the server's, for this call, of a client that `block::<W>` blocked.
    let reply = unsafe { Reply::new(ctx) };
    let done = contain(false, || {
        // SAFETY: as above.
        let blocked = unsafe { private::<W>(ctx) };
        blocked.client.replace(ptr::null_mut());
        blocked.wait.timed_out(reply);
        true
    });
    if !done {
        reply.error("ERR internal error in the dq module");
    }
    raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn freed<W: Wait>(_: *mut raw::RedisModuleCtx, private: *mut c_void) {
    contain((), || {
        // SAFETY: made by `block::<W>`; the server gives it back once.
        let blocked = unsafe { Box::from_raw(private.cast::<Blocked<W>>()) };
        blocked.client.set(ptr::null_mut());
    });
}
